package debug

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// Converged is the change from one step of a series to the next, relative to the step's length, up to which it counts as
// none: a hundredth, which is a few units of bfloat16's last place.
const Converged = 0.01

// stepMark stands between the name of a series and the number of a step.
const stepMark = ".step."

// confidence is the last part of the name of a series that records how sure the model is.
const confidence = "confidence"

// step reads SERIES.step.N.
func step(name string) (series string, n int, ok bool) {
	i := strings.LastIndex(name, stepMark)
	if i <= 0 || !digits(name[i+len(stepMark):]) {
		return "", 0, false
	}
	n, err := strconv.Atoi(name[i+len(stepMark):])
	return name[:i], n, err == nil
}

// steps are the series of one pass, in the order of their first steps.
type steps []*series

// series is what is kept of one: its last step, whole.
type series struct {
	name        string
	last, count int
	tensor      hooks.Tensor // the last step's, copied
	settled     int          // the step from which on nothing has changed; −1 for none
}

// step shows what a step of a series changed.
func (d *Log) step(e hooks.Event, name string, n int) {
	at := slices.IndexFunc(d.steps, func(s *series) bool { return s.name == name })
	if at >= 0 && n <= d.steps[at].last { // it starts anew
		d.endOne(d.steps[at])
		d.steps = slices.Delete(d.steps, at, at+1)
		at = -1
	}
	l := &d.line
	l.begin("step")
	l.int("pass", int64(d.pass.number))
	l.word("series", name)
	l.int("step", int64(n))
	if at < 0 {
		d.steps = append(d.steps, &series{name: name, settled: -1})
		at = len(d.steps) - 1
		l.word("before", "-")
		l.number("similarity", math.NaN())
		l.number("change", math.NaN())
	} else {
		s := d.steps[at]
		similarity, change := math.NaN(), math.NaN()
		if lastPart(name) != confidence { // which is about another series
			similarity, change = compared(s.tensor, e.Tensor)
		}
		l.int("before", int64(s.last))
		l.number("similarity", similarity)
		l.number("change", change)
		s.settle(n, change)
	}
	l.number("confidence", sureness(name, e.Tensor))
	l.end()
	d.steps[at].keep(n, e.Tensor)
}

// settle notes whether a step still changed anything.
func (s *series) settle(n int, change float64) {
	switch {
	case !(change <= Converged): // nor is NaN at rest
		s.settled = -1
	case s.settled < 0:
		s.settled = n
	}
}

// keep remembers a step for the next one.
func (s *series) keep(n int, t hooks.Tensor) {
	s.last = n
	s.count++
	s.tensor = hooks.Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), Data: append(s.tensor.Data[:0], t.Data...)}
}

// endSeries says how the series of a pass ended, and forgets them.
func (d *Log) endSeries() {
	for _, s := range d.steps {
		d.endOne(s)
	}
	d.steps = nil
}

func (d *Log) endOne(s *series) {
	if lastPart(s.name) == confidence {
		return
	}
	outcome := fmt.Sprintf("hit the maximum of %d steps", s.count)
	if s.settled >= 0 {
		outcome = fmt.Sprintf("converged at step %d", s.settled)
	}
	d.line.begin("series")
	d.line.int("pass", int64(d.pass.number))
	d.line.word("series", s.name)
	d.line.int("steps", int64(s.count))
	d.line.text("outcome", outcome)
	d.line.end()
}

// compared returns how alike two steps are, and how much the later changed: the cosine and ‖b − a‖ / ‖b‖; of whole numbers,
// such as tokens, the shares of elements that stayed and that changed. Both are NaN for tensors of different shape or dtype,
// and where an element is no finite number.
func compared(a, b hooks.Tensor) (similarity, change float64) {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || len(b.Data) == 0 {
		return math.NaN(), math.NaN()
	}
	var x, y [lanes.Strip]float64
	var sum lanes.Squares
	size, equal := b.DType.Size(), 0
	for at := 0; at < len(b.Data); at += lanes.Strip * size {
		n := min(lanes.Strip, (len(b.Data)-at)/size)
		if floats.Decode(x[:n], a.DType, a.Data[at:]) != nil || floats.Decode(y[:n], b.DType, b.Data[at:]) != nil {
			return math.NaN(), math.NaN()
		}
		sum.Add(lanes.Products(x[:n], y[:n]))
		for i := range n {
			if x[i] == y[i] {
				equal++
			}
		}
	}
	if !b.DType.Float() {
		same := float64(equal) / float64(len(b.Data)/size)
		return same, 1 - same
	}
	if !(sum.Local+sum.Ref < math.Inf(1)) {
		return math.NaN(), math.NaN()
	}
	if sum.Diff == 0 {
		return sum.Cosine(), 0 // also of zeros, which have no direction
	}
	return sum.Cosine(), math.Sqrt(sum.Diff / sum.Ref)
}

// sureness is what a series records of its confidence: the mean of a tensor of that name, and of logits the mean, over the
// rows, of the largest probability. It is NaN of any other.
func sureness(name string, t hooks.Tensor) float64 {
	switch lastPart(name) {
	case confidence:
		var m lanes.Moments
		if m.Tensor(t) == nil && m.NaN+m.PosInf+m.NegInf == 0 {
			return m.Summary(1).Mean
		}
	case "logits":
		return meanLargest(t)
	}
	return math.NaN()
}

func meanLargest(t hooks.Tensor) float64 {
	if lastRow(t) == nil {
		return math.NaN()
	}
	row := make([]float64, t.Shape[len(t.Shape)-1])
	sum, rows, bytes := 0.0, 0, len(row)*t.DType.Size()
	for at := 0; at < len(t.Data); at += bytes {
		if floats.Decode(row, t.DType, t.Data[at:]) != nil {
			return math.NaN()
		}
		sum += 1 / denominator(row, slices.Max(row))
		rows++
	}
	return sum / float64(rows)
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
