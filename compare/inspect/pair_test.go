package inspect_test

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

func pair(t *testing.T, a, b *capture.Trace, o inspect.Options) *inspect.Result {
	t.Helper()
	r, err := inspect.Pair(context.Background(), a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The difference is that of the elements, what both mask apart from it.
func TestDifference(t *testing.T) {
	low := -math.MaxFloat32
	a := open(t, file(tensor("w", hooks.F32, []int{2, 3}, 1, 2, low, 4, math.NaN(), low)))
	b := open(t, file(tensor("w", hooks.BF16, []int{2, 3}, 1.5, 2, -0x1.fep127, 3, 1, 7)))
	r := pair(t, a, b, inspect.Options{Name: "w", Slice: "0,:2"})
	d := r.Difference
	want := inspect.Stats{
		Elements: 6, Finite: 4, Masked: 1, NaN: 1, Zeros: 1, Min: measure.Number(low - 7), Max: 1, MinAt: []int{1, 2}, MaxAt: []int{1, 0},
		Mean: d.Stats.Mean, Std: d.Stats.Std, RMS: d.Stats.RMS,
	}
	if diff := cmp.Diff(want, d.Stats); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]measure.Number{-0.5, 0}, d.Values.Values); diff != "" {
		t.Error(diff)
	}
	if m := d.Metrics; m.MaxAbs != measure.Number(7-low) || m.NonFinite != 1 {
		t.Errorf("%+v", m)
	}
}

func TestNoDifferenceOfTwoShapes(t *testing.T) {
	a, b := counted(t, 2, 3), counted(t, 3, 2)
	if r := pair(t, a, b, inspect.Options{Name: "w"}); r.Difference != nil || len(r.Notes) != 1 || len(r.Tensors) != 2 {
		t.Errorf("%+v", r)
	}
}

// The numbers of a pair are those that a comparison of the traces has, for every entry without a rule of its own.
func TestNumbersAreThoseOfAComparison(t *testing.T) {
	a, b := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors"), testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.bfloat16.safetensors")
	config, err := order.ParseCanonical(a.Manifest().Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	all, err := compare.AB(context.Background(), a, b, compare.Options{Order: list, All: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, row := range all.Rows {
		e, _ := list.Lookup(row.Name)
		if row.Metrics == nil || row.Metrics.Floor != 0 || e.Compare != order.All || row.Metrics.Pattern != nil {
			continue
		}
		seen++
		got := pair(t, a, b, inspect.Options{Name: row.Name, Order: list})
		for i := range row.Metrics.Axes {
			row.Metrics.Axes[i].Position = nil // which takes the position_ids of a whole trace
		}
		if diff := cmp.Diff(row.Metrics, got.Difference.Metrics, sameNumbers, cmp.FilterPath(unexported, cmp.Ignore())); diff != "" {
			t.Errorf("%s\n%s", row.Name, diff)
		}
		if s := got.Tensors[0].Line.Stats; s.Masked == 0 && (s.Mean != row.Metrics.Local.Mean || s.Std != row.Metrics.Local.Std) {
			t.Errorf("%s: mean %v, std %v; a comparison has %v and %v", row.Name, s.Mean, s.Std, row.Metrics.Local.Mean, row.Metrics.Local.Std)
		}
	}
	if seen < 50 {
		t.Errorf("%d entries compared", seen)
	}
}

func unexported(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && f.Name()[0] >= 'a' && f.Name()[0] <= 'z'
}

// Heads, streams and tokens are found in a golden by what its config says.
func TestGoldenInFull(t *testing.T) {
	tr := testengine.OpenGolden(t, "golden/gemma3n-tiny/decode.bfloat16.safetensors")
	config, err := order.ParseCanonical(tr.Manifest().Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		axis     string
		slices   int
		channels bool
	}{
		"layers.0.self_attn.q_norm": {"head", 4, true},
		"layers.0.self_attn.probs":  {"head", 4, false},
		"layers.2.out":              {"stream", 4, true},
		"logits":                    {"", 0, false},
		"input_ids":                 {"", 0, false},
	} {
		x := one(t, tr, inspect.Options{Name: name, Order: list, Passes: ranges(t, "3")})
		if len(x.ByAxis) > 0 != (want.axis != "") || x.Passes != "0-2,4-6" || x.Entry == nil || x.Line.Pass != 3 || (x.Channels != nil) != want.channels {
			t.Errorf("%s: %+v", name, x)
		}
		if len(x.ByAxis) > 0 && (x.ByAxis[0].Axis != want.axis || len(x.ByAxis[0].Slices) != want.slices) {
			t.Errorf("%s: by %s, %d indexes", name, x.ByAxis[0].Axis, len(x.ByAxis[0].Slices))
		}
		if (x.Logits != nil) != (name == "logits") {
			t.Errorf("%s: logits %v", name, x.Logits)
		}
	}
}

// Every dtype of a file that the official Python package wrote, by what fixtures/foreign/official.py put there.
func TestOfficialFile(t *testing.T) {
	data, err := os.ReadFile("../../fixtures/foreign/official.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	tr := open(t, data)
	r, err := inspect.Run(context.Background(), tr, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.List) != 15 || r.Files[0].Sequence {
		t.Fatalf("%d tensors, in sequence: %v", len(r.List), r.Files[0].Sequence)
	}
	for _, l := range r.List {
		one(t, tr, inspect.Options{Name: l.Name})
	}
	stats := func(name string) inspect.Stats { return *one(t, tr, inspect.Options{Name: name}).Line.Stats }
	if s := stats("model.broken"); s.NaN != 1 || s.Inf != 1 || s.NInf != 1 || s.Finite != 13 {
		t.Errorf("broken: %+v", s)
	}
	if s := stats("model.scores"); s.Masked != 30 || s.Min != -4 || s.Max != 4 {
		t.Errorf("scores: %+v", s)
	}
	if s := stats("model.small"); s.Min != -6 || s.Max != 5 || s.Mean != -0.5 {
		t.Errorf("small: %+v", s)
	}
	if s := stats("model.bytes"); s.Min != 250 || s.Max != 255 {
		t.Errorf("bytes: %+v", s)
	}
	if s := stats("quantized[1].weight"); s.Min != -4 || s.Max != 4 {
		t.Errorf("quantized: %+v", s)
	}
	if c := one(t, tr, inspect.Options{Name: "model.hidden"}).Channels; c.Top[0].Index != 5 || c.Top[0].Ratio < 50 {
		t.Errorf("hidden: %+v", c)
	}
	if l := one(t, tr, inspect.Options{Name: "model.logits"}).Logits; l == nil || l.Top[0].ID != 10 || l.Top[0].Logit != 4 {
		t.Errorf("logits: %+v", l)
	}
}
