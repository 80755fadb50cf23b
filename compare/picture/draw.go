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
	l        *layout
	alone    bool
	unit     float64 // of the histogram
	masks    [2]float64
	errors   []float64 // by cell; −1 where no element counts
	worst    worst
	bins     [highestBin - lowestBin + 1]int64
	equal    int64
	infinite int64
	diff     []float64 // by head, Σ(l−r)²
	ref      []float64 // and Σr²
	count    []int64
	low      float64
	high     float64
	density  []int64
}

// Draw makes the picture of a pair. The error is that of reading.
func Draw(p compare.Pair) (*Tensor, error) {
	m := p.Row.Metrics
	d := newDrawing(p.Reference.Shape, p.Axes)
	d.masks, d.alone = p.Masks, p.Alone
	if m.Norm > 0 && m.Compared > 0 {
		d.unit = float64(m.Norm) / math.Sqrt(float64(m.Compared))
	}
	low, high := min(m.Local.Min, m.Reference.Min), max(m.Local.Max, m.Reference.Max)
	if low < high && !d.alone { // NaN where no element counts
		d.low, d.high = float64(low), float64(high)
		d.density = make([]int64, largeSide*largeSide)
	}
	if err := d.read(p.Local, p.Reference); err != nil {
		return nil, err
	}
	return d.tensor(p.Reference), nil
}

// Alone makes the picture of one tensor. What is below masked does not count; rms is the unit of its histogram. The error is that of
// reading.
func Alone(v measure.View, axes string, masked, rms float64) (*Tensor, error) {
	d := newDrawing(v.Shape, axes)
	d.alone, d.masks[0] = true, masked
	if rms > 0 && measure.Finite(rms) {
		d.unit = rms
	}
	if err := d.read(v, v); err != nil {
		return nil, err
	}
	return d.tensor(v), nil
}

func newDrawing(shape []int, axes string) *drawing {
	d := &drawing{l: newLayout(shape, axes), unit: 1, masks: [2]float64{math.Inf(-1), math.Inf(-1)}}
	d.errors = make([]float64, d.l.rows*d.l.columns)
	for i := range d.errors {
		d.errors[i] = -1
	}
	d.diff, d.ref, d.count = make([]float64, d.l.heads), make([]float64, d.l.heads), make([]int64, d.l.heads)
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
	switch {
	case err == 0:
		d.equal++
	case math.IsInf(err, 0):
		d.infinite++
	default:
		bin := min(max(math.Floor(2*math.Log10(err/d.unit)), lowestBin), highestBin)
		d.bins[int(bin)-lowestBin]++
	}
	if d.l.heads > 0 {
		d.diff[head] += float64(err * err)
		d.ref[head] += float64(y * y)
		d.count[head]++
	}
	if d.density != nil && !math.IsInf(err, 0) {
		span := d.high - d.low
		col := min(int((y-d.low)/span*largeSide), largeSide-1)
		row := largeSide - 1 - min(int((x-d.low)/span*largeSide), largeSide-1)
		if col >= 0 && row >= 0 && row < largeSide {
			d.density[row*largeSide+col]++
		}
	}
}

// tensor is the finished picture.
func (d *drawing) tensor(reference measure.View) *Tensor {
	t := &Tensor{Equal: d.equal, Infinite: d.infinite, Map: Map{
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
	if d.l.heads > 0 {
		t.Heads = d.heads()
	}
	if d.density != nil {
		codes := make([]byte, len(d.density))
		for i, n := range d.density {
			codes[i] = counted(n)
		}
		t.Scatter = &Scatter{Low: measure.Number(d.low), High: measure.Number(d.high), Side: largeSide, Code: letters(codes)}
	}
	d.histogram(t)
	for _, e := range d.worst {
		t.Worst = append(t.Worst, Element{reference.Place(e.at), measure.Number(e.local), measure.Number(e.refValue)})
	}
	return t
}

// heads are the errors of the heads: ‖l − r‖ / ‖r‖, and of a tensor alone the root mean squares.
func (d *drawing) heads() string {
	codes := make([]byte, d.l.heads)
	for h := range codes {
		switch {
		case d.count[h] == 0:
		case d.alone:
			codes[h] = decades(math.Sqrt(d.ref[h] / float64(d.count[h])))
		case math.IsInf(d.diff[h], 0) || d.diff[h] != d.diff[h]:
			codes[h] = nonFinite
		default:
			codes[h] = decades(measure.Ratio(math.Sqrt(d.diff[h]), math.Sqrt(d.ref[h])))
		}
	}
	return letters(codes)
}

// histogram leaves the empty bins at both ends out.
func (d *drawing) histogram(t *Tensor) {
	from, to := 0, len(d.bins)
	for from < to && d.bins[from] == 0 {
		from++
	}
	for to > from && d.bins[to-1] == 0 {
		to--
	}
	if from < to {
		t.From, t.Histogram = from+lowestBin, d.bins[from:to]
	}
}
