package compare_test

import (
	"context"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// reproduces adds the goldens of one checkpoint, isolated by the operations of list.
func reproduces(t *testing.T, into isolate.Certified, dir string, dtype hooks.DType, list *order.List, ck *checkpoint.Checkpoint) {
	t.Helper()
	names, err := fs.Glob(ondisk.Files(), "golden/"+dir+"/*."+dtype.String()+".safetensors")
	if err != nil || len(names) == 0 {
		t.Fatalf("no goldens of %s: %v", dir, err)
	}
	for _, name := range names {
		if err := into.Add(context.Background(), testengine.OpenGolden(t, name), list, reference.Weights(ck, dtype)); err != nil {
			t.Fatal(err)
		}
	}
}

// Each wrong operation has the form of the right one and computes something near it.

type wrongNorm struct{ op.RMSNorm } // a hundredth too much

func (o wrongNorm) Eval(c program.Call) (program.Value, error) { return bend(o.RMSNorm, c, 1+1e-2) }

type wrongGELU struct{ op.GELUTanh } // a hundredth too much

func (o wrongGELU) Eval(c program.Call) (program.Value, error) { return bend(o.GELUTanh, c, 1+1e-2) }

type wrongStd struct{ op.Std } // n−1 in place of n, of n = 64

func (o wrongStd) Eval(c program.Call) (program.Value, error) { return bend(o.Std, c, 1.0079) }

type wrongSoftcap struct{ op.Softcap } // half the cap

func (o wrongSoftcap) Eval(c program.Call) (program.Value, error) {
	return program.Eval(op.Softcap{Cap: o.Cap * 0.5}, c)
}

func bend(o op.Op, c program.Call, by float64) (program.Value, error) {
	v, err := program.Eval(o, c)
	for i := range v.Data {
		v.Data[i] *= by
	}
	return v, err
}

// wrong replaces operations of one kind.
func wrong(o op.Op, kind string) op.Op {
	switch o := o.(type) {
	case op.RMSNorm:
		if kind == "rms_norm" && o.Gain == op.Plain {
			return wrongNorm{o}
		}
	case op.GELUTanh:
		if kind == o.Kind() {
			return wrongGELU{o}
		}
	case op.Std:
		if kind == o.Kind() {
			return wrongStd{o}
		}
	case op.Softcap:
		if kind == o.Kind() {
			return wrongSoftcap{o}
		}
	}
	return o
}

// A wrong operation of the walk is found out by the golden, and does not accuse a healthy trace; the others may accuse as
// before.
func TestWrongOperationIsFoundOutAndAccusesNobody(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, right := ordertest.Embedded(t, dir)
	healthy := testengine.OpenGolden(t, "golden/"+dir+"/window.bfloat16.safetensors")
	good := isolate.Certified{}
	reproduces(t, good, dir, hooks.BF16, right, ck)
	for form, ok := range good {
		if !ok {
			t.Errorf("%s has not reproduced the goldens", form)
		}
	}
	for _, kind := range []string{"rms_norm", "gelu_tanh", "std", "softcap"} {
		t.Run(kind, func(t *testing.T) {
			_, list := ordertest.Embedded(t, dir)
			for i := range list.Entries {
				list.Entries[i].Op = wrong(list.Entries[i].Op, kind)
			}
			bad := isolate.Certified{}
			reproduces(t, bad, dir, hooks.BF16, list, ck)
			var out []string
			for _, form := range slices.Sorted(maps.Keys(bad)) {
				if !bad[form] {
					out = append(out, form)
				}
			}
			if !slices.ContainsFunc(out, func(form string) bool { return strings.HasPrefix(form, kind) }) {
				t.Fatalf("the goldens have found out %v, not %s", out, kind)
			}
			walk := walkTrace(t, ck, list, healthy)
			unchecked := run(t, healthy, walk, compare.Options{Order: right, All: true})
			if unchecked.Mismatches == 0 {
				t.Fatal("the wrong operation changes nothing: this shows nothing")
			}
			checked := run(t, healthy, walk, compare.Options{Order: right, All: true, Certification: compare.Certification{Certified: bad}})
			if checked.Mismatches != 0 || len(checked.Unverified) == 0 || checked.ExitCode() != 1 {
				t.Errorf("%d mismatches, %d not judged, exit %d; want none, some, 1", checked.Mismatches, len(checked.Unverified), checked.ExitCode())
			}
		})
	}
}

// A walk whose operations are certified judges: a healthy trace matches it, a faulty one does not.
func TestCertifiedWalkJudges(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := ordertest.Embedded(t, dir)
	certified := isolate.Certified{}
	reproduces(t, certified, dir, hooks.BF16, list, ck)
	healthy := testengine.OpenGolden(t, "golden/"+dir+"/hello.bfloat16.safetensors")
	walk := walkTrace(t, ck, list, healthy)
	if r := run(t, healthy, walk, compare.Options{Order: list, Certification: compare.Certification{Certified: certified}}); r.ExitCode() != 0 || len(r.Unverified) > 0 {
		t.Errorf("transformers against the walk: exit %d, %v, %v", r.ExitCode(), r.Incomplete, r.Unverified)
	}
	delete(certified, "softcap(cap)")
	r := run(t, healthy, walk, compare.Options{Order: list, Certification: compare.Certification{Certified: certified}})
	if want := []string{"logits"}; r.ExitCode() != 1 || !slices.Equal(r.Unverified, want) {
		t.Errorf("without a certified softcap: exit %d, not judged %v, want %v", r.ExitCode(), r.Unverified, want)
	}
}

func walkTrace(t *testing.T, ck *checkpoint.Checkpoint, list *order.List, of *capture.Trace) *capture.Trace {
	t.Helper()
	ids, err := of.IDs()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	_, err = reference.Walk(context.Background(), reference.Job{
		Checkpoint: ck, List: list, DType: of.Manifest().DType, Passes: ids, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// A trace that does not say where its tokens stand has the positions that its token ids give, for the chain that excuses drift, too; and
// these are compared with what the other side says.
func TestAssumedPositionsBreakNoChain(t *testing.T) {
	const dir = "gemma3-tiny"
	narrow, wide := testengine.OpenGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors"), testengine.OpenGolden(t, "golden/"+dir+"/decode.float32.safetensors")
	silent := testengine.Rewritten(t, narrow, func(m *capture.Manifest) { m.Entries, m.Scope = nil, capture.Scope{} }, func(_ string, e hooks.Event) []hooks.Event {
		if e.Name == order.PositionIDs {
			return nil
		}
		return []hooks.Event{e}
	})
	shifted := testengine.Rewritten(t, wide, nil, func(_ string, e hooks.Event) []hooks.Event {
		if e.Name == order.PositionIDs && e.Pass > 0 {
			e.Tensor = hooks.Tensor{DType: hooks.I64, Shape: e.Tensor.Shape, Data: appendValue(nil, hooks.I64, 99)}
		}
		return []hooks.Event{e}
	})
	ck, list := ordertest.Embedded(t, dir)
	drifted := func(local, ref *capture.Trace) (drift, past int) {
		o := compare.Options{Order: list, All: true, Judging: compare.Judging{Limits: limits(t, "[[tolerance]]\ntensors = \"*\"\nrtol = 2e-3")}}
		for of, into := range map[*capture.Trace]**compare.Isolator{local: &o.Isolator, ref: &o.ReferenceIsolator} {
			var err error
			if *into, err = compare.NewIsolator(of, list, reference.Weights(ck, of.Manifest().DType), isolate.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		r := run(t, local, ref, o)
		return r.Isolation.Drift, r.Mismatches
	}
	said, past := drifted(narrow, wide)
	if said < 100 || past > 0 {
		t.Fatalf("with positions %d entries have drifted, and %d are past a limit", said, past)
	}
	if drift, past := drifted(silent, wide); drift != said || past > 0 {
		t.Errorf("without positions %d entries have drifted, want %d, and %d are past a limit", drift, said, past)
	}
	if drift, past := drifted(silent, shifted); drift >= said || past == 0 {
		t.Errorf("against other positions %d entries have drifted, and %d are past a limit", drift, past)
	}
}
