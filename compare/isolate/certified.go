package isolate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Certified says which forms of operations have reproduced transformers: every entry of that form, in every trace looked
// at, from transformers' own inputs, no element beyond what rounding explains. A form that is not in it may not accuse.
type Certified map[string]bool

// Add isolates every entry of a trace of transformers and notes the forms reproduced. A form with one failure stays
// out, whatever other traces show. Entries recomputed by the recorder, and entries that cannot be isolated, count
// neither way. The error comes from reading the trace or the weights.
func (c Certified) Add(ctx context.Context, t *capture.Trace, list *order.List, weights func(order.Weight) (program.Rows, error)) error {
	if name := t.Manifest().Producer.Name; name != "transformers" {
		return fmt.Errorf("%s is a trace of %q: only transformers certifies", t.Path(), name)
	}
	return c.AddRun(ctx, t, list, weights)
}

// AddRun is [Certified.Add] for the trace of the very run that recorded the order's program. The model may be any:
// the program is the specification. Entries computed from an operation without a formula count neither way.
func (c Certified) AddRun(ctx context.Context, t *capture.Trace, list *order.List, weights func(order.Weight) (program.Rows, error)) error {
	i, err := New(t, list, weights, Options{Arithmetic: Strict})
	if err != nil {
		return fmt.Errorf("%s: %w", t.Path(), err)
	}
	t = i.trace
	var keys []capture.Record
	for _, r := range t.Records() {
		e, ok := list.Lookup(r.Name)
		if !ok || i.derived[r.Name] {
			continue
		}
		if _, argument := e.Op.(op.Given); !argument {
			keys = append(keys, r)
		}
	}
	elements, costs := make([]int, len(keys)), make([]int, len(keys))
	for n, r := range keys {
		elements[n], costs[n], _ = Costs(i, r.Name, r.Pass)
	}
	results := make([]reproduced, len(keys))
	InTurns(elements, costs, MostLarge(i), func(n int) {
		if results[n].err = ctx.Err(); results[n].err == nil {
			results[n] = reproduces(ctx, i, keys[n])
		}
	})
	for n, r := range results {
		if Lacking(r.err) && list.IsRecorded() {
			continue
		}
		if r.err != nil {
			return fmt.Errorf("%s: isolating %s: %w", t.Path(), keys[n].Name, r.err)
		}
		// A test of an entry also tests the uncaptured steps on the way to it.
		for _, n := range r.steps {
			c.note(op.Form(list.At(n).Op), r.good)
		}
	}
	return nil
}

// reproduced says whether strict arithmetic leaves no element of an entry.
type reproduced struct {
	steps []order.Node
	good  bool
	err   error
}

func reproduces(ctx context.Context, i *Isolator, r capture.Record) reproduced {
	t, err := trialOf(i, r.Name, r.Pass)
	if err != nil {
		return reproduced{err: err}
	}
	left, err := unreproduced(ctx, t)
	return reproduced{t.Cut.Steps, len(left) == 0, err}
}

// unreproduced returns the elements not given by transformers' arithmetic. Nearly all elements are equal to the
// bit, so if possible bounds are computed only for the unequal elements, and otherwise only for an entry with
// unequal elements.
func unreproduced(ctx context.Context, t *Trial) ([]int, error) {
	if same, err := sameBits(ctx, t); same || err != nil {
		return nil, err
	}
	_, left, _, err := t.Judge(ctx, &Arithmetic{})
	return left, err
}

// sameBits reports whether the entry is right, by equal values and by bounds for the few unequal elements. It
// returns false without an evaluation for a choice (argmax, top-k), and for dtypes with few equal elements.
func sameBits(ctx context.Context, t *Trial) (bool, error) {
	const digits = 11 // of float16 and bfloat16, in which nearly all are
	if t.held() == nil || t.Chooses() || floats.Precision(t.DType) > digits {
		return false, nil
	}
	j, err := t.Evaluate(ctx, Evaluation{Arithmetic: &Arithmetic{}, Held: true, Alone: true})
	if err != nil {
		return false, err
	}
	if j.X.Bound != nil {
		return len(j.Outside()) == 0, nil
	}
	for k, x := range j.X.Data {
		if y := j.Y.Data[k]; y != floats.Round(j.DType, x) && (x == x || y == y) && !j.masked(k) {
			return false, nil
		}
	}
	return true, nil
}

// Reproduces reports whether transformers' own arithmetic gives every element of an entry, from what the trace has for its inputs.
func (i *Isolator) Reproduces(ctx context.Context, name string, pass int) (bool, error) {
	t, err := trialOf(i, name, pass)
	if err != nil {
		return false, err
	}
	left, err := unreproduced(ctx, t)
	return err == nil && len(left) == 0, err
}

// Differences returns, element by element, the distance of an entry from transformers' result on its own inputs,
// and this result.
func (i *Isolator) Differences(ctx context.Context, name string, pass int) (off, want []float64, err error) {
	t, err := trialOf(i, name, pass)
	if err != nil {
		return nil, nil, err
	}
	j, err := t.Evaluate(ctx, Evaluation{Arithmetic: &Arithmetic{}})
	if err != nil {
		return nil, nil, err
	}
	off = make([]float64, len(j.X.Data))
	for k, x := range j.X.Data {
		off[k] = j.Y.Data[k] - x
	}
	return off, j.X.Data, nil
}

// note has what one entry showed of a form.
func (c Certified) note(form string, good bool) {
	if was, seen := c[form]; !seen || was {
		c[form] = good
	}
}

// Also notes what other traces showed.
func (c Certified) Also(other Certified) {
	for form, good := range other {
		c.note(form, good)
	}
}

// Knows reports whether every form of a list was looked at, whatever came of it.
func (c Certified) Knows(list *order.List) bool {
	for form := range Cleared(list) {
		if _, seen := c[form]; !seen {
			return false
		}
	}
	return true
}

// Clears reports whether every form of a list has reproduced transformers.
func (c Certified) Clears(list *order.List) bool {
	return c.Knows(list) && !slices.Contains(slices.Collect(maps.Values(c)), false)
}

// Cleared is what a reference certifies that is known to clear a list.
func Cleared(list *order.List) Certified {
	c := Certified{}
	for i := range list.Entries {
		for _, e := range list.InPasses(i) {
			if _, argument := e.Op.(op.Given); !argument {
				c[op.Form(e.Op)] = true
			}
		}
	}
	return c
}

// Unverified returns, by entry name, the form that keeps the walk from calling the entry a BUG: the entry's own
// form, or an ancestor's, since a fault of an ancestor would show in the entry too. The map is empty if all forms
// are certified.
func (c Certified) Unverified(list *order.List) map[string]string {
	found := map[string]string{}
	for changed := true; changed; { // the cache reaches back to the pass before, and so to entries further down
		changed = false
		for i := range list.Entries {
			for _, e := range list.InPasses(i) {
				if _, is := found[e.Name]; is || e.Op == nil {
					continue
				}
				if form := c.missing(e, found); form != "" {
					found[e.Name], changed = form, true
				}
			}
		}
	}
	return found
}

func (c Certified) missing(e *order.Entry, found map[string]string) string {
	if _, argument := e.Op.(op.Given); argument {
		return ""
	}
	if form := op.Form(e.Op); !c[form] {
		return form
	}
	for _, in := range e.Inputs {
		if form := found[in.Name]; form != "" {
			return form
		}
	}
	return ""
}
