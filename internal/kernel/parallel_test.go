package kernel

import (
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Work that is worth it is split into pieces for the cores, and every index is computed once; less work stays in one call.
func TestParallelSplits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for _, c := range []struct{ n, work, calls int }{{10, serialWork, 10}, {100, serialWork, 3 * shares}, {2, serialWork, 2}, {10, serialWork - 1, 1}, {1, 1 << 30, 1}} {
		var mu sync.Mutex
		var seen []int
		calls := 0
		parallel(c.n, c.work, func(lo, hi int) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			for i := lo; i < hi; i++ {
				seen = append(seen, i)
			}
		})
		slices.Sort(seen)
		want := make([]int, c.n)
		for i := range want {
			want[i] = i
		}
		if calls != c.calls || !slices.Equal(seen, want) {
			t.Errorf("%+v: %d calls computed %v", c, calls, seen)
		}
	}
	// The products that the tests of cores compare are of this size or more.
	if wide := 256 * 256; wide < serialWork {
		t.Errorf("a product of %d multiplications is not split", wide)
	}
}
