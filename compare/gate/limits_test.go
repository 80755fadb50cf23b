package gate_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

func TestFirstRuleDecides(t *testing.T) {
	l, err := gate.ParseLimits([]byte(`
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
`))
	if err != nil {
		t.Fatal(err)
	}
	own, from := l.Tolerance("x", 0)
	if own == nil || from != `tolerances, "x"` {
		t.Fatalf("limits %+v from the %s", own, from)
	}
	m := metricsOf(t, testengine.Pair{Shape: []int{1, 2, 4}, DType: hooks.F32, Local: times(some, 1.05), Reference: some})
	if g := own.Gate(m, from); !g.Passed() || g.From != from {
		t.Errorf("it passes: %t, limits from the %s", g.Passed(), g.From)
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
	f.Add([]byte("[[allow]]\ntensors = \"layers.3.mlp.up_proj\"\nreason = \"known: the weight is quantized\"\n"))
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

// floored decides on one tensor of 4096 elements, all off by a part, by a floor, or by the table where the floor says nothing.
func floored(t *testing.T, f *gate.NoiseFloor, off float64) *gate.Gate {
	t.Helper()
	rng := rand.New(rand.NewPCG(9, 9))
	p := testengine.Pair{Shape: []int{1, 64, 64}, DType: hooks.F32}
	for range 4096 {
		v := rng.NormFloat64()
		p.Reference, p.Local = append(p.Reference, v), append(p.Local, v*(1+off))
	}
	m := metricsOf(t, p)
	if g := gate.NewFloors(f).Gate(m, "layers.4.x", "layers.4.x", p.DType, false); g != nil {
		return g
	}
	return gate.ByTable(m, p.DType, false)
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
		g := floored(t, tt.floor, tt.limit*0.9)
		if got := float64(g.Checks[0].Limit); math.Abs(got/tt.limit-1) > 1e-12 || g.From != tt.from || !g.Passed() {
			t.Errorf("%s: it passes: %t, limit %g from the %s, want %g from the %s", tt.why, g.Passed(), got, g.From, tt.limit, tt.from)
		}
		if floored(t, tt.floor, tt.limit*1.1).Passed() {
			t.Errorf("%s: a tenth past the limit passes", tt.why)
		}
	}
	if g := floored(t, floor("float32", 1e-5), 3e-5); math.Abs(float64(g.Noise)-3) > 0.1 || math.Abs(float64(g.Tolerance)-3e-5) > 1e-6 {
		t.Errorf("three times the floor: %g times would have passed, a limit of %g", g.Noise, g.Tolerance)
	}
}
