package compare_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
)

// logits compares rows of logits in float64 and returns what they say, nil where nothing is said.
func logits(t testing.TB, l, r []float64, shape []int, o compare.Options) *compare.Final {
	t.Helper()
	o.Order, o.All = names(t, "logits"), true
	return run(t, build(t, manifest("local", hooks.F64), fire("logits", hooks.F64, shape, l...)),
		build(t, manifest("reference", hooks.F64), fire("logits", hooks.F64, shape, r...)), o).Final
}

// oneRow compares a single row.
func oneRow(t testing.TB, l, r []float64) compare.Next {
	t.Helper()
	return logits(t, l, r, []int{1, 1, len(r)}, compare.Options{}).Passes[0].Last
}

func TestCandidates(t *testing.T) {
	texts := func() (func(id int) string, error) {
		return func(id int) string { return fmt.Sprint("t", id) }, nil
	}
	local := []float64{9, 8, notANum, 6, 5, 4, 3, -inf, 10}
	ref := []float64{8, 8, 7, 6, 5, 4, 3, 2, notANum}
	got := logits(t, local, ref, []int{1, 1, 9}, compare.Options{Reporting: compare.Reporting{TokenTexts: texts}}).Passes[0].Last
	token := func(id, rankR, rankL int) compare.Token {
		s := fmt.Sprint("t", id)
		return compare.Token{ID: id, Text: &s, ReferenceRank: rankR, LocalRank: rankL, Reference: measure.Number(ref[id]), Local: measure.Number(local[id])}
	}
	// Of equal logits the lower id is first, a NaN has no rank, and of the local side's five only the first is new.
	want := []compare.Token{token(0, 1, 2), token(1, 2, 3), token(2, 3, 0), token(3, 4, 4), token(4, 5, 5), token(8, 0, 1)}
	same := cmp.Comparer(func(a, b measure.Number) bool { return a == b || a != a && b != b })
	if diff := cmp.Diff(want, got.Top, same); diff != "" {
		t.Errorf("candidates\n%s", diff)
	}
	if got.Reference != 0 || got.Local != 8 || got.Agree || got.Lead != 0 || got.Tie {
		t.Errorf("choices %d and %d, agree %v, lead %v, tie %v", got.Reference, got.Local, got.Agree, got.Lead, got.Tie)
	}
	if none := oneRow(t, []float64{-inf, -inf}, []float64{notANum, notANum}); none.Reference != -1 || none.Local != -1 || none.Agree || len(none.Top) != 0 {
		t.Errorf("of rows without any number: %+v", none)
	}
}

// A flip is a tie within six noise floors, in the logits' own units; where the floor of the prompt is not known, within
// twice the limit.
func TestTieInUnitsOfTheNoise(t *testing.T) {
	const rms = 10 // of the rows below, nearly
	floor := func(rel float64) *gate.NoiseFloor {
		return &gate.NoiseFloor{DType: "float64", Entries: map[string]gate.Noise{"logits": {RelL2: measure.Number(rel)}}}
	}
	tests := []struct {
		why   string
		apart float64
		noise *gate.NoiseFloor
		tie   bool
		unit  float64
	}{
		{"within six floors", 5.9e-3 * rms, floor(1e-3), true, 1e-3 * rms},
		{"beyond six floors", 6.1e-3 * rms, floor(1e-3), false, 1e-3 * rms},
		{"a floor smaller than the table's limit is held to", 1e-4 * rms, floor(1e-5), false, 1e-5 * rms},
		{"without a floor, within twice the limit of 1e-3", 1.9e-3 * rms, nil, true, 1e-3 * rms},
		{"and beyond", 2.1e-3 * rms, nil, false, 1e-3 * rms},
		{"a floor of another dtype says nothing", 1.9e-3 * rms, &gate.NoiseFloor{DType: "bfloat16", Entries: floor(1).Entries}, true, 1e-3 * rms},
	}
	for _, tt := range tests {
		r := []float64{rms + tt.apart, rms, -rms, -rms}
		l := []float64{rms, rms + tt.apart, -rms, -rms}
		f := logits(t, l, r, []int{1, 1, 4}, compare.Options{Judging: compare.Judging{Noise: tt.noise}}).Passes[0]
		n := f.Last
		if n.Agree || n.Tie != tt.tie || f.Flipped != 1 || f.FlipGap != n.Gap || f.Warning != "" {
			t.Errorf("%s: %+v", tt.why, f)
		}
		if !(math.Abs(float64(n.Noise)-tt.unit) <= 0.01*tt.unit) || !(math.Abs(float64(n.Gap)-tt.apart) <= 1e-12) {
			t.Errorf("%s: a gap of %g in units of %g, want %g in %g", tt.why, float64(n.Gap), float64(n.Noise), tt.apart, tt.unit)
		}
	}
}

