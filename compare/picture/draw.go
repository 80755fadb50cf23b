package picture

import (
	"math"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/measure"
)

// chunk is how many elements are read at a time.
const chunk = 1 << 15

// The half decades of a histogram, of the error over the reference's root mean square.
const (
	lowestBin  = -24 // 1e−12 and below
	highestBin = 8   // 1e4 and above
)

// drawing is a picture that is being made.
type drawing struct {
	l         *layout
	alone     bool
	masks     [2]float64
	errors    []float64 // by cell; −1 where no element counts
	worst     worst
	histogram histogram
	heads     []head
	scatter   *scatter // nil for none
}

// histogram counts errors by their size.
type histogram struct {
	unit     float64
	bins     [highestBin - lowestBin + 1]int64
	equal    int64
	infinite int64
}

func (h *histogram) add(err float64) {
	switch {
	case err == 0:
		h.equal++
	case math.IsInf(err, 0):
		h.infinite++
	default:
		bin := min(max(math.Floor(2*math.Log10(err/h.unit)), lowestBin), highestBin)
		h.bins[int(bin)-lowestBin]++
	}
}

// into leaves the empty bins at both ends out.
func (h *histogram) into(t *Tensor) {
	t.Equal, t.Infinite = h.equal, h.infinite
	from, to := 0, len(h.bins)
	for from < to && h.bins[from] == 0 {
		from++
	}
	for to > from && h.bins[to-1] == 0 {
		to--
	}
	if from < to {
		t.From, t.Histogram = from+lowestBin, h.bins[from:to]
	}
}

// head is the sums of one head.
type head struct {
	diff, ref float64 // Σ(l−r)² and Σr²
	count     int64
}

func (h *head) add(y, err float64) {
	h.diff += float64(err * err)
	h.ref += float64(y * y)
	h.count++
}

// code returns a code of [decades] for a head: of the error ‖l − r‖ / ‖r‖, or for a single tensor of the root mean square.
func (h *head) code(alone bool) byte {
	switch {
	case h.count == 0:
		return 0
	case alone:
		return decades(math.Sqrt(h.ref / float64(h.count)))
	case math.IsInf(h.diff, 0) || h.diff != h.diff:
		return nonFinite
	}
	return decades(measure.Ratio(math.Sqrt(h.diff), math.Sqrt(h.ref)))
}

// scatter counts the elements by their values on both sides.
type scatter struct {
	low, high float64
	density   []int64
}

func (s *scatter) add(x, y float64) {
	span := s.high - s.low
	col := min(int((y-s.low)/span*largeSide), largeSide-1)
	row := largeSide - 1 - min(int((x-s.low)/span*largeSide), largeSide-1)
	if col >= 0 && row >= 0 && row < largeSide {
		s.density[row*largeSide+col]++
	}
}

func (s *scatter) finished() *Scatter {
	codes := make([]byte, len(s.density))
	for i, n := range s.density {
		codes[i] = counted(n)
	}
	return &Scatter{Low: measure.Number(s.low), High: measure.Number(s.high), Side: largeSide, Code: letters(codes)}
}

// draw makes the picture of a pair. The error is that of reading.
func draw(p compare.Pair) (*Tensor, error) {
	m := p.Row.Metrics
	d := newDrawing(p.Reference.Shape, p.Axes)
	d.masks, d.alone = p.Masks, p.Alone
	if m.Norm > 0 && m.Compared > 0 {
		d.histogram.unit = float64(m.Norm) / math.Sqrt(float64(m.Compared))
	}
	low, high := min(m.Local.Min, m.Reference.Min), max(m.Local.Max, m.Reference.Max)
	if low < high && !d.alone { // NaN where no element counts
		d.scatter = &scatter{low: float64(low), high: float64(high), density: make([]int64, largeSide*largeSide)}
	}
	if err := d.read(p.Local, p.Reference); err != nil {
		return nil, err
	}
	return d.tensor(p.Reference), nil
}

// drawOne makes the picture of one tensor. Elements below masked are excluded; rms is the unit of the histogram. The error is a read error.
func drawOne(v measure.View, axes string, masked, rms float64) (*Tensor, error) {
	d := newDrawing(v.Shape, axes)
	d.alone, d.masks[0] = true, masked
	if rms > 0 && measure.Finite(rms) {
		d.histogram.unit = rms
	}
	if err := d.read(v, v); err != nil {
		return nil, err
	}
	return d.tensor(v), nil
}

