package session

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// fit renames and reshapes the tensors of a dump to match the order. The result of the map, and each reason for an
// incomplete comparison, go into the options.
func (in *inputs) fit(ctx context.Context) (err error) {
	if in.names, err = in.settings.ReadMap(); err != nil {
		return err
	}
	a, err := fitBy(in.names, in.local, in.order.shown)
	if err != nil {
		return err
	}
	in.o.Flaws, in.o.Map = a.Differ, mapOf(a)
	if err := in.fitReference(a.Trace); err != nil {
		return err
	}
	local, flaws, err := nearest(&in.settings, a.Trace, in.ref)
	if err != nil {
		return err
	}
	in.o.Flaws = append(in.o.Flaws, flaws...)
	in.local, err = lastHidden(ctx, local, in.ref, in.order.shown)
	return err
}

// fitReference fits the reference to the order. In an A/B comparison of one port, both runs are read by the map. A
// reference written for the local side needs no fitting. If one trace serves as both sides, the fitted trace also
// becomes the reference.
func (in *inputs) fitReference(fitted *capture.Trace) (err error) {
	switch m := in.names; {
	case in.captured:
	case in.local == in.ref:
		in.ref = fitted
	case in.asked.AB != nil && m != nil && m.Matches(in.ref) && !asOrdered(in.ref, in.order.shown):
		b, err := fitBy(m, in.ref, in.order.shown)
		if err != nil {
			return err
		}
		in.o.Flaws, in.ref = append(in.o.Flaws, b.Differ...), b.Trace
	default:
		in.ref, err = foreign.Fit(in.ref, in.order.shown)
	}
	return err
}

// asOrdered reports whether a trace has the names of an order already, and no other.
func asOrdered(t *capture.Trace, list *order.List) bool {
	return list != nil && !slices.ContainsFunc(t.Records(), func(r capture.Record) bool { return list.Index(r.Name) < 0 })
}

// fit gives the local trace the names and layouts of the order, by the map of the settings and then as dumps are read.
func fit(s *settings.Settings, t *capture.Trace, list *order.List) (*mapping.Applied, error) {
	m, err := s.ReadMap()
	if err != nil {
		return nil, err
	}
	return fitBy(m, t, list)
}

// fitBy is fit with a map that was read; nil for none.
func fitBy(m *mapping.Map, t *capture.Trace, list *order.List) (a *mapping.Applied, err error) {
	a = &mapping.Applied{Trace: t}
	if m != nil {
		if a, err = m.Apply(t, list); err != nil {
			return nil, hint.Default(err, settings.MapHint)
		}
	}
	a.Trace, err = foreign.Fit(a.Trace, list)
	return a, err
}

// Mapped reads traces by the map in a file, for commands that inspect traces; [CompareFiles] reads the local trace
// in the same way. A trace is returned unchanged if no line of the map matches a tensor of the trace, or if the
// trace already uses the order's names. Mapped returns an error if every trace would be returned unchanged, unless
// file is empty. list supplies the sizes a layout may leave out, and is nil for an unknown model. differ has a
// sentence for each tensor with different values in different ranks, where all ranks should be equal. Closing a
// mapped trace closes its source.
func Mapped(file string, list *order.List, traces ...*capture.Trace) (all []*capture.Trace, differ []string, err error) {
	if file == "" {
		return traces, nil, nil
	}
	m, err := (&settings.Settings{Map: file}).ReadMap()
	if err != nil {
		return nil, nil, err
	}
	applied := false
	for i, t := range traces {
		other := !m.Matches(t) || asOrdered(t, list)
		if last := i == len(traces)-1; other && (applied || !last) {
			all = append(all, t)
			continue
		}
		a, err := fitBy(m, t, list)
		if err != nil {
			return nil, nil, err
		}
		all, differ, applied = append(all, a.Trace), append(differ, a.Differ...), true
	}
	return all, differ, nil
}

// mapOf summarizes an applied map for reports. It returns nil if no map was applied.
func mapOf(a *mapping.Applied) *compare.Map {
	if a.File == "" {
		return nil
	}
	return &compare.Map{File: a.File, Patterns: a.Patterns, Changes: a.Changes, Absent: a.Absent, Unproven: a.Unproven}
}