// What keeps the order of the logits keeps the greedy token: the agreement is reported with what it is worth, and the
// comparison fails.
func TestGreedyAgreementProvesLittle(t *testing.T) {
	r := []float64{25, -3, 7, 12}
	for why, wrong := range map[string]func(float64) float64{
		"scaled":        func(x float64) float64 { return 2 * x },
		"a missing cap": func(x float64) float64 { return 30 * math.Atanh(x/30) },
	} {
		l := make([]float64, len(r))
		for i, x := range r {
			l[i] = wrong(x)
		}
		shape := []int{1, 1, len(r)}
		res := run(t, build(t, manifest("local", hooks.F32), fire("logits", hooks.F32, shape, l...)),
			build(t, manifest("reference", hooks.F32), fire("logits", hooks.F32, shape, r...)), compare.Options{Order: names(t, "logits")})
		f := res.Final.Passes[0]
		if !f.Last.Agree || f.Warning == "" || f.Last.KL <= 0 || res.ExitCode() != 1 {
			t.Errorf("%s: agree %v, %q, KL %v, exit code %d", why, f.Last.Agree, f.Warning, f.Last.KL, res.ExitCode())
		}
	}
}

// Rows are measured several at a time and in batches; the worst is the first of the worst all the same, and is named by
// its place in the reference's tensor and in the sequence.
func TestWorstRow(t *testing.T) {
	const rows, size = 150, 2000
	r := make([]float64, rows*size)
	for i := range r {
		r[i] = float64(i*7919%1000) / 100
	}
	l := slices.Clone(r)
	for _, row := range []int{149, 77, 78, 131} { // all by as much
		copy(r[row*size:], r[:size])
		copy(l[row*size:(row+1)*size], l[:size])
		l[row*size+5] += 3
	}
	for range 5 {
		f := logits(t, l, r, []int{1, rows, size}, compare.Options{}).Passes[0]
		if diff := cmp.Diff([]int{0, 77}, f.WorstRow.Index); diff != "" || f.Rows != rows || f.Last.KL != f.WorstKL {
			t.Fatalf("%d rows, the last %v, the worst %v: %s", f.Rows, f.Last.KL, f.WorstKL, diff)
		}
	}
	l[77*size] = notANum
	if f := logits(t, l, r, []int{1, rows, size}, compare.Options{}).Passes[0]; f.UndefinedKL != 1 || f.WorstRow.Index[1] != 78 {
		t.Errorf("with a NaN: %d undefined, the worst at %v", f.UndefinedKL, f.WorstRow.Index)
	}
}

// Of some positions the last row is the last of these, wherever either trace has it.
func TestLastRowOfSomePositions(t *testing.T) {
	list := tiny(t)
	size := list.Config.VocabSize
	full := model{list: list}.trace(t, "reference")
	res := run(t, model{list: list}.trace(t, "local"), full, compare.Options{Order: list, Scope: capture.Scope{Positions: ranges(t, "0-1")}})
	f := res.Final.Passes[0]
	rec, _ := full.Lookup(0, "logits")
	value, err := full.Value(rec.Pass, rec.Name)
	if err != nil {
		t.Fatal(err)
	}
	row := value.Data[size : 2*size]
	if f.Last.Row.Index[1] != 1 || f.Last.Row.Position == nil || *f.Last.Row.Position != 1 || f.Rows != 2 {
		t.Errorf("row %+v of %d", f.Last.Row, f.Rows)
	}
	if want := slices.Max(row); float64(f.Last.Top[0].Reference) != want {
		t.Errorf("its largest logit is %v, want %v", f.Last.Top[0].Reference, want)
	}
}

// Whatever is called logits may have any shape.
func TestLogitsOfOddShapes(t *testing.T) {
	for _, shape := range [][]int{{}, {3}, {0, 4}, {4, 1}, {2, 3, 2, 2}, {1, 0}} {
		n, _ := hooks.Elements(shape)
		values := make([]float64, max(n, 1))
		for i := range values {
			values[i] = float64(i % 5)
		}
		f := logits(t, values, values, shape, compare.Options{})
		if want := n > 0 && len(shape) > 0 && shape[len(shape)-1] > 1; (f != nil) != want || want && f.Passes[0].Last.KL != 0 {
			t.Errorf("%v: %+v", shape, f)
		}
	}
}
