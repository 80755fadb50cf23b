package debug

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// converged is the largest change from one step of a series to the next, relative to the length of the step, that counts
// as no change. A hundredth is a few units of bfloat16's last place.
const converged = 0.01

// stepMark stands between the name of a series and the number of a step.
const stepMark = ".step."

// The last parts of the names of series that describe another series: the confidence of the model, and its loss.
const (
	confidence = "confidence"
	loss       = "loss"
)

// step reads SERIES.step.N.
func step(name string) (series string, n int, ok bool) {
	i := strings.LastIndex(name, stepMark)
	if i <= 0 || !digits(name[i+len(stepMark):]) {
		return "", 0, false
	}
	n, err := strconv.Atoi(name[i+len(stepMark):])
	return name[:i], n, err == nil
}

// steps are the series of one pass, in the order of their first steps, with the confidences and losses recorded
// for each series.
type steps struct {
	running []*series
	about   map[string][]*mean // confidences and losses by name, then by chunk
	chunks  map[string]int     // the number of times that a series began
}

// series has the last step of one series, as a whole, for comparison with the next step.
type series struct {
	name        string
	chunk       int // of this pass
	last, count int
	tensor      hooks.Tensor  // a copy of the last step
	settled     int           // the step from which on nothing has changed; −1 while the series still changes
	began, done time.Duration // time of the pass before the first step, and at the last step
}

// mean is the mean of numbers that come one at a time. NaN is not counted.
type mean struct {
	n         int
	sum, last float64
}

func (m *mean) add(x float64) {
	if x == x {
		m.n++
		m.sum += x
		m.last = x
	}
}

// mean and latest are NaN before the first number.
func (m *mean) mean() float64 { return m.sum / float64(m.n) }

func (m *mean) latest() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.last
}

// merge adds the numbers of o.
func (m *mean) merge(o *mean) {
	m.n, m.sum = m.n+o.n, m.sum+o.sum
	if o.n > 0 {
		m.last = o.last
	}
}

// companion reports whether a series holds the confidence or the loss of a different series.
func companion(name string) bool {
	last := lastPart(name)
	return last == confidence || last == loss
}

// step shows the change that a step made to its series. elapsed is the time before the step.
func (d *Log) step(e hooks.Event, name string, n int, elapsed time.Duration) {
	s := d.running(name, n, elapsed)
	before, similarity, change := s.last, math.NaN(), math.NaN()
	if s.count > 0 && !companion(name) {
		similarity, change = compared(s.tensor, e.Tensor)
		s.settle(n, change)
	}
	value := said(name, e.Tensor)
	about := d.steps.of(name, s.chunk)
	about.add(value)
	if d.pass.full {
		l := &d.line
		l.begin("step")
		l.int("pass", int64(d.pass.number))
		l.word("series", name)
		l.int("step", int64(n))
		if s.count == 0 {
			l.word("before", "-")
		} else {
			l.int("before", int64(before))
		}
		l.number("similarity", similarity)
		l.number("change", change)
		if lastPart(name) == loss {
			l.number("confidence", math.NaN())
			l.number("loss", value)
		} else {
			l.number("confidence", value)
		}
		l.end()
	}
	s.keep(n, e.Tensor)
	s.done = d.pass.elapsed
}

// running returns the series of a step. A step with a number that is not above the last number begins the series
// anew.
func (d *Log) running(name string, n int, elapsed time.Duration) *series {
	at := slices.IndexFunc(d.steps.running, func(s *series) bool { return s.name == name })
	if at >= 0 && n > d.steps.running[at].last {
		return d.steps.running[at]
	}
	if at >= 0 {
		d.endOne(d.steps.running[at])
		d.steps.running = slices.Delete(d.steps.running, at, at+1)
	}
	if d.steps.chunks == nil {
		d.steps.chunks, d.steps.about = map[string]int{}, map[string][]*mean{}
	}
	s := &series{name: name, chunk: d.steps.chunks[name], settled: -1, began: d.pass.elapsed - elapsed}
	d.steps.chunks[name]++
	d.steps.running = append(d.steps.running, s)
	return s
}

// of returns the numbers recorded under a name for a chunk; the first call for a chunk makes an empty mean.
func (s *steps) of(name string, chunk int) *mean {
	for len(s.about[name]) <= chunk {
		s.about[name] = append(s.about[name], &mean{})
	}
	return s.about[name][chunk]
}

// settle notes whether a step still changed the series.
func (s *series) settle(n int, change float64) {
	switch {
	case !(change <= converged): // NaN counts as a change
		s.settled = -1
	case s.settled < 0:
		s.settled = n
	}
}

// keep stores a step for comparison with the next step.
func (s *series) keep(n int, t hooks.Tensor) {
	s.last = n
	s.count++
	if !companion(s.name) {
		s.tensor = hooks.Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), Data: append(s.tensor.Data[:0], t.Data...)}
	}
}

// endSeries ends and forgets all series of a pass.
func (d *Log) endSeries() {
	for _, s := range d.steps.running {
		d.endOne(s)
	}
	d.steps = steps{}
}

// endOne writes the line of a series that has ended: the number of steps, the confidence and the loss at the last step, and
// the time of the whole refinement.
func (d *Log) endOne(s *series) {
	if companion(s.name) {
		return
	}
	sure, lost := d.steps.aside(s, confidence), d.steps.aside(s, loss)
	if sure.n == 0 {
		sure = d.steps.of(s.name, s.chunk) // the confidence of the logits
	}
	d.total.series(s, sure, lost)
	if !d.pass.full {
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
	d.line.number("confidence", sure.latest())
	d.line.number("loss", lost.latest())
	d.line.ms("ms", s.done-s.began)
	d.line.end()
}

// aside is the confidence or the loss that the model recorded for a series, under the name of the series with part
// as the last part.
func (s *steps) aside(of *series, part string) *mean {
	return s.of(strings.TrimSuffix(of.name, lastPart(of.name))+part, of.chunk)
}

// compared returns how similar two steps are, and how large the change is: the cosine, and ‖b − a‖ / ‖b‖. For whole numbers,
// such as tokens, the two results are the shares of elements that stayed and that changed. Both are NaN for tensors of
// different shape or dtype, and for an element that is not finite.
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
		return sum.Cosine(), 0 // two zero tensors too, whose cosine is not defined
	}
	return sum.Cosine(), math.Sqrt(sum.Diff / sum.Ref)
}

// said is the number that a step adds to its series: the mean of a confidence or a loss, or, for logits, the mean over the
// rows of the largest probability. It is NaN for any other tensor.
func said(name string, t hooks.Tensor) float64 {
	switch lastPart(name) {
	case confidence, loss:
		var m lanes.Moments
		if m.Tensor(t) == nil {
			return certain(&m)
		}
	case "logits":
		return meanLargest(t)
	}
	return math.NaN()
}

func meanLargest(t hooks.Tensor) float64 {
	if lastAxis(t) == 0 {
		return math.NaN()
	}
	row := make([]float64, lastAxis(t))
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
