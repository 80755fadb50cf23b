package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

const mapHint = "tracediff map LOCAL REFERENCE proposes one; docs/maps.md has every word of it"

// readMap reads the map of the settings: the file that --map names, or the table of tracediff.toml. It is nil where there is none.
func (s *Settings) readMap() (*mapping.Map, error) {
	if s.Map == "" {
		return s.table, nil
	}
	text, _, err := files.ReadSoon(s.Map, mapping.MaxSize)
	if err != nil {
		return nil, hint.Add(fmt.Errorf("reading the map: %w", err), mapHint)
	}
	m, err := mapping.Parse(s.Map, text)
	return m, hint.Default(err, mapHint)
}

// fit gives the local trace the names and layouts of the order, by the map of the settings and then as dumps are read.
func (s *Settings) fit(t *capture.Trace, list *order.List) (*mapping.Applied, error) {
	m, err := s.readMap()
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
			return nil, hint.Default(err, mapHint)
		}
	}
	a.Trace, err = foreign.Fit(a.Trace, list)
	return a, err
}

// Mapped reads traces by the map in a file, as [CompareFiles] reads the local one, for commands that look into them. A trace stays as it is where no line
// matches a tensor of it, or where it has the order's names already. It is an error if that is so of all, and none if file is empty. list has the sizes that
// layouts may leave out; nil where the model is not known. differ has a sentence for each tensor that all ranks have to have alike and do not. A mapped trace
// closes the one that it was made of.
func Mapped(file string, list *order.List, traces ...*capture.Trace) (all []*capture.Trace, differ []string, err error) {
	if file == "" {
		return traces, nil, nil
	}
	m, err := (&Settings{Map: file}).readMap()
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

// mapOf is what a map did, for reports; nil where there is none.
func mapOf(a *mapping.Applied) *compare.Map {
	if a.File == "" {
		return nil
	}
	return &compare.Map{File: a.File, Patterns: a.Patterns, Changes: a.Changes, Absent: a.Absent, Unproven: a.Unproven}
}

// openDump opens what a map is proposed for.
func openDump(path string) (*capture.Trace, error) {
	t, err := foreign.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(err, "tracediff map LOCAL [REFERENCE] takes the names of files or folders")
	}
	return t, hint.Default(err, dump.Next)
}

// ProposeMap writes the map that a dump may need, by known names, shapes and, with a reference, values.
// model is the folder of the checkpoint, where the reference does not say of which model it is, and program the file of a recorded
// program, where none lies beside the reference; each may be empty.
func ProposeMap(ctx context.Context, e *Env, w io.Writer, model, program, localFile, referenceFile string) (*propose.Proposal, error) {
	local, err := openDump(localFile)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	ref := local
	if referenceFile != "" {
		if ref, err = openDump(referenceFile); err != nil {
			return nil, err
		}
		defer ref.Close()
		if local, err = foreign.Later(local, ref); err != nil {
			return nil, err
		}
	}
	list, err := mapOrder(model, program, local, ref)
	if err != nil {
		return nil, err
	}
	fitted, err := foreign.Fit(local, list)
	if err != nil {
		return nil, err
	}
	if r, ok := fitted.Lookup(0, order.InputIDs); ok && len(r.Shape) == 2 && r.Shape[0] > 1 {
		_, err := fitted.IDs()
		return nil, err
	}
	far := ref
	if ref == local || foreign.Printed(local) { // of a text too few values are known, and these rounded
		far, referenceFile = nil, ""
	} else if far, err = foreign.Fit(ref, list); err != nil {
		return nil, err
	}
	ck, err := mapCheckpoint(ctx, model, ref)
	if err != nil {
		return nil, err
	}
	var weights propose.Weights
	if ck != nil {
		defer ck.Close()
		if !foreign.Printed(local) {
			weights = reference.Weights(ck, hooks.F32)
		}
	}
	shown := e.progress("proposing the map", "step", nil)
	p, err := propose.Map(ctx, local, fitted, list, far, propose.Options{Weights: weights, Tell: func(step, steps int, name string) {
		shown.Step(0, 1, step, steps)
		shown.Doing(name)
	}})
	shown.Done()
	if errors.Is(err, propose.ErrNoTokens) {
		return nil, hint.Add(err, "dump them as input_ids, or name a reference that has them: tracediff map LOCAL REFERENCE")
	}
	if err != nil {
		return nil, err
	}
	return p, p.Write(w, localFile, referenceFile)
}

// mapCheckpoint opens the named checkpoint, or the checkpoint of the reference: its weights tell tensors from each other. nil: nothing is computed.
func mapCheckpoint(ctx context.Context, model string, ref *capture.Trace) (*checkpoint.Checkpoint, error) {
	if model == "" {
		return traceCheckpoint(ctx, &Env{}, "", "", ref)
	}
	ck, err := checkpoint.Open(model)
	if err != nil { // a folder that has no weights gives names
		return nil, nil
	}
	return ck, nil
}

// mapOrder is the order for whose names a map is proposed: what compare would take for these two.
func mapOrder(model, program string, local, ref *capture.Trace) (*order.List, error) {
	list, err := TraceOrder(local, ref)
	if err != nil {
		return nil, err
	}
	if list == nil || program != "" {
		p, err := findProgram(program, ref)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p.list.Named(), nil
		}
	}
	if m := ref.Manifest(); list == nil && model == "" && (m.Program != "" || m.Config != nil) {
		return nil, hint.Add(fmt.Errorf("%s is of a model that no order describes, and no recorded program lies beside it", ref.Path()), "--program FILE names the program that was recorded with it")
	}
	if list == nil || model != "" {
		return ModelOrder(model, "")
	}
	return list, nil
}
