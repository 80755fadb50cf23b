package compare_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// TestBeforeTheLayers has an embedding scale that was rounded to bfloat16, a known fault of float32 ports.
func TestBeforeTheLayers(t *testing.T) {
	list := tiny(t)
	scale := func(by float64) func(int, float64) float64 {
		return func(_ int, v float64) float64 { return v * by }
	}
	r := model{list: list}.trace(t, "reference")
	for _, tt := range []struct {
		name string
		by   float64
		want int
	}{
		{"embed_tokens", 5.65625 / 5.656854249492381, 1},
		{"embed_tokens", 1 + 1e-6, 0},
		{"layers.3.mlp.up_proj", 5.65625 / 5.656854249492381, 0},
		{"layers.3.mlp.up_proj", 1.002, 1},
		{"norm", 1.0005, 0},
	} {
		l := model{list: list, change: changing(tt.name, 0, scale(tt.by))}.trace(t, "local")
		if res := run(t, l, r, compare.Options{Order: list}); res.ExitCode() != tt.want {
			t.Errorf("%s times %g: exit code %d, want %d", tt.name, tt.by, res.ExitCode(), tt.want)
		}
	}
}

// TestLimitsOfTheModelsDType has a tensor that is float32 in a bfloat16 model: what it is made of is bfloat16, and so
// is its noise.
func TestLimitsOfTheModelsDType(t *testing.T) {
	list := tiny(t)
	const name = "layers.0.self_attn.probs_f32"
	noisy := changing(name, 0, func(i int, v float64) float64 { return v * (1 + 0.02*float64(i%3-1)) })
	for _, tt := range []struct {
		dtype hooks.DType
		exit  int
	}{{hooks.BF16, 0}, {hooks.F32, 1}} {
		l, r := model{list: list, dtype: tt.dtype, change: noisy}.trace(t, "local"), model{list: list, dtype: tt.dtype}.trace(t, "reference")
		if res := run(t, l, r, compare.Options{Order: list}); res.ExitCode() != tt.exit {
			t.Errorf("%s: exit code %d, want %d", tt.dtype, res.ExitCode(), tt.exit)
		}
	}
}

// bug damages a port's tensor [tokens, channels] in place.
type bug struct {
	name string
	do   func(x []float64, tokens, channels int)
	// caught with limits for bfloat16, plain and with massive activations in the data
	plain, massive bool
}

var bugs = []bug{
	{"none: a healthy port", func([]float64, int, int) {}, false, false},
	{"one NaN", func(x []float64, _, _ int) { x[12345] = math.NaN() }, true, true},
	{"scale 2", func(x []float64, _, _ int) { scale(x, 2) }, true, true},
	{"scale 1.15", func(x []float64, _, _ int) { scale(x, 1.15) }, true, true},
	{"last token zeroed", func(x []float64, tokens, channels int) { scale(x[(tokens-1)*channels:], 0) }, true, true},
	{"last token is another", func(x []float64, tokens, channels int) { copy(x[(tokens-1)*channels:], x[5*channels:6*channels]) }, true, true},
	{"one of 16 heads negated", func(x []float64, tokens, channels int) {
		for t := range tokens {
			scale(x[t*channels+64:t*channels+128], -1)
		}
	}, true, true},
	{"two channels swapped", func(x []float64, tokens, channels int) {
		for t := range tokens {
			x[t*channels+7], x[t*channels+8] = x[t*channels+8], x[t*channels+7]
		}
	}, true, true},
	{"tokens permuted", func(x []float64, tokens, channels int) {
		for t := 0; t+1 < tokens; t += 2 {
			for c := range channels {
				x[t*channels+c], x[(t+1)*channels+c] = x[(t+1)*channels+c], x[t*channels+c]
			}
		}
	}, true, true},
	// Smaller than what bfloat16 may accumulate: no limit on accumulated errors shows these, isolated operations do.
	{"scale 1.03", func(x []float64, _, _ int) { scale(x, 1.03) }, false, false},
	{"0.1 % of the elements 20 % too large", func(x []float64, _, _ int) {
		for i := 0; i < len(x); i += 1000 {
			x[i] *= 1.2
		}
	}, false, false},
}

func scale(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}

