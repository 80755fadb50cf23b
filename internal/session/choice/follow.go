package choice

import (
	"time"

	"github.com/tracediff/tracediff/internal/settings"
)

// follow shows the progress of a program in another process by the size of its trace, until the caller calls stop.
// all is the expected number of bytes.
func follow(p settings.Progress, bytes func() int64, all float64) (stop func()) {
	const mega = 1e6
	steps := max(int(min(all, 1e15)/mega), 1)
	done, ended := make(chan struct{}), make(chan struct{})
	show := func() { p.Step(0, 1, min(int(bytes()/mega), steps), steps) }
	go func() {
		defer close(ended)
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			show()
			select {
			case <-done:
				show() // what was written since
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(done); <-ended }
}

const followEvery = 200 * time.Millisecond
