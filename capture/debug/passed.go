package debug

import (
	"time"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/lanes"
)

// passed is what is known of the pass that is running.
type passed struct {
	number, tensors  int
	full             bool // it is shown tensor by tensor
	bad              counts
	firstNaN         string
	section, slowest timed // the one that is running, and of those that ended
	elapsed          time.Duration
	batch            batch
	top              line // the most likely next token
	loss             float64
	hasLoss          bool
}

// counts are of elements that are no finite numbers.
type counts struct{ nan, posInf, negInf int64 }

func countsOf(m *lanes.Moments) counts { return counts{m.NaN, m.PosInf, m.NegInf} }

func (c *counts) add(o counts) {
	c.nan += o.nan
	c.posInf += o.posInf
	c.negInf += o.negInf
}

// timed is a section of a pass.
type timed struct {
	name    string // empty for none
	tensors int
	elapsed time.Duration
}

// batch is how many sequences a pass is of, and the tokens of each; 0 before the ids.
type batch struct{ sequences, tokens int }

// count adds a tensor, and reports whether it is the first of the pass that has NaN.
func (p *passed) count(name string, m *lanes.Moments) (first bool) {
	p.tensors++
	p.bad.add(countsOf(m))
	if m.NaN == 0 || p.firstNaN != "" {
		return false
	}
	p.firstNaN = name
	return true
}

// sequences is how many sequences the rows of logits are of: those of the ids, or else the axes before the last two.
func (p *passed) sequences(t hooks.Tensor, rows int) int {
	n := p.batch.sequences
	if n == 0 {
		n = 1
		for i := range len(t.Shape) - 2 {
			n *= t.Shape[i]
		}
	}
	if rows%n != 0 {
		return 1
	}
	return n
}

// stopwatch tells the time of the model from that of the hooks.
type stopwatch struct {
	now    func() time.Time
	left   time.Time     // when the hook before was done with
	hidden time.Duration // of the model, up to hooks that were not shown
	hooks  time.Duration // in all hooks, for the trace, the statistics and the lines
}

// arrive is when a hook begins, and how long the model took since the last one that was shown.
func (w *stopwatch) arrive() (at time.Time, elapsed time.Duration) {
	at = w.now()
	return at, at.Sub(w.left) + w.hidden
}

// leave lets the model go on after a hook that began at a time.
func (w *stopwatch) leave(arrived time.Time) {
	w.left = w.now()
	w.hooks += w.left.Sub(arrived)
}