// TestInjectedBugs has a port with noise of two unit roundoffs of bfloat16 on Gaussian data, once more with the massive
// activations and the hot channel of a residual stream, which disarm whatever divides by one global norm or maximum.
func TestInjectedBugs(t *testing.T) {
	const tokens, channels = 128, 1024
	for _, massive := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(3, 4))
		r := make([]float64, tokens*channels)
		for i := range r {
			r[i] = rng.NormFloat64()
			if massive && i%channels == 77 {
				r[i] *= 40
			}
		}
		if massive {
			r[100], r[200] = 1500, -900
		}
		for _, b := range bugs {
			l := make([]float64, len(r))
			for i, v := range r {
				l[i] = v * (1 + rng.NormFloat64()/256)
			}
			b.do(l, tokens, channels)
			row := rowOf(t, testengine.Pair{Shape: []int{tokens, channels}, DType: hooks.BF16, Local: l, Reference: r})
			want := b.plain
			if massive {
				want = b.massive
			}
			if got := row.Verdict == compare.Mismatch; got != want {
				t.Errorf("massive %t, %s: %s, smallest tolerance %.3g", massive, b.name, row.Verdict, row.Gate.Tolerance)
			}
		}
	}
}

// TestAxisThatIsTooLong is not measured index by index. The row says so, and the tensor is decided on all the same.
func TestAxisThatIsTooLong(t *testing.T) {
	const n = 1<<22 + 1
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i%13) - 6
	}
	row := rowOf(t, testengine.Pair{Shape: []int{n}, DType: hooks.BF16, Local: values, Reference: values})
	if row.Verdict != compare.Match || !hasNote(row, compare.LongAxis) || row.Metrics.Axes != nil {
		t.Errorf("%s, notes %v, axes %v", row.Verdict, row.Notes, row.Metrics.Axes)
	}
	if row := rowOf(t, testengine.Pair{Shape: []int{n}, DType: hooks.BF16, Local: times(values, 2), Reference: values}); row.Verdict != compare.Mismatch {
		t.Error("a doubled tensor passes")
	}
}

// operands are the reference's inputs of an operation that cancels or saturates, and its result.
type operands struct {
	a, b, out string
	x, y      []float64
}

func (o operands) compare(t *testing.T, l, r []float64) compare.Row {
	t.Helper()
	list := tiny(t)
	shape := []int{1, 2, 4}
	trace := func(side string, out []float64) *capture.Trace {
		events := []hooks.Event{fire(o.a, hooks.F32, shape, o.x...)}
		if o.b != "" {
			events = append(events, fire(o.b, hooks.F32, shape, o.y...))
		}
		return build(t, manifest(side, hooks.F32), append(events, fire(o.out, hooks.F32, shape, out...))...)
	}
	res := run(t, trace("local", l), trace("reference", r), compare.Options{Order: list, All: true})
	return res.Rows[len(res.Rows)-1]
}

func TestSumsAreMeasuredAgainstTheirTerms(t *testing.T) {
	// Terms that cancel to a thousandth: an error of 1e-4 of the terms is a tenth of the result.
	x := times(some, 1)
	y := times(some, -0.999)
	sum := times(some, 0.001)
	o := operands{"layers.0.input_layernorm", "layers.0.laurel.post_laurel_norm", "layers.0.laurel", x, y}
	row := o.compare(t, times(some, 0.0011), sum)
	if row.Verdict != compare.Match || !hasNote(row, compare.Floored) {
		t.Errorf("an error of 1e-4 of the terms: %s, %+v", row.Verdict, row.Notes)
	}
	terms := math.Sqrt(1 + 0.999*0.999)
	if got, want := float64(row.Metrics.Floor), norm(some)*terms; math.Abs(got/want-1) > 1e-6 {
		t.Errorf("floor %g, want the norm of the terms, %g", got, want)
	}
	if row := o.compare(t, times(some, 0.004), sum); row.Verdict != compare.Mismatch {
		t.Error("an error of 3e-3 of the terms passes")
	}
	// A term that was left out is as large as the terms.
	if row := o.compare(t, x, sum); row.Verdict != compare.Mismatch {
		t.Error("a sum without its second term passes")
	}
	// In one token alone, where the floor of the whole tensor would hide it if the other tokens were massive.
	big := operands{o.a, o.b, o.out, []float64{1e6, 1e6, 1e6, 1e6, 1, 2, 3, 4}, []float64{1e6, -1e6, 1e6, 1e6, 4, 3, 2, 1}}
	out := []float64{2e6, 0, 2e6, 2e6, 5, 5, 5, 5}
	if row := big.compare(t, []float64{2e6, 0, 2e6, 2e6, 5, 5, -5, 5}, out); row.Verdict != compare.Mismatch {
		t.Error("massive terms in one token hide a wrong sum in another")
	}
}

