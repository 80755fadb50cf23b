package cores_test

import (
	"sync/atomic"
	"testing"

	"github.com/tracediff/tracediff/internal/cores"
)

// Every number is done once, by no more workers than there may be.
func TestEveryNumberIsDoneOnce(t *testing.T) {
	for _, workers := range []int{0, 1, 3} {
		for _, n := range []int{0, 1, 2, 100} {
			done, made := make([]atomic.Int64, n), 0
			cores.By(workers, n, func() func(int) {
				made++
				return func(at int) { done[at].Add(1) }
			})
			for at := range done {
				if got := done[at].Load(); got != 1 {
					t.Errorf("%d workers: %d of %d was done %d times", workers, at, n, got)
				}
			}
			if made > n || workers > 0 && made > workers {
				t.Errorf("%d workers were made for %d, for %d numbers", made, workers, n)
			}
		}
	}
}
