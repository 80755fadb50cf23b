package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/session/choice"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
	"github.com/tracediff/tracediff/order"
)

// Compare captures the local side by the settings and compares it with the best fitting reference.
func Compare(ctx context.Context, e *settings.Env, s settings.Settings, a Asked) (_ *compare.Result, err error) {
	var j *job.Job
	e = e.Within(a.Certification.Isolate.Room)
	if a.Keep {
		defer func() { err = keepInterrupted(ctx, s, e.Dir, j, err) }()
	}
	if err := e.Protect(tracefolder.FilesOf(&s, e.Dir)...); err != nil {
		return nil, err
	}
	if j, err = job.Open(ctx, e, s, e.Dir); err != nil {
		return nil, err
	}
	defer j.Close()
	if !a.Keep {
		j.Own = tracefolder.GateFolder
	}
	var mistaken *order.Config
	if a.Mistake != nil {
		own := *j.Order.List.Config
		a.Mistake(&own)
		mistaken = &own
	}
	if err := checkLocal(ctx, e, j); err != nil {
		return nil, err
	}
	ref, err := choice.Find(ctx, e, j, false)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	if err := j.UseProgram(ref.Trace, ref.Passes); err != nil {
		return nil, err
	}
	j.Input.Replay(ref.Passes)
	if err := j.CheckPasses(); err != nil {
		return nil, err
	}
	j.NoteInput(e.Notes)
	if a.Keep {
		if err := j.Save(); err != nil {
			return nil, err
		}
	}
	local, _, err := captureLocal(ctx, e, j, mistaken)
	if err != nil {
		if failed := (*reference.StatusError)(nil); a.Keep && errors.As(err, &failed) {
			fmt.Fprintln(e.Notes, "note: the command failed, but its settings are kept: tracediff compare, without flags, runs it again")
		}
		return nil, err
	}
	defer local.Close()
	return inputsOf(j, e, a, local, ref).compare(ctx)
}

// inputsOf returns the inputs of a comparison after the job captured the local side.
func inputsOf(j *job.Job, e *settings.Env, a Asked, local *capture.Trace, ref *choice.Found) *inputs {
	in := &inputs{
		asked: a, env: e, settings: j.Settings, captured: true, local: local, ref: ref.Trace, stored: ref.Entry,
		order: traceOrder{list: j.Order.List, shown: j.Order.List, program: j.Order.Program},
		model: traceModel{ck: j.Model.Checkpoint, claimed: j.Model.Checkpoint, port: j.Model.Port, kernels: j.Model.Kernels},
	}
	in.o = compare.Options{
		Sides:     compare.Sides{Given: j.Settings.Local.Kind == settings.KindFile, Named: j.Settings.Order != "" || e.Gate, Parity: e.Gate},
		Order:     j.Order.Record,
		Scope:     compared(j, ref.Trace, a.LevelTyped),
		Reporting: compare.Reporting{ReferenceLabel: ref.Label, TokenTexts: j.Input.Texts, Remarks: j.Remarks()},
	}
	if j.Settings.Model == "" && j.Settings.Local.Kind != settings.KindFile {
		in.o.Demo = origin.Embedded
	}
	return in
}

// compared is the scope of the comparison: the job's, and of a reference that went on decoding the passes asked for. A
// level that nobody typed does not ask a reference for more than it has.
func compared(j *job.Job, ref *capture.Trace, levelTyped bool) capture.Scope {
	s := j.Settings.Scope
	if has := ref.Manifest().Scope.Level; !levelTyped && has > 0 {
		s.Level = min(s.Level, has)
	}
	if asked := len(j.Input.Passes) + j.Input.Further; len(s.Passes) == 0 && ref.Manifest().Passes > asked {
		s.Passes = capture.Ranges{{From: 0, To: asked - 1}}
	}
	return s
}

// CompareFiles compares two traces as they are.
func CompareFiles(ctx context.Context, e *settings.Env, s settings.Settings, a Asked, localFile, referenceFile string) (*compare.Result, error) {
	local, err := job.OpenTrace(localFile)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	ref, err := job.OpenTrace(referenceFile)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	if local, err = foreign.Renumbered(local, ref); err != nil {
		return nil, err
	}
	o := compare.Options{Reporting: compare.Reporting{ReferenceLabel: "given"}, Sides: compare.Sides{Parity: e.Gate, Named: s.Order != "" || e.Gate}}
	if a.AB != nil {
		o = abOptions(a, s, local, ref)
	} else if err := choice.NotGated(e, ref, "--gate=false"); err != nil {
		return nil, err
	} else if reference.IsProducer(local.Manifest().Producer) && !reference.IsProducer(ref.Manifest().Producer) {
		o.Remarks = append(o.Remarks, "the first trace is of a reference and the second is not: the side that is tested comes first")
	}
	return compareGiven(ctx, &inputs{asked: a, env: e, settings: s, local: local, ref: ref, o: o})
}

// Alone certifies every entry of a trace from the trace's own inputs, without a second trace to compare with.
func Alone(ctx context.Context, e *settings.Env, s settings.Settings, a Asked, file string) (*compare.Result, error) {
	t, err := job.OpenTrace(file)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	o := compare.Options{All: true, Sides: compare.Sides{Parity: e.Gate, Named: s.Order != "" || e.Gate}}
	return compareGiven(ctx, &inputs{asked: a, env: e, settings: s, local: t, ref: t, alone: true, o: o})
}

// compareGiven compares existing trace files by the order of the model in their manifests.
func compareGiven(ctx context.Context, in *inputs) (*compare.Result, error) {
	s := &in.settings
	if err := tracefolder.CheckDir(in.env.Dir); err != nil {
		return nil, err
	}
	if err := in.env.Protect(append(tracefolder.FilesOf(s, ""), tracefolder.ModelFiles(in.local.Manifest().Model, in.ref.Manifest().Model)...)...); err != nil {
		return nil, err
	}
	in.o.Given, in.o.Scope = true, s.Scope
	if err := in.findOrder(); err != nil {
		return nil, err
	}
	defer in.model.close()
	return in.compare(ctx)
}

// abOptions are those of an A/B comparison of two open traces.
func abOptions(asked Asked, s settings.Settings, a, b *capture.Trace) compare.Options {
	return compare.Options{
		Sides:         compare.Sides{Named: s.Order != ""},
		Judging:       compare.Judging{Different: asked.AB.Different},
		Reporting:     compare.Reporting{LocalLabel: runOf(a), ReferenceLabel: runOf(b)},
		Certification: compare.Certification{NotIsolated: "an A/B comparison says whether the sides agree, not which of them is right"},
	}
}

// sameModel reports whether two traces are of one configuration.
func sameModel(a, b *capture.Trace) bool {
	l, r := a.Manifest().Config, b.Manifest().Config
	return l != nil && r != nil && order.SameConfig(l, r)
}

// runOf names one run of a program in a report: the trace file and, if the manifest has it, the device.
func runOf(t *capture.Trace) string {
	if device := t.Manifest().Device; device != "" {
		return t.Path() + ", on " + device
	}
	return t.Path()
}