func newDrawing(shape []int, axes string) *drawing {
	d := &drawing{l: newLayout(shape, axes), histogram: histogram{unit: 1}, masks: [2]float64{math.Inf(-1), math.Inf(-1)}}
	d.errors = make([]float64, d.l.rows*d.l.columns)
	for i := range d.errors {
		d.errors[i] = -1
	}
	d.heads = make([]head, d.l.heads)
	return d
}

// read takes in all elements of both views.
func (d *drawing) read(local, reference measure.View) error {
	n := measure.Elements(reference.Shape)
	l, r := make([]float64, min(n, chunk)), make([]float64, min(n, chunk))
	for at := 0; at < n; at += chunk {
		size := min(chunk, n-at)
		if err := reference.Values(r[:size], at); err != nil {
			return err
		}
		if d.alone {
			d.elements(at, r[:size], r[:size]) // nothing is written to either
			continue
		}
		if err := local.Values(l[:size], at); err != nil {
			return err
		}
		d.elements(at, l[:size], r[:size])
	}
	return nil
}

// elements takes in those from element at on.
func (d *drawing) elements(at int, l, r []float64) {
	for i := 0; i < len(l); {
		row, across, head, n := d.l.run(at + i)
		n = min(n, len(l)-i)
		cells := d.errors[row*d.l.columns : (row+1)*d.l.columns]
		for k := range n {
			x, y := l[i+k], r[i+k]
			err, counts := d.error(x, y)
			if !counts {
				continue
			}
			if cell := d.l.column[across+k]; err > cells[cell] {
				cells[cell] = err
			}
			d.add(int64(at+i+k), head, x, y, err)
		}
		i += n
	}
}

// error is how far apart two elements are; counts is false for what is masked, or not finite in the same way, on both sides.
func (d *drawing) error(x, y float64) (err float64, counts bool) {
	if d.alone {
		switch {
		case x < d.masks[0]:
			return 0, false
		case !measure.Finite(x):
			return math.Inf(1), true
		}
		return math.Abs(x), true
	}
	hiddenL, hiddenR := x < d.masks[0], y < d.masks[1]
	finite := measure.Finite(x) && measure.Finite(y)
	switch {
	case hiddenL && hiddenR:
		return 0, false
	case hiddenL != hiddenR:
		return math.Inf(1), true
	case finite:
		return math.Abs(x - y), true
	case x == y || x != x && y != y:
		return 0, false
	}
	return math.Inf(1), true
}

// add counts an element.
func (d *drawing) add(at int64, head int, x, y, err float64) {
	if err != 0 {
		d.worst.add(ranked{at, err, x, y})
	}
	d.histogram.add(err)
	if len(d.heads) > 0 {
		d.heads[head].add(y, err)
	}
	if d.scatter != nil && !math.IsInf(err, 0) {
		d.scatter.add(x, y)
	}
}

// tensor is the finished picture.
func (d *drawing) tensor(reference measure.View) *Tensor {
	t := &Tensor{Map: Map{
		Down: d.l.downName, Across: d.l.acrossName, Size: [2]int{d.l.down, d.l.across}, Cells: [2]int{d.l.rows, d.l.columns},
	}}
	top := 0.0
	for _, e := range d.errors {
		if e > top && !math.IsInf(e, 0) {
			top = e
		}
	}
	codes := make([]byte, len(d.errors))
	for i, e := range d.errors {
		if e >= 0 {
			codes[i] = relativeTo(top, e)
		}
	}
	t.Map.Top, t.Map.Codes = measure.Number(top), letters(codes)
	if len(d.heads) > 0 {
		codes := make([]byte, len(d.heads))
		for i := range d.heads {
			codes[i] = d.heads[i].code(d.alone)
		}
		t.Heads = letters(codes)
	}
	if d.scatter != nil {
		t.Scatter = d.scatter.finished()
	}
	d.histogram.into(t)
	for _, e := range d.worst {
		t.Worst = append(t.Worst, Element{reference.Place(e.at), measure.Number(e.local), measure.Number(e.refValue)})
	}
	return t
}
