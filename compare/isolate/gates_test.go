package isolate_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"
	"github.com/tracediff/tracediff/internal/testengine"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// pairing is a port's tensor beside the reference's and a healthy port's: what the gates of other tools look at.
type pairing struct {
	shape              []int
	ref, port, healthy []float32
	dtype              hooks.DType
}

// toolGate is the default gate of another tool, from its formula: pass reports whether the pair does.
type toolGate struct {
	name string
	pass func(*measures) bool
}

// measures is one pass over a pair.
type measures struct {
	n                      float64
	rr, pp, rp, dd, ff     float64 // squares of the reference, the port, their product, the difference and the healthy port's
	sumR, sumP             float64
	maxDiff, maxR, maxP    float64
	statR, statP           [4]float64 // max, min, mean, norm
	nan                    bool
	elementwise, ofOneE5   bool // every element within the dtype's tolerance of torch.testing; within 1e-5 + 1e-5·|r|
	rows, columns          [2][]float64
	floorRows, floorColumn []float64
}

// gates are those of other tools, with the limits that they have by default.
var gates = []toolGate{
	{"torch", func(m *measures) bool { return m.elementwise }},
	{"Polygraphy 1e-5", func(m *measures) bool { return m.ofOneE5 }},
	{"SGLang 1e-3", func(m *measures) bool { return 1-2*m.rp/(m.rr+m.pp) < 1e-3 }},
	{"msprobe tensor", func(m *measures) bool {
		cos := m.cosine()
		return !(cos < 0.99 && m.maxDiff > 0.001) && !(cos < 0.9 || m.maxDiff > 1)
	}},
	{"msprobe stats .5", func(m *measures) bool {
		for i, r := range m.statR {
			if !(math.Abs(m.statP[i]-r) <= 0.5*math.Abs(r)) {
				return false
			}
		}
		return true
	}},
	{"PCC .9999", func(m *measures) bool { return m.pearson() >= 0.9999 }},
	{"PCC .99", func(m *measures) bool { return m.pearson() >= 0.99 }},
	{"cos .99", func(m *measures) bool { return m.cosine() >= 0.99 }},
	{"MIGraphX 1e-3", func(m *measures) bool { return m.rms() <= 1e-3 }},
	{"MIGraphX 8e-2", func(m *measures) bool { return m.rms() <= 8e-2 }},
	{"NMSE 1e-2", func(m *measures) bool { return m.dd/m.rr <= 1e-2 }},
	{"Neuron Linf .01", func(m *measures) bool { return m.maxDiff/m.maxR <= 0.01 }},
	{"Neuron ratio 1.5", func(m *measures) bool { return math.Sqrt(m.dd/m.ff) <= 1.5 }},
	{"worst slice ratio 3", func(m *measures) bool { return m.slices() <= 3 }},
}

func (m *measures) cosine() float64 { return m.rp / math.Sqrt(m.rr*m.pp) }

func (m *measures) pearson() float64 {
	cov := m.rp - m.sumR*m.sumP/m.n
	return cov / math.Sqrt((m.rr-m.sumR*m.sumR/m.n)*(m.pp-m.sumP*m.sumP/m.n))
}

// rms is the root mean square of the difference over the largest number of either side.
func (m *measures) rms() float64 { return math.Sqrt(m.dd/m.n) / max(m.maxR, m.maxP) }

// slices is how much further off the port's worst row or column is than the healthy port's, relative to the slice.
func (m *measures) slices() float64 {
	worst := func(diff, ref []float64) (w float64) {
		for i, d := range diff {
			if ref[i] > 0 {
				w = max(w, math.Sqrt(d/ref[i]))
			}
		}
		return w
	}
	return max(worst(m.rows[0], m.rows[1])/worst(m.floorRows, m.rows[1]), worst(m.columns[0], m.columns[1])/worst(m.floorColumn, m.columns[1]))
}

