package debug

import (
	"time"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/lanes"
)

// passed is what the log knows about the running pass.
type passed struct {
	number, tensors  int
	full             bool // the pass is shown tensor by tensor
	bad              counts
	firstNaN         string
	section, slowest timed // the running section, and the slowest section that has ended
	elapsed          time.Duration
	batch            batch
	top              line // the most likely next token
	loss             float64
	hasLoss          bool
}

// counts are numbers of elements that are not finite.
type counts struct{ nan, posInf, negInf int64 }

func countsOf(m *lanes.Moments) counts { return counts{m.NaN, m.PosInf, m.NegInf} }

func (c *counts) add(o counts) {
	c.nan += o.nan
	c.posInf += o.posInf
	c.negInf += o.negInf
}

// timed is a section of a pass.
type timed struct {
	name    string // empty for no section
	tensors int
	elapsed time.Duration
}

// batch is the number of sequences of a pass, and of tokens in each sequence; 0 before the ids.
type batch struct{ sequences, tokens int }

// count adds a tensor, and reports whether the tensor is the first of the pass with a NaN.
func (p *passed) count(name string, m *lanes.Moments) (first bool) {
	p.tensors++
	p.bad.add(countsOf(m))
	if m.NaN == 0 || p.firstNaN != "" {
		return false
	}
	p.firstNaN = name
	return true
}

// sequences is the number of sequences in the rows of logits: the number in the ids, or else the product of the axes
// before the last two. It is 1 if the number does not divide the rows.
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

// stopwatch separates the time of the model from the time of the hooks.
type stopwatch struct {
	now    func() time.Time
	left   time.Time     // the end of the last hook
	hidden time.Duration // time of the model before hooks that were not shown
	hooks  time.Duration // time in all hooks, for the trace, the statistics and the lines
}

// arrive returns the time at which a hook begins, and the time of the model since the last hook that was shown.
func (w *stopwatch) arrive() (at time.Time, elapsed time.Duration) {
	at = w.now()
	return at, at.Sub(w.left) + w.hidden
}

// leave marks the end of a hook that began at arrived.
func (w *stopwatch) leave(arrived time.Time) {
	w.left = w.now()
	w.hooks += w.left.Sub(arrived)
}
