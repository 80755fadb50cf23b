package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Outcome is what isolation says of one entry.
type Outcome string

// The outcomes.
const (
	Exact    Outcome = "EXACT"    // every element is the rounded exact value
	Rounding Outcome = "ROUNDING" // every element is what correct arithmetic may make of the inputs
	Bug      Outcome = "BUG"      // some element is not
)

// Certificate is the verdict on one entry by itself: computed again from the trace's own inputs and compared, element by
// element, with what correct arithmetic can give.
type Certificate struct {
	Outcome  Outcome `json:"outcome"`
	Elements int64   `json:"elements"`
	Unequal  int64   `json:"unequal"` // elements that are not R(x), x being the exact value on the trace's inputs
	Outside  int64   `json:"outside"` // elements y outside R([x − δ, x + δ]), δ being the operation's bound
	// Worst is the largest |y − R(x)| of these, in units of δ or of the dtype's last place at x, whichever is larger.
	Worst Number `json:"worst,omitempty"`
	RelL2 Number `json:"rel_l2"` // ‖y − R(x)‖ / ‖R(x)‖, masked elements left out
	// From has the keys of the captured tensors that it was computed from.
	From []string `json:"from,omitempty"`
}

// Isolator computes entries of one trace from that trace's own captured ancestors and a checkpoint's weights.
type Isolator struct {
	trace   *capture.Trace
	list    *order.List
	env     order.Env
	derived map[string]bool // recomputed by the capturing side: says nothing about the engine
}

// NewIsolator prepares a trace of the model that list describes. weights are in the trace's dtype. The error says what a
// trace lacks: token ids, whole rows, a dtype.
func NewIsolator(t *capture.Trace, list *order.List, weights func(order.Weight) (op.Rows, error)) (*Isolator, error) {
	m := t.Manifest()
	switch {
	case list.Config == nil:
		return nil, errors.New("an order of names alone has no operations")
	case m.DType != hooks.F32 && m.DType != hooks.BF16 && m.DType != hooks.F16:
		return nil, errors.New("the trace does not say in which dtype it was computed")
	case len(m.Scope.Positions) > 0:
		return nil, errors.New("the trace has some positions only: operations need all rows")
	}
	passes, err := t.IDs()
	if err != nil {
		return nil, err
	}
	var tokens []int
	for _, ids := range passes {
		tokens = append(tokens, len(ids))
	}
	i := &Isolator{trace: t, list: list, derived: map[string]bool{}}
	for _, name := range m.Derived {
		i.derived[name] = true
	}
	i.env = order.Env{
		Arith: op.Arith{DType: m.DType, Emulated: true, Bounds: true}, Passes: order.Passes(tokens), Weights: weights,
		Read: func(n order.Node) (op.Value, error) { return t.Value(n.Pass, list.Entries[n.Entry].Name) },
	}
	return i, nil
}

// has reports whether a node was captured.
func (i *Isolator) has(n order.Node) bool {
	name := i.list.Entries[n.Entry].Name
	_, ok := i.trace.Lookup(n.Pass, name)
	return ok && !i.derived[name]
}

// Certify isolates one entry of one pass. The error is an [*order.BareError] when what it is made of was not captured, or
// that of reading the trace or the weights.
func (i *Isolator) Certify(ctx context.Context, name string, pass int) (*Certificate, error) {
	c, cut, err := i.certify(ctx, name, pass)
	if err != nil {
		return nil, err
	}
	for _, n := range cut.Leaves {
		c.From = append(c.From, capture.Key(n.Pass, i.list.Entries[n.Entry].Name, 0))
	}
	return c, nil
}

func (i *Isolator) certify(ctx context.Context, name string, pass int) (*Certificate, *order.Plan, error) {
	at := i.list.Index(name)
	if at < 0 || pass >= len(i.env.Passes) {
		return nil, nil, fmt.Errorf("the order has no %s in pass %d", name, pass)
	}
	rec, ok := i.trace.Lookup(pass, name)
	if !ok {
		return nil, nil, fmt.Errorf("the trace has no %s", capture.Key(pass, name, 0))
	}
	cut, err := i.list.Cut(i.has, order.Node{Entry: at, Pass: pass})
	if err != nil {
		return nil, nil, err
	}
	x, err := cut.Value(ctx, i.env)
	if err != nil {
		return nil, nil, err
	}
	y, err := i.trace.Value(pass, name)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Equal(x.Shape, y.Shape) {
		return nil, nil, fmt.Errorf("%s has shape %v, not %v", capture.Key(pass, name, 0), y.Shape, x.Shape)
	}
	return judgeIsolated(x, y, rec.DType), cut, nil
}

// judgeIsolated compares y, elements of dtype d, with what may become of x.
func judgeIsolated(x, y op.Value, d hooks.DType) *Certificate {
	c := &Certificate{Outcome: Exact, Elements: int64(len(y.Data))}
	huge := halfLargest(d)
	var dd, rr float64
	for k, v := range y.Data {
		want := floats.Round(d, x.Data[k])
		if v != want && (v == v || want == want) {
			c.Unequal++
			if !(v >= floats.Round(d, x.Data[k]-x.Bound[k]) && v <= floats.Round(d, x.Data[k]+x.Bound[k])) {
				c.Outside++
				c.Worst = max(c.Worst, Number(math.Abs(v-want)/max(x.Bound[k], lastPlace(d, want))))
			}
		}
		if math.Abs(v) < huge && math.Abs(want) < huge {
			dd += float64((v - want) * (v - want))
			rr += float64(want * want)
		}
	}
	c.RelL2 = Number(ratio(math.Sqrt(dd), math.Sqrt(rr)))
	switch {
	case c.Outside > 0:
		c.Outcome = Bug
	case c.Unequal > 0:
		c.Outcome = Rounding
	}
	return c
}

// lastPlace is the distance of d's numbers near x.
func lastPlace(d hooks.DType, x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, e-floats.Precision(d))
}
