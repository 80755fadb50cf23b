package isolate

import "testing"

// Large entries that are not to be in memory at one time wait for each other, and the others pass them; one that is larger than all that may be
// has its turn alone.
func TestQueueOfLargeEntries(t *testing.T) {
	const most = 4 * largeElements
	q := queue{waiting: []int{most, 2 * most, largeElements, 5}, most: most}
	q.freed.L = &q.mu
	take := func(want int) {
		t.Helper()
		if got := q.take(); got != want {
			t.Fatalf("entry %d, want %d", got, want)
		}
	}
	take(0)
	take(3)
	q.done(5)
	q.done(most)
	take(1)
	q.done(2 * most)
	take(2)
	take(-1)
}
