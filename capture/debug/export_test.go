package debug

import "time"

// SetClock makes a log read another clock than the machine's.
func (d *Log) SetClock(now func() time.Time) { d.watch.now = now }
