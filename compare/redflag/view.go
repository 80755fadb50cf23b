package redflag

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/tracekey"
	"github.com/tracediff/tracediff/order"
)

// view is a trace prepared for the checks. Each tensor has the role and the layer that follow from its name.
type view struct {
	t        *capture.Trace
	limits   limits
	list     *order.List // nil without a configuration
	subjects []subject
	index    map[place]int
	passes   int
	fed      fed
	notes    []string

	raw []byte // scratch of reading
}

// place is the first firing of a name in a pass.
type place struct {
	pass int
	name string
}

// subject is one tensor.
type subject struct {
	capture.Record
	pass  int
	name  string
	layer int // the layer with this output, or −1
	role  role
	entry *order.Entry // nil outside the order
	seen  seen         // its numbers
}

// is reports whether a tensor has at least one of the given roles.
func (s *subject) is(some role) bool { return s.role&some != 0 }

func (s *subject) place() place { return place{s.pass, s.name} }

// elements is the number of elements. The reader has checked that the product of the shape does not overflow.
func (s *subject) elements() int64 { return s.Size / int64(s.DType.Size()) }

// dim is the size of an axis, counted from the last axis, number 1. dim is 1 if the tensor has fewer axes.
func (s *subject) dim(fromLast int) int {
	if i := len(s.Shape) - fromLast; i >= 0 {
		return s.Shape[i]
	}
	return 1
}

func newView(ctx context.Context, t *capture.Trace, o Options) (*view, error) {
	v := &view{t: t, limits: defaults, index: map[place]int{}}
	if o.limits != nil {
		v.limits = *o.limits
	}
	if o.Magnitude > 0 {
		v.limits.values.magnitude = o.Magnitude
	}
	v.notes = append(v.notes, t.Notes()...)
	v.readOrder(o.Order)
	for _, r := range v.records() {
		s := subject{Record: r, pass: r.Pass, name: r.Name}
		if r.Name == r.Key { // a file of another writer, with keys that may follow the same rule
			s.pass, s.name, _ = tracekey.CutPass(r.Key)
			if _, beside := t.Lookup(0, s.name); beside && s.pass == 0 {
				s.name = r.Key // with both pass0/x and x in the file, the name x means the key x
			}
		}
		s.role, s.layer = roleOf(s.name), layerOut(s.name)
		if v.list != nil {
			s.entry, _ = v.list.Lookup(s.name)
		}
		v.passes = max(v.passes, s.pass+1)
		v.subjects = append(v.subjects, s)
	}
	if !t.Sequence() { // sorted keys have pass 10 before pass 2
		slices.SortStableFunc(v.subjects, func(a, b subject) int { return cmp.Compare(a.pass, b.pass) })
	}
	for i := range v.subjects {
		if at := v.subjects[i].place(); !v.has(at) {
			v.index[at] = i
		}
	}
	if status := t.Status(); status != "" && status != capture.StatusComplete {
		v.notes = append(v.notes, fmt.Sprintf("the trace is not complete (%s): what is missing was not looked at", status))
	}
	var err error
	v.fed, err = v.readFed(ctx)
	return v, err
}

// readOrder makes the order from the configuration of the trace. given, which may be nil, is the order for a trace without a configuration.
func (v *view) readOrder(given *order.List) {
	config := v.t.Manifest().Config
	if config == nil && given != nil {
		v.list = given
	} else if config == nil {
		v.notes = append(v.notes, "the trace has no configuration: tensors are known by their names, and their inputs are not known")
	} else if c, err := order.ParseCanonical(config); err != nil {
		v.notes = append(v.notes, fmt.Sprintf("the trace's configuration cannot be used (%v): tensors are known by their names", err))
	} else if v.list, err = order.New(c); err != nil {
		v.notes = append(v.notes, fmt.Sprintf("the trace's configuration gives no order (%v): tensors are known by their names", err))
	}
	if !v.t.Sequence() {
		v.notes = append(v.notes, "the file does not promise the order of execution: it is not known which of several tensors came first")
	}
}

// records returns the records of the file in the order of computation, as far as the order is known.
func (v *view) records() []capture.Record {
	if v.t.Sequence() || v.list == nil {
		return v.t.Records()
	}
	records := slices.Clone(v.t.Records())
	slices.SortStableFunc(records, func(a, b capture.Record) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(v.list.Index(a.Name), v.list.Index(b.Name)))
	})
	return records
}

// has reports whether a name was fired in a pass.
func (v *view) has(at place) bool {
	_, there := v.index[at]
	return there
}

// find returns the first firing of a name in a pass; nil without a firing.
func (v *view) find(pass int, name string) *subject {
	if i, ok := v.index[place{pass, name}]; ok {
		return &v.subjects[i]
	}
	return nil
}

// parents returns the captured tensors from which a subject is computed. If an input was not captured, parents looks for the inputs of the input.
func (v *view) parents(s *subject) []place {
	var found []place
	seen := map[place]bool{}
	var walk func(e *order.Entry, pass int)
	walk = func(e *order.Entry, pass int) {
		for _, in := range e.Inputs {
			at := place{pass, in.Name}
			if in.Prev {
				at.pass--
			}
			if at.pass < 0 || seen[at] {
				continue
			}
			seen[at] = true
			if v.find(at.pass, at.name) != nil {
				found = append(found, at)
			} else if made, ok := v.list.Lookup(in.Name); ok {
				walk(made, at.pass)
			}
		}
	}
	if s.entry != nil {
		walk(s.entry, s.pass)
	}
	return found
}
