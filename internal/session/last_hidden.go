package session

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/session/noise"
	"github.com/tracediff/tracediff/order"
)

// lastHidden finds the output of the final norm where a dump has it under the name of the last layer's output, and gives it the name of the norm.
// transformers' hidden_states ends with the output of the norm, so a person who dumps hidden_states[i+1] as the output of layer i makes such a dump.
// The tensor is known by its values: in every pass they are within the table's limit of the norm's output in the other trace, and not of the last
// layer's output. Where the dump has the norm under its own name too, the first tensor is left out. A note says what was done.
func lastHidden(ctx context.Context, t, other *capture.Trace, list *order.List) (*capture.Trace, error) {
	if t == other || list == nil || foreign.Printed(t) {
		return t, nil
	}
	layer := lastOfLayers(list)
	if layer < 0 {
		return t, nil
	}
	from, to := list.Entries[layer].Name, ""
	for _, r := range t.Records() {
		if r.Name != from || r.Firing > 0 {
			continue
		}
		name, err := behindLayers(ctx, t, other, r, list, layer)
		if err != nil || name == "" || to != "" && name != to {
			return t, err
		}
		to = name
	}
	if to == "" {
		return t, nil
	}
	return renamed(t, from, to)
}

// lastOfLayers returns the index of the last layer's output, the last entry in the order with the highest layer
// number. It returns −1 if the list has no layers.
func lastOfLayers(list *order.List) int {
	last := -1
	for i := range list.Entries {
		if e := &list.Entries[i]; e.Layer >= 0 && (last < 0 || e.Layer >= list.Entries[last].Layer) {
			last = i
		}
	}
	return last
}

// behindLayers takes a tensor that has the name of the last layer's output, and returns the name of the entry after the layers that has the same
// numbers in the other trace. It is empty where there is no such entry, and where the tensor is the last layer's output.
func behindLayers(ctx context.Context, t, other *capture.Trace, r capture.Record, list *order.List, layer int) (string, error) {
	own, err := apart(ctx, t, other, r, list.Entries[layer].Name)
	if err != nil || own <= gate.TableLimit(hooks.F32) {
		return "", err
	}
	dtype, ok, err := noise.Coarser(list, t, other)
	if !ok || err != nil || own <= gate.TableLimit(dtype) {
		return "", err
	}
	for i := layer + 1; i < len(list.Entries); i++ {
		e := &list.Entries[i]
		if e.Layer >= 0 || e.Derived() {
			continue
		}
		switch d, err := apart(ctx, t, other, r, e.Name); {
		case err != nil:
			return "", err
		case d > gate.TableLimit(dtype):
			continue
		}
		if _, has := t.Lookup(r.Pass, e.Name); has { // the tensor has to be a copy of it
			if d, err := apart(ctx, t, t, r, e.Name); err != nil || d > gate.TableLimit(dtype) {
				return "", err
			}
		}
		return e.Name, nil
	}
	return "", nil
}

// apart returns the relative L2 distance of a tensor from an entry of the other trace in the same pass. It is infinite where that entry has another
// shape or is absent.
func apart(ctx context.Context, t, other *capture.Trace, r capture.Record, name string) (float64, error) {
	o, ok := other.Lookup(r.Pass, name)
	if !ok || !slices.Equal(o.Shape, r.Shape) || !o.DType.Float() || !r.DType.Float() || measure.Elements(r.Shape) == 0 {
		return math.Inf(1), nil
	}
	m, err := measure.Tensors(ctx, t, other, r, o)
	if err != nil {
		return 0, err
	}
	if d := float64(m.RelL2); d == d {
		return d, nil
	}
	return math.Inf(1), nil
}

// renamed returns the trace with a tensor renamed, or left out in the passes that have a tensor of the new name already.
func renamed(t *capture.Trace, from, to string) (*capture.Trace, error) {
	sources := t.Sources()
	has := func(pass int) bool {
		_, ok := t.Lookup(pass, to)
		return ok
	}
	var kept []capture.Source
	left := false
	for _, s := range sources {
		if s.Name == from && has(s.Pass) {
			left = true
			continue
		}
		if s.Name == from {
			s.Name = to
		}
		kept = append(kept, s)
	}
	m := t.Manifest()
	if at := slices.Index(m.Entries, from); at >= 0 {
		m.Entries = slices.Clone(m.Entries)
		m.Entries[at] = to
	}
	what := "is compared as " + to
	if left {
		what = "is left out in favour of " + to
	}
	note := fmt.Sprintf("%s has the numbers of %s, as the last of transformers' hidden_states, and %s; what the last layer returns was not dumped", from, to, what)
	return capture.Assemble(t.Path(), kept, m, t.Sequence(), append(slices.Clone(t.Notes()), note), t)
}
