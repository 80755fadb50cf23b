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

// Add isolates every entry of a trace of transformers and notes the forms that reproduce it. One that fails once stays out,
// whatever other traces say. Entries that the trace recomputed itself or that cannot be isolated show nothing. The error
// is that of reading the trace or the weights.
func (c Certified) Add(ctx context.Context, t *capture.Trace, list *order.List, weights func(order.Weight) (program.Rows, error)) error {
	if name := t.Manifest().Producer.Name; name != "transformers" {
		return fmt.Errorf("%s is a trace of %q: only transformers certifies", t.Path(), name)
	}
	return c.AddRun(ctx, t, list, weights)
}

// AddRun is [Certified.Add] of the trace that was written by the very run that recorded the order's program: whatever model that
// was, the program is what it is held to. What is computed from an operation without a formula shows nothing.
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
		// What was not captured on the way is shown, or not, by what it leads to.
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

// unreproduced are the elements that transformers' arithmetic does not give. Nearly all of them are what it gives to the bit, so that bounds are
// computed only of those that are not, where that can be, and else of an entry that has some.
func unreproduced(ctx context.Context, t *Trial) ([]int, error) {
	if same, err := sameBits(ctx, t); same || err != nil {
		return nil, err
	}
	_, left, _, err := t.Judge(ctx, &Arithmetic{})
	return left, err
}

// sameBits reports whether the entry is right by values alone, or by the bounds of the few elements that are others; false also where that is
// not asked: of a choice, and where few elements are the same to the bit.
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
		if y := j.Y.Data[k]; y != floats.Round(j.DType, x) && (x == x || y == y) && !j.Masked(k) {
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

// Differences are how far an entry is from what transformers' arithmetic makes of its own inputs, element by element, and what that is.
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

// Unverified returns, by name, the form for which an entry of the walk may not accuse: its own, or that of an ancestor,
// whose fault it would show too. It is empty when all forms are certified.
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
