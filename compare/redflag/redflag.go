package redflag

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// Options limit the search. The zero value looks for everything, with the limits of docs/inside.md.
type Options struct {
	Skip      []Kind
	Magnitude float64     // half of a tensor's elements beyond it raise a flag; 0 for [DefaultMagnitude]
	Order     *order.List // of the model, for a trace without a configuration; nil if not known
	// Progress is called before each check, with the number of the check, from 0, and the number of all checks. Progress may be nil.
	Progress func(look, looks int)
	limits   *limits // nil for the defaults; a test has its own limits
}

// Result lists the flags, and how many tensors each kind was looked for in.
type Result struct {
	Trace   string   `json:"trace"`   // path of the trace
	Tensors int      `json:"tensors"` // in the trace
	Passes  int      `json:"passes"`  // passes with tensors in the trace
	Flags   []Flag   `json:"flags"`   // by kind, then in the order of the trace
	Looked  []Looked `json:"looked"`  // by kind: a kind without tensors has found nothing
	Notes   []string `json:"notes,omitempty"`
}

// Flag is one thing that is nearly always wrong.
type Flag struct {
	Kind    Kind     `json:"kind"`
	Entry   string   `json:"entry"` // the tensor's name
	Pass    int      `json:"pass"`
	What    string   `json:"what"` // a sentence with the numbers
	Numbers []Number `json:"numbers"`
	Also    []string `json:"also,omitempty"` // keys of further tensors with the same flag, or to which the fault has spread
	Means   string   `json:"means"`          // the usual cause
	Try     string   `json:"try"`            // what to try first
}

// Number is one of a flag's numbers.
type Number struct {
	Name  string         `json:"name"`
	Value measure.Number `json:"value"`
}

// Looked is the number of tensors in which a kind was looked for.
type Looked struct {
	Kind    Kind `json:"kind"`
	Tensors int  `json:"tensors"`
	Skipped bool `json:"skipped,omitempty"` // the kind is in Options.Skip
}

// Check looks for red flags in a trace, or in another safetensors file. Errors come from reading or from ctx.
func Check(ctx context.Context, t *capture.Trace, o Options) (*Result, error) {
	v, err := newView(ctx, t, o)
	if err != nil {
		return nil, fmt.Errorf("checking %s: %w", t.Path(), err)
	}
	f := newFound(v, o.Skip)
	for i, c := range checks {
		if o.Progress != nil {
			o.Progress(i, len(checks))
		}
		if err := c.run(ctx, v, f); err != nil {
			return nil, fmt.Errorf("checking %s: %w", t.Path(), err)
		}
	}
	return f.result(), nil
}

func (f *found) result() *Result {
	v := f.in
	r := &Result{Trace: v.t.Path(), Tensors: len(v.subjects), Passes: v.passes, Flags: []Flag{}, Notes: v.notes}
	for i := range Kinds {
		k := Kinds[i].Kind
		for _, flag := range f.flags {
			if flag.Kind == k {
				r.Flags = append(r.Flags, *flag)
			}
		}
		r.Looked = append(r.Looked, Looked{Kind: k, Tensors: f.looked[k], Skipped: slices.Contains(f.skip, k)})
	}
	return r
}