func TestSaturatedActivations(t *testing.T) {
	gate := []float64{-9, -8, -7, -6, -9, -8, -7, -6} // GELU of these is 0 in float32, or as good as
	sparse := operands{"layers.0.mlp.gate_proj", "", "layers.0.mlp.gate_sparse", gate, nil}
	gelu := operands{"layers.2.mlp.gate_proj", "", "layers.2.mlp.act_fn", gate, nil}
	zero := times(gate, 0)
	for _, o := range []operands{sparse, gelu} {
		if row := o.compare(t, zero, zero); row.Verdict != compare.Match || !hasNote(row, compare.Vacuous) {
			t.Errorf("%s: zero against zero: %s, %+v", o.out, row.Verdict, row.Notes)
		}
		if row := o.compare(t, times(gate, 1e-6), zero); row.Verdict != compare.Match || !hasNote(row, compare.Floored) {
			t.Errorf("%s: tiny against its operands: %s", o.out, row.Detail)
		}
		if row := o.compare(t, times(gate, 5e-4), zero); row.Verdict != compare.Match {
			t.Errorf("%s: half of the limit of the input, all of whose norm is the scale of a zero result: %s", o.out, row.Detail)
		}
		if row := o.compare(t, with(zero, 3, -0.5), zero); row.Verdict != compare.Mismatch {
			t.Errorf("%s: an element that did not saturate passes", o.out)
		}
		if row := o.compare(t, gate, zero); row.Verdict != compare.Mismatch {
			t.Errorf("%s: an activation that was left out passes", o.out)
		}
	}
	// Where the reference is not zero the floor is an eighth of the input, so that errors of a sparse result show.
	few := []float64{0, 0, 0, 2, 0, 0, 0, 0}
	if row := sparse.compare(t, with(few, 3, 2.01), few); row.Verdict != compare.Mismatch {
		t.Error("a sparse activation that is 5e-3 off passes")
	}
	// Without the operands in the reference trace there is no floor.
	bare := operands{"layers.0.in", "", "layers.2.mlp.act_fn", gate, nil}
	if row := bare.compare(t, times(gate, 1e-6), zero); row.Verdict != compare.Mismatch || !math.IsInf(float64(row.Metrics.RelL2), 1) {
		t.Errorf("without operands: %s, relative L2 %g", row.Verdict, row.Metrics.RelL2)
	}
}

// TestFloorOfStreams has the floor of what is added to every stream of a stack.
func TestFloorOfStreams(t *testing.T) {
	list := tiny(t)
	// layers.0.altup.predict adds to all streams of layers.0.in, which have its shape.
	shape := []int{4, 1, 1, 2}
	in := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	trace := func(side string, by float64) *capture.Trace {
		return build(t, manifest(side, hooks.F32), fire("layers.0.in", hooks.F32, shape, in...), fire("layers.0.altup.predict", hooks.F32, shape, times(in, by)...))
	}
	row := run(t, trace("local", 1e-6), trace("reference", 1e-9), compare.Options{Order: list}).Rows[1]
	if row.Verdict != compare.Match || !(math.Abs(float64(row.Metrics.Floor)/norm(in)-1) <= 1e-6) {
		t.Errorf("%s, floor %g", row.Verdict, row.Metrics.Floor)
	}
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

// A manifest that declares a dtype in which no model computes does not widen the limits of what is stored in another.
func TestDeclaredDTypesThatNothingComputesIn(t *testing.T) {
	for d, want := range map[hooks.DType]compare.Verdict{hooks.BF16: compare.Match, hooks.F8E4M3: compare.Mismatch, hooks.F8E5M2: compare.Mismatch, hooks.Bool: compare.Mismatch} {
		l := build(t, manifest("local", d), fire("x", hooks.F32, []int{2}, 1, 2*(1+1e-2)))
		r := build(t, manifest("reference", hooks.F32), fire("x", hooks.F32, []int{2}, 1, 2))
		if row := run(t, l, r, compare.Options{Order: names(t, "x")}).Rows[0]; row.Verdict != want {
			t.Errorf("declared %s: %s by %s", d, row.Verdict, row.Gate.From)
		}
	}
}
