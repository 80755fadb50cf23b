package compare_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// limits parses a file or fails.
func limits(t testing.TB, text string) *gate.Limits {
	t.Helper()
	l, err := gate.ParseLimits([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// under compares one pair of a tensor x within limits.
func under(t *testing.T, l *gate.Limits, local, ref []float64) compare.Row {
	t.Helper()
	shape := []int{1, 2, len(ref) / 2}
	res := run(t, build(t, manifest("local", hooks.F32), fire("x", hooks.F32, shape, local...)),
		build(t, manifest("reference", hooks.F32), fire("x", hooks.F32, shape, ref...)), compare.Options{Order: names(t, "x"), Judging: compare.Judging{Limits: l}})
	return res.Rows[0]
}

func TestOwnTolerances(t *testing.T) {
	zero := times(some, 0)
	for _, tt := range []struct {
		why, text  string
		local, ref []float64
		match      bool
	}{
		{"wider than the table", "rtol = 0.1", times(some, 1.05), some, true},
		{"and past it", "rtol = 0.04", times(some, 1.05), some, false},
		{"zero is equality", "rtol = 0", some, some, true},
		{"which a rounding error is not", "rtol = 0", times(some, 1+1e-6), some, false},
		{"atol is a root mean square", "atol = 0.26", times(some, 1.05), some, true}, // of 0.05·√(204/8) = 0.2525
		{"past it", "atol = 0.24", times(some, 1.05), some, false},
		{"both add up", "atol = 0.13\nrtol = 0.025", times(some, 1.05), some, true},
		{"over a reference of zero no element may be further off than atol", "atol = 0.01", with(zero, 3, 0.009), zero, true},
		{"past it", "atol = 0.01", with(zero, 3, 0.011), zero, false},
		{"which rtol says nothing about", "rtol = 0.9", with(zero, 3, 1e-9), zero, false},
		{"NaN has no tolerance", "rtol = 1\natol = 1e300", with(some, 3, notANum), some, false},
	} {
		row := under(t, limits(t, "[[tolerance]]\ntensors = \"*\"\n"+tt.text), tt.local, tt.ref)
		if (row.Verdict == compare.Match) != tt.match {
			t.Errorf("%s: %s, %s", tt.why, row.Verdict, row.Detail)
		}
		if row.Gate.From != `tolerances, "*"` {
			t.Errorf("%s: limits from the %s", tt.why, row.Gate.From)
		}
	}
}

// The limits that a file gives for tokens and channels are theirs, and not multiples of the tensor's.
func TestOwnToleranceOfASlice(t *testing.T) {
	list := tiny(t)
	off := changing("norm", 0, func(i int, v float64) float64 {
		if i < 32 { // the first token
			return v * 1.2
		}
		return v
	})
	l, r := model{list: list, change: off}.trace(t, "local"), model{list: list}.trace(t, "reference")
	for text, exit := range map[string]int{
		"rtol = 0.1":                               0, // 0.2/√6 of the tensor, and of the token 0.2 within thrice 0.1
		"rtol = 0.1\ntoken = 0.19":                 1,
		"rtol = 0.1\ntoken = 0.21":                 0,
		"rtol = 0.1\ntoken = 0.21\nchannel = 0.05": 1,
	} {
		res := run(t, l, r, compare.Options{Order: list, Judging: compare.Judging{Limits: limits(t, "[[tolerance]]\ntensors = \"*\"\n"+text)}})
		if res.ExitCode() != exit {
			t.Errorf("%q: exit code %d, want %d", text, res.ExitCode(), exit)
		}
	}
}

func TestFirstRuleDecides(t *testing.T) {
	l := limits(t, `
[[tolerance]]
tensors = "x"
passes = "1-"
rtol = 1e-9
[[tolerance]]
tensors = "x"
rtol = 0.1
[[tolerance]]
tensors = "*"
rtol = 1e-9
`)
	if row := under(t, l, times(some, 1.05), some); row.Verdict != compare.Match || row.Gate.From != `tolerances, "x"` {
		t.Errorf("%s, limits from the %s", row.Verdict, row.Gate.From)
	}
}

// A file of tolerances that says nothing about an entry is an error before anything is compared, unless there is a limit
// for the rest.
func TestEveryEntryNeedsATolerance(t *testing.T) {
	list := tiny(t)
	l, r := model{list: list}.trace(t, "local"), model{list: list}.trace(t, "reference")
	own := limits(t, "[[tolerance]]\ntensors = \"layers.*\"\nrtol = 0.1\n")
	_, err := compare.Traces(t.Context(), l, r, compare.Options{Order: list, Judging: compare.Judging{Limits: own}})
	var unsuitable *compare.UnsuitableError
	if !errors.As(err, &unsuitable) || unsuitable.What != "tolerances" || !strings.Contains(err.Error(), `"embed_tokens`) {
		t.Errorf("entries without a tolerance: %v", err)
	}
	own.Default = &gate.Tolerance{RTol: 0.1}
	if res := run(t, l, r, compare.Options{Order: list, Judging: compare.Judging{Limits: own}}); res.ExitCode() != 0 {
		t.Errorf("with a limit for the rest: %+v", res.Divergence)
	}
	// Token ids, positions and masks have no tolerance and need none.
	own = limits(t, "[[tolerance]]\ntensors = \"layers.*\"\nrtol = 0.1\n")
	run(t, l, r, compare.Options{Order: names(t, "input_ids", "position_ids", "layers.0.in"), Judging: compare.Judging{Limits: own}})
}

const allowUp = "[[allow]]\ntensors = \"layers.3.mlp.up_proj\"\nreason = \"known: the weight is quantized\"\n"

func TestAllowedMismatch(t *testing.T) {
	list := tiny(t)
	const name = "layers.3.mlp.up_proj"
	scaled := changing(name, 0, func(_ int, v float64) float64 { return v * 1.5 })
	nan := changing(name, 0, func(i int, v float64) float64 {
		if i == 7 {
			return notANum
		}
		return v
	})
	r := model{list: list}.trace(t, "reference")
	for _, tt := range []struct {
		why, text string
		change    func(*order.Entry, *hooks.Event) bool
		exit      int
		keys      int
	}{
		{"a wrong value that is known", allowUp, scaled, 0, 1},
		{"in a pass that the line is not about", allowUp + "passes = \"1-\"\n", scaled, 1, 0},
		{"a NaN hides behind no such line", allowUp, nan, 1, 0},
		{"unless it says so", allowUp + "classes = [\"NONFINITE\"]\n", nan, 0, 1},
		{"nor does a tensor that is missing", allowUp, without(name), 1, 0},
		{"unless it says so", allowUp + "classes = [\"MISSING\"]\n", without(name), 0, 1},
		{"nothing to allow", allowUp, nil, 0, 0},
	} {
		res := run(t, model{list: list, change: tt.change}.trace(t, "local"), r, compare.Options{Order: list, Judging: compare.Judging{Limits: limits(t, tt.text)}})
		if res.ExitCode() != tt.exit || len(res.Allowed) != 1 || len(res.Allowed[0].Keys) != tt.keys {
			t.Errorf("%s: exit code %d, allowed %+v, divergence %+v", tt.why, res.ExitCode(), res.Allowed, res.Divergence)
		}
		for _, row := range res.Rows {
			if row.Allowed != "" && (row.Verdict != compare.Mismatch || row.Name != name || row.Allowed != "known: the weight is quantized") {
				t.Errorf("%s: %s is %s, allowed because %q", tt.why, row.Name, row.Verdict, row.Allowed)
			}
		}
	}
}

// What is allowed is not what was tested, and different token ids are never allowed.
func TestAllowingEverythingIsNoSuccess(t *testing.T) {
	list := tiny(t)
	all := limits(t, "[[allow]]\ntensors = \"*\"\nclasses = [\"VALUE\", \"SHAPE\", \"NONFINITE\", \"DTYPE\", \"MISSING\"]\nreason = \"everything\"\n")
	off := func(e *order.Entry, ev *hooks.Event) bool {
		if ev.Tensor.DType.Float() {
			*ev = edited(*ev, func(_ int, v float64) float64 { return -2 * v })
		}
		return true
	}
	r := model{list: list}.trace(t, "reference")
	if res := run(t, model{list: list, change: off}.trace(t, "local"), r, compare.Options{Order: list, Judging: compare.Judging{Limits: all}}); res.Mismatches == 0 && res.Coverage.Tested > 40 {
		t.Errorf("%d entries count as tested", res.Coverage.Tested)
	}
	other := model{list: list, passes: [][]float64{{2, 500, 501, 502, 503, 505}}}.trace(t, "local")
	if res := run(t, other, r, compare.Options{Order: list, Judging: compare.Judging{Limits: all}}); res.ExitCode() != 1 || res.Divergence == nil {
		t.Error("different token ids are allowed")
	}
}

func TestParseLimitsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[[tolerance]]\ntensors = \"x\"\nrtoll = 1e-3\n":                           `line 3, "rtoll = 1e-3": unknown key "tolerance.rtoll"`,
		"[[tolerances]]\ntensors = \"x\"\n":                                        `line 1, "[[tolerances]]": unknown key "tolerances"`,
		"[[tolerance]]\ntensors = \"x\"\n":                                         `[[tolerance]] 1, "x": neither rtol nor atol`,
		"[[tolerance]]\nrtol = 1\n":                                                `[[tolerance]] 1, "": no tensors`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = -1\n":                              `rtol is -1, want 0 or more`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = nan\n":                             `rtol is NaN`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = inf\n":                             `rtol is +Inf`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = 1e308\n":                           `rtol is 1e+308, want 1 at most`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = 1\ntoken = 1.5\n":                  `token is 1.5, want 1 at most`,
		"[[tolerance]]\ntensors = \"[\"\nrtol = 1\n":                               `[[tolerance]] 1, "["`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = \"a\"\n":                           `line 3, "rtol = \"a\"": "tolerance.rtol" is a string, want a number`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = 1\npasses = \"b\"\n":               `passes: `,
		"[[allow]]\ntensors = \"x\"\n":                                             `[[allow]] 1, "x": no reason`,
		"[[allow]]\ntensors = \"x\"\nreason = \"  \"\n":                            `no reason`,
		"[[allow]]\ntensors = \"x\"\nreason = \"y\"\nclasses = [\"EVERYTHING\"]\n": `classes: "EVERYTHING" is not one of`,
		"[[allow]\n": `line 1, "[[allow]"`,
		strings.Repeat("[[allow]]\ntensors = \"x\"\nreason = \"y\"\n", 5000):               `5000 lines of one kind`,
		"[[tolerance]]\ntensors = \"x\"\nrtol = 1\nchannel = -0.5\n":                       `channel is -0.5`,
		"[[tolerance]]\ntensors = \"a\"\nrtol = 1\n[[tolerance]]\ntensors = \"b\"\n\n\n\n": `[[tolerance]] 2, "b"`,
	} {
		if _, err := gate.ParseLimits([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseLimits(f *testing.F) {
	f.Add([]byte(allowUp))
	f.Add([]byte("[[tolerance]]\ntensors = \"*.mlp.*\"\npasses = \"0,2-\"\nrtol = 1e-3\natol = 0\ntoken = 0.1\nchannel = 0.2\n"))
	f.Add([]byte("[[tolerance]\nrtol = 'x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := gate.ParseLimits(data)
		if err != nil {
			return
		}
		for _, r := range l.Rules {
			if r.Tensors == "" || r.Check() != nil {
				t.Errorf("a rule %+v", r)
			}
		}
		for _, a := range l.Allowed {
			if a.Tensors == "" || strings.TrimSpace(a.Reason) == "" || len(a.Classes) == 0 {
				t.Errorf("an allowed mismatch %+v", a)
			}
		}
	})
}

// floored compares one tensor of 4096 elements, all off by a part, with a floor.
func floored(t *testing.T, f *gate.NoiseFloor, off float64) compare.Row {
	t.Helper()
	rng := rand.New(rand.NewPCG(9, 9))
	var l, r []float64
	for range 4096 {
		v := rng.NormFloat64()
		r, l = append(r, v), append(l, v*(1+off))
	}
	shape := []int{1, 64, 64}
	res := run(t, build(t, manifest("local", hooks.F32), fire("layers.4.x", hooks.F32, shape, l...)),
		build(t, manifest("reference", hooks.F32), fire("layers.4.x", hooks.F32, shape, r...)), compare.Options{Order: names(t, "layers.4.x"), Judging: compare.Judging{Noise: f}})
	return res.Rows[0]
}

func TestLimitsByTheNoiseFloor(t *testing.T) {
	const factor, unit = 8, 1.0 / (1 << 24)
	floor := func(dtype string, own measure.Number, others ...measure.Number) *gate.NoiseFloor {
		f := &gate.NoiseFloor{DType: dtype, Entries: map[string]gate.Noise{"layers.4.x": {RelL2: own}}}
		for i, v := range others {
			f.Entries["layers."+string(rune('5'+i))+".x"] = gate.Noise{RelL2: v}
		}
		return f
	}
	for _, tt := range []struct {
		why   string
		floor *gate.NoiseFloor
		from  string
		limit float64
	}{
		{"its own", floor("float32", 1e-5), "8 x noise floor, float32", factor * 1e-5},
		{
			"that of its kind has the weight of 64 elements beside its 4096", floor("float32", 1e-5, 1e-4), "8 x noise floor, float32",
			factor * math.Sqrt((4096*1e-10+64*1e-8)/(4096+64)),
		},
		{"its own where its kind is more quiet", floor("float32", 1e-5, 1e-7), "8 x noise floor, float32", factor * 1e-5},
		{"half a unit where the walk happens to be exact", floor("float32", 0), "8 x noise floor, float32", factor * unit / 2},
		{"a floor of another dtype says nothing", floor("bfloat16", 1e-5), "table, float32", 1e-3},
		{"nor does one that does not have the entry", &gate.NoiseFloor{DType: "float32"}, "table, float32", 1e-3},
	} {
		row := floored(t, tt.floor, tt.limit*0.9)
		if got := float64(row.Gate.Checks[0].Limit); math.Abs(got/tt.limit-1) > 1e-12 || row.Gate.From != tt.from || row.Verdict != compare.Match {
			t.Errorf("%s: %s, limit %g from the %s, want %g from the %s", tt.why, row.Verdict, got, row.Gate.From, tt.limit, tt.from)
		}
		if row := floored(t, tt.floor, tt.limit*1.1); row.Verdict != compare.Mismatch {
			t.Errorf("%s: a tenth past the limit is a %s", tt.why, row.Verdict)
		}
	}
	if row := floored(t, floor("float32", 1e-5), 3e-5); math.Abs(float64(row.Gate.Noise)-3) > 0.1 || math.Abs(float64(row.Gate.Tolerance)-3e-5) > 1e-6 {
		t.Errorf("three times the floor: %g times would have passed, a limit of %g", row.Gate.Noise, row.Gate.Tolerance)
	}
}

// TestSlicesOfSmallNorm has channels with next to nothing in them, whose own relative error is of no meaning: noise of the
// tensor's size is a hundred times what they hold. They raise nothing, and an error in a channel of the usual size does.
func TestSlicesOfSmallNorm(t *testing.T) {
	const tokens, channels = 64, 64
	rng := rand.New(rand.NewPCG(7, 7))
	n := naive{shape: []int{1, tokens, channels}, dtype: hooks.BF16}
	for i := range tokens * channels {
		v := rng.NormFloat64()
		if i%channels < 20 { // a third of the channels, so that their size is not the median
			v *= 1e-4
		}
		n.r, n.l = append(n.r, v), append(n.l, v+0.01*rng.NormFloat64())
	}
	own := 0.0
	for c := range channels {
		var diff, ref float64
		for t := range tokens {
			i := t*channels + c
			diff, ref = diff+(n.l[i]-n.r[i])*(n.l[i]-n.r[i]), ref+n.r[i]*n.r[i]
		}
		own = max(own, math.Sqrt(diff/ref))
	}
	row := rowOf(t, n)
	if worst := float64(row.Metrics.Axes[1].RelL2); own < 50 || !(worst <= 0.02) || row.Verdict != compare.Match {
		t.Errorf("relative to its own norm the worst channel is %g off, relative to the median %g: %s", own, worst, row.Verdict)
	}
	for t := range tokens {
		n.l[t*channels+40] *= -1
	}
	if row := rowOf(t, n); row.Verdict != compare.Mismatch || row.Metrics.Axes[1].Worst != 40 {
		t.Errorf("a negated channel: %s, worst channel %d", row.Verdict, row.Metrics.Axes[1].Worst)
	}
}
