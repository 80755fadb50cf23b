package arithmetic

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// roundedSteps is of how many operations a product may be that is asked whether a trace was rounded: a norm and the product. Of a whole attention
// the search for an arithmetic takes seconds.
const roundedSteps = 2

// Rounded reports whether a trace of 16 bits was computed in float32 and rounded at writing time. No operation can
// be recomputed from such a trace. wide is an isolator of the same trace for float32, with this dtype as
// [isolate.Options].Stored.
//
// The witnesses are entries computed without weights from captured tensors, such as a residual sum, because a wrong
// weight cannot explain them. Rounded requires three observations. The dtype's own arithmetic leaves elements in
// more than half of the witnesses. In float32, inputs within half a unit of the captured values give
// Thresholds.Wider.Rounded times as many witnesses as they fail (the failures are wrong in any arithmetic), with as
// many elements and rows as the proof of an arithmetic needs, in two places of a layer. And no arithmetic of 16
// bits explains the form.
func (k *Forms) Rounded(ctx context.Context, wide *isolate.Isolator) (bool, error) {
	i := k.I
	if i.Env().DType == hooks.F32 {
		return false, nil
	}
	forms := i.CapturedForms()
	var w witnesses
	for _, name := range forms.Names {
		before := len(w.given)
		for _, n := range forms.Nodes[name] {
			if w.looked == widerLooked || !weightless(i, n) {
				break
			}
			if !computesAnything(i, n) {
				continue // it was moved, and nothing else
			}
			e, err := i.Evidence(ctx, n)
			if err != nil {
				return false, err
			}
			if e == nil {
				continue
			}
			if err := w.ask(ctx, wide, e); err != nil {
				return false, err
			}
		}
		if len(w.given) > before {
			if f, err := k.Verdict(ctx, name); err != nil || f.Own != nil {
				return false, err
			}
		}
	}
	if !w.tell() || kinds(w.given) >= thresholds.Wider.Places {
		return w.tell(), nil
	}
	return k.roundedProducts(ctx, wide)
}

// witnesses are entries that were asked whether their inputs had more digits than were captured.
type witnesses struct {
	looked int
	given  []*isolate.Evidence // the dtype's own arithmetic leaves something, and such inputs give all of it
	wrong  int                 // neither gives them
}

// ask asks an entry; wide is the isolator of inputs with more digits.
func (w *witnesses) ask(ctx context.Context, wide *isolate.Isolator, e *isolate.Evidence) error {
	if w.looked++; len(e.Left) == 0 {
		return nil
	}
	gives, err := widerGives(ctx, wide, e.Node)
	if gives {
		w.given = append(w.given, e)
	} else if err == nil {
		w.wrong++
	}
	return err
}

// tell reports whether the witnesses suffice: more than half have elements left by the dtype's arithmetic,
// Thresholds.Wider.Rounded times as many are explained as are wrong, and the explained witnesses have the elements
// and rows of a proof.
func (w *witnesses) tell() bool {
	return mostOf(len(w.given)+w.wrong, w.looked) && len(w.given) >= thresholds.Wider.Rounded*w.wrong && proven(w.given)
}

// roundedProducts reports whether the products with weights show rounding at writing time, if only one place of a
// layer shows it without weights. Null hypothesis: the port computes in 16 bits, with an error of a unit in this
// place and mistakes in its weights. Statistic: most examined products have elements unexplained by the dtype's
// arithmetic, and inputs within half a unit explain all elements, in Thresholds.Wider.Places places. The products
// must not look quantised, since half a unit can hide the error of quantisation. A product with an arithmetic of 16
// bits does not count.
func (k *Forms) roundedProducts(ctx context.Context, wide *isolate.Isolator) (bool, error) {
	i := k.I
	products := ProductsOf(i)
	if q, err := LooksQuantised(ctx, i, products); err != nil || q.Text != "" {
		return false, err
	}
	products = slices.DeleteFunc(products, func(n order.Node) bool {
		cut, err := i.List().Cut(i.Has, n)
		return err != nil || len(cut.Steps) > roundedSteps
	})
	var w witnesses
	for _, n := range Spread(products, mostLooked) {
		e, err := i.Evidence(ctx, n)
		if err != nil {
			return false, err
		}
		if e == nil {
			continue
		}
		cut, err := i.List().Cut(i.Has, n)
		if err != nil {
			return false, err
		}
		if f, err := k.Verdict(ctx, i.FormOf(cut, n)); err != nil {
			return false, err
		} else if f.Own != nil {
			continue // the product has an arithmetic of 16 bits, or its cut hides the place of the rounding
		}
		if err := w.ask(ctx, wide, e); err != nil {
			return false, err
		}
	}
	return w.tell() && kinds(w.given) >= thresholds.Wider.Places, nil
}

// widerGives reports whether inputs that had more digits than were captured give an entry.
func widerGives(ctx context.Context, i *isolate.Isolator, n order.Node) (bool, error) {
	t, err := i.Trial(n)
	if isolate.Lacking(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, rest, _, err := t.Judge(ctx, &isolate.Arithmetic{Wide: true})
	return len(rest) == 0, err
}

// weightless reports whether nothing on the way from what was captured to an entry has weights.
func weightless(i *isolate.Isolator, n order.Node) bool {
	cut, err := i.List().Cut(i.Has, n)
	return err == nil && !slices.ContainsFunc(cut.Steps, func(n order.Node) bool { return len(i.List().At(n).Weights) > 0 })
}

// computesAnything reports whether something on the way from what was captured to an entry computes.
func computesAnything(i *isolate.Isolator, n order.Node) bool {
	cut, err := i.List().Cut(i.Has, n)
	if err != nil {
		return false
	}
	f, err := cut.Formula(i.Env().Passes, i.Env().DType)
	return err == nil && slices.ContainsFunc(f.Steps, func(s program.Step) bool { return s.Prim.Computes() })
}