// measure looks at the pair as rows of the last axis.
func (p pairing) measure() *measures {
	last := p.shape[len(p.shape)-1]
	rows := len(p.ref) / last
	m := &measures{n: float64(len(p.ref)), elementwise: true, ofOneE5: true, floorRows: make([]float64, rows), floorColumn: make([]float64, last)}
	for i := range 2 {
		m.rows[i], m.columns[i] = make([]float64, rows), make([]float64, last)
		infinity := math.Inf(1)
		m.statR, m.statP = [4]float64{-infinity, infinity}, [4]float64{-infinity, infinity}
	}
	rtol := 1.3e-6
	if p.dtype == hooks.BF16 {
		rtol = 1.6e-2
	}
	for i := range p.ref {
		r, y, h := float64(p.ref[i]), float64(p.port[i]), float64(p.healthy[i])
		d, f := y-r, h-r
		m.nan = m.nan || y != y
		m.rr, m.pp, m.rp, m.dd, m.ff = m.rr+r*r, m.pp+y*y, m.rp+r*y, m.dd+d*d, m.ff+f*f
		m.sumR, m.sumP = m.sumR+r, m.sumP+y
		m.maxDiff, m.maxR, m.maxP = max(m.maxDiff, math.Abs(d)), max(m.maxR, math.Abs(r)), max(m.maxP, math.Abs(y))
		m.statR[0], m.statR[1], m.statP[0], m.statP[1] = max(m.statR[0], r), min(m.statR[1], r), max(m.statP[0], y), min(m.statP[1], y)
		m.elementwise = m.elementwise && math.Abs(d) <= 1e-5+rtol*math.Abs(r)
		m.ofOneE5 = m.ofOneE5 && math.Abs(d) <= 1e-5+1e-5*math.Abs(r)
		row, column := i/last, i%last
		for k, v := range []float64{d * d, r * r} {
			m.rows[k][row] += v
			m.columns[k][column] += v
		}
		m.floorRows[row] += f * f
		m.floorColumn[column] += f * f
	}
	m.statR[2], m.statR[3], m.statP[2], m.statP[3] = m.sumR/m.n, math.Sqrt(m.rr), m.sumP/m.n, math.Sqrt(m.pp)
	return m
}

// caught says of each gate whether it stops the pair. All of them look for NaN first.
func (p pairing) caught() []bool {
	m := p.measure()
	out := make([]bool, len(gates))
	for i, g := range gates {
		out[i] = m.nan || !g.pass(m)
	}
	return out
}

// exactReference is a tensor of a trace that ports are compared with.
type exactReference struct {
	list  *order.List
	trace *capture.Trace
	shape []int
}

func newExactReference(t testing.TB, letters string, shape []int, values []float32) exactReference {
	t.Helper()
	list := tiny(t)
	input, _ := list.Lookup(order.InputIDs)
	a := singles.Array{Shape: shape, Data: values}
	return exactReference{
		list.Keep([]*order.Entry{input, a.Entry("tensor", op.Identity{}, letters)}),
		testengine.Build(t, testengine.Manifest("reference", hooks.F32), tokensOf(2), a.Event("tensor", hooks.F32)), shape,
	}
}

// errors is what our own comparison measures of a port: the relative L2 of the tensor, and of the worst slice of each axis.
// NaN comes out as an infinite error.
func (r exactReference) errors(t testing.TB, port []float32) map[string]float64 {
	t.Helper()
	local := testengine.Build(t, testengine.Manifest("local", hooks.F32), tokensOf(2), singles.Array{Shape: r.shape, Data: port}.Event("tensor", hooks.F32))
	row := compared(t, local, r.trace, compare.Options{Order: r.list, All: true}).Rows[1]
	if row.Class == gate.NonFinite {
		return map[string]float64{"tensor": math.Inf(1)}
	}
	errors := map[string]float64{"tensor": float64(row.Metrics.RelL2)}
	for _, a := range row.Metrics.Axes {
		errors[a.Axis] = float64(a.RelL2)
	}
	return errors
}

// above is how many times its noise floor a port is off, in what it is off most.
func above(errors, floor map[string]float64) (k float64) {
	for what, err := range errors {
		k = max(k, err/floor[what])
	}
	return k
}
