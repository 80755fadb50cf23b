package arithmetic

import (
	"context"
	"testing"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// SetThresholds changes the thresholds until the test ends.
func SetThresholds(t *testing.T, change func(*Thresholds)) {
	t.Helper()
	old := thresholds
	t.Cleanup(func() { thresholds = old })
	change(&thresholds)
}

// CodeConditions are the conditions of [Coded], in the order of [CodeLook].Holds.
var CodeConditions = []string{"Elements, Coarse", "Least, Most", "Slope", "Parts, Apart", "Alike"}

// MostLooked is the number of products that LooksQuantised examines.
const MostLooked = mostLooked

// CodeLook is a product, and which conditions of [Coded] hold for it.
type CodeLook struct {
	Wrong bool // elements are outside the bounds of rounding
	Holds []bool
}

// LookAtCodes asks every condition of [Coded] of a product. It returns nil for a product that cannot be computed.
func LookAtCodes(ctx context.Context, i *isolate.Isolator, n order.Node) (*CodeLook, error) {
	whole, err := i.Unread(n, i.Has)
	if isolate.Lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	least := thresholds.Codes.Product.Elements
	if i.Env().DType == hooks.BF16 {
		least = thresholds.Codes.Product.Coarse
	}
	l, enough := &CodeLook{}, true
	var j *isolate.Judgement
	for _, most := range []int{isolate.FocusTokens, whole.Block()} {
		t, err := isolate.Beginning(whole, most)
		if err != nil {
			return nil, err
		}
		if j, err = t.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{}}); err != nil {
			return nil, err
		}
		outside := len(j.Outside())
		l.Wrong = l.Wrong || outside > 0
		enough = enough && float64(outside) >= least*float64(len(j.Y.Data))
	}
	c := newCoding(i.List().At(n), j.X, j.Y)
	same, err := asInputs(i, n, c)
	l.Holds = []bool{enough, c.sized(), c.noFactor(), c.even(), same}
	return l, err
}

// SuspectForm is a form that a majority decided, with suspects.
type SuspectForm struct {
	Thin           bool // some of its suspects are not accused
	Other          bool // decided by an arithmetic other than transformers'
	Held, Suspects []order.Node
	Strictly       []order.Node // of the held entries, those that transformers' arithmetic explains
}

// Suspected returns the suspects of a form, or nil if the form has none. left is the number of entries of the form that transformers' arithmetic does not explain.
func (k *Forms) Suspected(ctx context.Context, name isolate.FormKey) (f *SuspectForm, left int, err error) {
	v, err := k.Verdict(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	f = &SuspectForm{Thin: v.thin != (thin{}), Other: v.Own != nil && !v.Own.Strict()}
	for _, n := range k.I.CapturedForms().Nodes[name] {
		e, err := k.I.Evidence(ctx, n)
		if err != nil {
			return nil, 0, err
		} else if e == nil {
			continue
		}
		if len(e.Left) > 0 {
			left++
		}
		if v.Own == nil || !v.HasSuspects {
			continue
		}
		held, err := (&Form{Entries: []*isolate.Evidence{e}}).explainedBy(ctx, v.Own, v.Second)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case len(e.Left) == 0:
			f.Held, f.Strictly = append(f.Held, n), append(f.Strictly, n)
		case held:
			f.Held = append(f.Held, n)
		default:
			f.Suspects = append(f.Suspects, n)
		}
	}
	if v.Own == nil || !v.HasSuspects {
		f = nil
	}
	return f, left, nil
}

// WrongWitness reports whether transformers' arithmetic leaves something of an entry that is asked for the digits of the trace: of any entry in float32,
// of an entry without weights in 16 bits.
func WrongWitness(ctx context.Context, i *isolate.Isolator) (bool, error) {
	forms := i.CapturedForms()
	for _, name := range forms.Names {
		for _, n := range forms.Nodes[name] {
			if i.Env().DType != hooks.F32 {
				if !weightless(i, n) {
					break
				}
				if !computesAnything(i, n) {
					continue
				}
			}
			e, err := i.Evidence(ctx, n)
			if err != nil || e != nil && len(e.Left) > 0 {
				return err == nil, err
			}
		}
	}
	return false, nil
}
