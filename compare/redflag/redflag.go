package redflag

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// Options say what is looked for. The zero value looks for everything, with the limits of docs/check.md.
type Options struct {
	Skip      []Kind
	Magnitude float64     // a flag is raised where half of a tensor's elements are beyond it; 0 for [DefaultMagnitude]
	Order     *order.List // of the model, for a trace that has no configuration; nil: not known
	// Progress is told before each of the looks at a trace which one it is, of how many. It may be nil.
	Progress func(look, looks int)
	limits   *limits // nil for the defaults: a test has its own
}

// Result is what was found, and what was looked at.
type Result struct {
	Trace   string   `json:"trace"`   // its path
	Tensors int      `json:"tensors"` // in the trace
	Passes  int      `json:"passes"`  // that it has tensors of
	Flags   []Flag   `json:"flags"`   // by kind, then in the order of the trace
	Looked  []Looked `json:"looked"`  // what each kind had to look at: a kind that had nothing has found nothing
	Notes   []string `json:"notes,omitempty"`
}

// Flag is one thing that is nearly always wrong.
type Flag struct {
	Kind    Kind     `json:"kind"`
	Entry   string   `json:"entry"` // the tensor's name
	Pass    int      `json:"pass"`
	What    string   `json:"what"` // a sentence with the numbers
	Numbers []Number `json:"numbers"`
	Also    []string `json:"also,omitempty"` // keys of further tensors of which the same is to be said, or to which it has passed
	Means   string   `json:"means"`          // what it usually means
	Try     string   `json:"try"`            // what to try first
}

// Number is one of a flag's numbers.
type Number struct {
	Name  string         `json:"name"`
	Value measure.Number `json:"value"`
}

// Looked is how many tensors a kind was looked for in.
type Looked struct {
	Kind    Kind `json:"kind"`
	Tensors int  `json:"tensors"`
	Skipped bool `json:"skipped,omitempty"` // it was not wanted
}

// Check looks for red flags in a trace, or in another safetensors file. The error is that of reading, or ctx's.
func Check(ctx context.Context, t *capture.Trace, o Options) (*Result, error) {
	v, err := newView(ctx, t, o)
	if err != nil {
		return nil, fmt.Errorf("checking %s: %w", t.Path(), err)
	}
	looks := []func(*view) error{
		(*view).survey, (*view).causal,
		(*view).values, (*view).scores, (*view).dtypes, (*view).weights, (*view).attention, (*view).rope, (*view).rotary, (*view).cache,
		(*view).hidden, (*view).tokens, (*view).argmax, (*view).gradients, (*view).norms, (*view).loss,
	}
	for i, look := range looks {
		if o.Progress != nil {
			o.Progress(i, len(looks))
		}
		if err := look(v); err != nil {
			return nil, fmt.Errorf("checking %s: %w", t.Path(), err)
		}
	}
	return v.result(), nil
}

func (v *view) result() *Result {
	r := &Result{Trace: v.t.Path(), Tensors: len(v.subjects), Passes: v.passes, Flags: []Flag{}, Notes: v.notes}
	for i := range Kinds {
		k := Kinds[i].Kind
		for _, f := range v.flags {
			if f.Kind == k {
				r.Flags = append(r.Flags, *f)
			}
		}
		r.Looked = append(r.Looked, Looked{Kind: k, Tensors: v.looked[k], Skipped: slices.Contains(v.o.Skip, k)})
	}
	return r
}

// raise adds a flag about a subject, unless the same was said of what it is computed from, or of the same tensor of another
// layer: then it is one more tensor of that flag.
func (v *view) raise(k Kind, s *subject, numbers []Number, format string, args ...any) {
	if slices.Contains(v.o.Skip, k) {
		return
	}
	if v.raised[k] == nil {
		v.raised[k], v.alike[k] = map[place]*Flag{}, map[string]*Flag{}
	}
	f := v.before(k, s)
	if f != nil {
		f.Also = append(f.Also, s.Key)
	} else {
		a := about(k)
		f = &Flag{Kind: k, Entry: s.name, Pass: s.pass, What: fmt.Sprintf(format, args...), Numbers: numbers, Means: a.Means, Try: a.Try}
		if s.Firing > 0 {
			f.Entry += "#" + strconv.Itoa(s.Firing)
		}
		v.flags = append(v.flags, f)
		v.alike[k][layerless(s.name)] = f
		if v.first[k] == nil {
			v.first[k] = f
		}
	}
	v.raised[k][s.place()] = f
}

// before is the flag of the same kind to which another tensor belongs: of kinds that pass on, the one of what it is computed
// from, which only the order knows; of others the first.
func (v *view) before(k Kind, s *subject) *Flag {
	if !about(k).follows || v.list == nil || v.list.Index(s.name) < 0 {
		return v.first[k]
	}
	for _, from := range append(v.parents(s), place{s.pass - 1, s.name}) {
		if f := v.raised[k][from]; f != nil {
			return f
		}
	}
	return v.alike[k][layerless(s.name)]
}

var layerNumber = regexp.MustCompile(`\.[0-9]+\.`)

// layerless is a name without its numbers.
func layerless(name string) string { return layerNumber.ReplaceAllString(name, ".*.") }

// look counts a subject as looked at for some kinds, and reports whether any of them is wanted.
func (v *view) look(kinds ...Kind) bool {
	wanted := false
	for _, k := range kinds {
		if !slices.Contains(v.o.Skip, k) {
			v.looked[k]++
			wanted = true
		}
	}
	return wanted
}

func number(name string, x float64) Number { return Number{name, measure.Number(x)} }
