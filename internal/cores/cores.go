// Package cores does many things of one kind at a time.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do with the numbers below n, on all cores, and waits for all calls.
func Each(n int, do func(at int)) { By(0, n, func() func(int) { return do }) }

// By is Each with a number of workers, or one for each core if the number is 0. worker makes the function of one worker, which may keep memory between calls.
func By(workers, n int, worker func() func(at int)) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(workers, n) {
		do := worker()
		wait.Go(func() {
			for at := int(next.Add(1)) - 1; at < n; at = int(next.Add(1)) - 1 {
				do(at)
			}
		})
	}
	wait.Wait()
}
