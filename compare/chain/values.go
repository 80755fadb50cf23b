package chain

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

const (
	// exactly is what float64 makes of the same numbers in another order, relative to an element and to the largest of a tensor.
	exactly      = 1e-9
	exactlyLeast = 1e-14
	// turned is the same for angles, which are float32 in every arithmetic: of an angle of one radian. Relative to the norm.
	turnedAngle = 0x1p-20
	// stir is the relative size of the random change made to inputs, to test whether an entry depends on them. It
	// does if it moves by more than stirBack.
	stir     = 0x1p-7
	stirBack = stir / 100
)

// values computes a node in exact arithmetic from its inputs, three times: without edits, with the edits, and with
// random values in the changed inputs. It returns false for an operation without steps, and for an edit that does
// not apply to the operation.
func (l *reparametrisations) values(ctx context.Context, c *node, e Edit) (bool, error) {
	for k := range c.own {
		if k == 2 && len(c.from) == 0 {
			break
		}
		with := e
		if k != 1 {
			with = nil
		}
		v, ok, err := l.value(ctx, c.Node, k, with)
		if !ok || err != nil {
			return false, err
		}
		c.own[k] = v
	}
	return true, nil
}

// value is one of these.
func (l *reparametrisations) value(ctx context.Context, n order.Node, k int, e Edit) (program.Value, bool, error) {
	t, err := l.i.Trial(n)
	if err != nil {
		return program.Value{}, false, err
	}
	t.Read = func(at order.Node) (program.Value, error) {
		if from := l.nodes[at]; from != nil && from.is == inside {
			return from.own[k], nil
		}
		return l.i.Env().Read(at)
	}
	if err := t.Prepare(ctx); err != nil || t.Formula == nil {
		return program.Value{}, false, err
	}
	p, call := t.Formula.Program, t.Call
	if e != nil {
		var ok bool
		if p, call, ok, err = e.Program(ctx, t); !ok || err != nil {
			return program.Value{}, false, err
		}
	}
	call.Arith = program.Arith{DType: l.i.Env().DType}
	v, err := p.Eval(call)
	return v, true, err
}

// same reports whether the edits change nothing of a node.
func (l *reparametrisations) same(c *node) bool {
	x, y := c.own[0].Data, c.own[1].Data
	if len(x) != len(y) {
		return false
	}
	if c.turned {
		return apart(x, y) <= l.angle()
	}
	return near(x, y, 1)
}

// angle bounds the rotation of a vector by rotary tables of other, cancelling positions, relative to the vector.
func (l *reparametrisations) angle() float64 {
	last := l.i.Env().Passes[len(l.i.Env().Passes)-1]
	return turnedAngle * float64(1+last.Past+last.Tokens)
}

// moved reports whether a node has the elements that it has without edits, moved, scaled or turned.
func (l *reparametrisations) moved(c *node) bool {
	if !c.turned {
		return moved(c.own[0], c.own[1], l.i.List().At(c.Node).Axes)
	}
	return len(c.from) == 0 || turned(c.own[0], c.own[1], l.angle())
}

// turned reports whether every row of y has the length of the same row of x.
func turned(x, y program.Value, most float64) bool {
	n := x.Shape[len(x.Shape)-1]
	for at := 0; at+n <= len(x.Data); at += n {
		a, b := square(x.Data[at:][:n]), square(y.Data[at:][:n])
		if !(math.Abs(a-b) <= 2*most*a) {
			return false
		}
	}
	return true
}

// near reports whether y is s·x, element by element.
func near(x, y []float64, s float64) bool {
	most := 0.0
	for _, v := range x {
		if a := math.Abs(v); a > most && !math.IsInf(a, 0) {
			most = a
		}
	}
	for i, v := range x {
		v *= s
		if !(math.Abs(y[i]-v) <= exactly*math.Abs(v)+exactlyLeast*most*math.Abs(s)) && y[i] != v {
			return false
		}
	}
	return true
}

// apart is ‖y − x‖ / ‖x‖; infinite where x is zero and y is not, and NaN where either has one.
func apart(x, y []float64) float64 {
	var dd, xx float64
	for i, v := range x {
		if v != y[i] { // infinities
			dd += float64((y[i] - v) * (y[i] - v))
		}
		if !math.IsInf(v, 0) {
			xx += float64(v * v)
		}
	}
	if dd == 0 {
		return 0
	}
	return math.Sqrt(dd / xx)
}

// responds reports whether a tensor moved with what it is computed from.
func responds(x, stirred program.Value) bool {
	return len(x.Data) == len(stirred.Data) && apart(x.Data, stirred.Data) >= stirBack
}

// stirred is a tensor with every element changed by another part of itself.
func stirred(x program.Value) program.Value {
	out := program.Value{Shape: x.Shape, Data: slices.Clone(x.Data)}
	state := uint64(1)
	for i := range out.Data {
		state = state*6364136223846793005 + 1442695040888963407
		out.Data[i] *= 1 + stir*(float64(state>>11)/(1<<52)-1)
	}
	return out
}

// moved reports whether y has the elements of x scaled by a common factor, or the slices of one axis permuted and
// scaled. The axes of tokens and keys are skipped, since a permutation of tokens is not a reparametrisation.
func moved(x, y program.Value, axes string) bool {
	s := math.Sqrt(square(y.Data) / square(x.Data))
	if len(x.Data) != len(y.Data) || s-s != 0 || s == 0 {
		return false
	}
	if near(x.Data, y.Data, s) || near(x.Data, y.Data, -s) {
		return true
	}
	for d := range x.Shape {
		if d >= len(axes) || strings.ContainsRune(string(order.AxisToken)+string(order.AxisKey), rune(axes[d])) {
			continue
		}
		if permuted, ok := slicesOf(x, y, d, s); ok && permuted {
			return true
		}
	}
	return false
}

func square(x []float64) (sum float64) {
	for _, v := range x {
		sum += float64(v * v)
	}
	return sum
}

// slicesOf reports whether every slice of y along an axis is one of x, each once.
func slicesOf(x, y program.Value, axis int, s float64) (permuted, ok bool) {
	n := x.Shape[axis]
	slice := func(v program.Value, at int) []float64 {
		inner := program.Size(v.Shape[axis+1:])
		var out []float64
		for block := at * inner; block < len(v.Data); block += n * inner {
			out = append(out, v.Data[block:block+inner]...)
		}
		return out
	}
	rest := make([][]float64, n)
	for k := range rest {
		rest[k] = slice(x, k)
	}
	for k := range n {
		want := slice(y, k)
		at := slices.IndexFunc(rest, func(r []float64) bool { return r != nil && near(r, want, s) })
		if at < 0 {
			return false, false
		}
		permuted = permuted || at != k
		rest[at] = nil
	}
	return permuted, true
}
