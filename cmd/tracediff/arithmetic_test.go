package main

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// compareOther runs compare and returns the exit status, the report, and the rows that do not match, derived ones left out.
func compareOther(t *testing.T, args ...string) (code int, report string, rows []string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(append([]string{"tracediff", "compare", "--table"}, args...), nil, &out, &errOut)
	if errOut.Len() > 0 {
		t.Error(errOut.String())
	}
	for _, row := range mismatchLine.FindAllStringSubmatch(out.String(), -1) {
		e := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(row[0]) + ` .*derived`)
		if !e.MatchString(out.String()) {
			rows = append(rows, capture.Key(atoi(row[1]), row[2], 0))
		}
	}
	return code, out.String(), rows
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // a table of one pass has no column for it
	return n
}

// Another arithmetic and another layout are no bugs, and the report names them, whether the trace is compared or isolated.
func TestAnotherArithmeticAndLayout(t *testing.T) {
	t.Parallel()
	const layout = "layout: keys of sliding layers"
	attention := []string{
		"arithmetic: scores: keeps product in float32, which transformers rounds; keeps its result wider than transformers (",
		"arithmetic: add: keeps its result wider than transformers (", "arithmetic: cast: keeps its result wider than transformers (",
	}
	altup := []string{
		"arithmetic: rms_norm: rounds product to bfloat16, transformers does not (",
		"arithmetic: linear: keeps its result wider than transformers (",
		"arithmetic: altup_predict: keeps mixed in float32, which transformers rounds (",
		"arithmetic: altup_correct: keeps coefficient, product in float32, which transformers rounds (",
	}
	tests := []struct {
		dir   string
		dtype hooks.DType
		named []string
	}{
		{"gemma3n-tiny", hooks.BF16, append(altup, attention...)},
		{"gemma3-tiny", hooks.BF16, append(attention, "arithmetic: rms_norm: rounds product to bfloat16, transformers does not (")},
		{"gemma3n-tiny", hooks.F32, nil},
		{"gemma3-tiny", hooks.F32, nil},
	}
	for _, tt := range tests {
		t.Run(tt.dir+" "+tt.dtype.String(), func(t *testing.T) {
			golden, passes, ck, list := goldenFile(t, tt.dir, "decode."+tt.dtype.String())
			local := (&otherEngine{list: list, dtype: tt.dtype}).run(t, ck, passes)
			for _, args := range [][]string{{local, golden}, {"--isolate", local}} {
				code, report, rows := compareOther(t, args...)
				if code != exitMatch || len(rows) > 0 || !strings.Contains(report, " 0 BUG") {
					t.Errorf("%v: exit %d, %v\n%s", args, code, rows, tail(report))
				}
				for _, want := range append(tt.named, layout) {
					if !strings.Contains(report, want) {
						t.Errorf("%v: the report does not say %q\n%s", args, want, tail(report))
					}
				}
				if n := strings.Count(report, "arithmetic: "); n != len(tt.named) {
					t.Errorf("%v: %d arithmetics are named, want %d\n%s", args, n, len(tt.named), tail(report))
				}
			}
			if tt.dtype == hooks.F32 {
				return
			}
			code, report, _ := compareOther(t, local, golden, "--strict-dtype")
			if code != exitMismatch || !strings.Contains(report, "MISMATCH DTYPE") {
				t.Errorf("with --strict-dtype: exit %d\n%s", code, tail(report))
			}
		})
	}
}

// What some engine might do excuses nothing in one that does not: a few elements of one norm that are one unit off are a bug
// in a port that otherwise rounds as transformers does, and in one whose other norms all round before the weight.
func TestOneUnitDoesNotHideInAnotherArithmetic(t *testing.T) {
	t.Parallel()
	_, passes, ck, list := goldenFile(t, "gemma3n-tiny", "decode.bfloat16")
	for _, model := range []bool{true, false} {
		for _, tt := range []struct {
			entry    string
			pass, of int
		}{{"layers.4.self_attn.q_norm", 0, 3}, {"norm", 3, 2}} {
			spoil := func(e *order.Entry, pass int, y []float32) {
				if e.Name != tt.entry || pass != tt.pass {
					return
				}
				for k := range tt.of {
					at := &y[(2*k+1)*len(y)/(2*tt.of)]
					*at = math.Float32frombits(math.Float32bits(*at) + 1<<16) // one unit of bfloat16
				}
			}
			local := (&otherEngine{list: list, dtype: hooks.BF16, model: model, spoil: spoil}).run(t, ck, passes)
			code, report, rows := compareOther(t, "--isolate", local)
			want := capture.Key(tt.pass, tt.entry, 0)
			if code != exitMismatch || !slices.Equal(rows, []string{want}) {
				t.Errorf("model's arithmetic %v: exit %d, flagged %v, want %s\n%s", model, code, rows, want, tail(report))
			}
		}
	}
}

// changing returns a spoil that computes all norms with a weight, or all activations, in another way.
func (p *otherEngine) changing(norm func(x, square float64, w float32) float64, activation func(x float64) float64) func(*order.Entry, int, []float32) {
	return func(e *order.Entry, _ int, y []float32) {
		if _, is := e.Op.(op.GELUTanh); is && activation != nil {
			for i, x := range p.in(e, 0) {
				y[i] = p.round(float32(activation(float64(x))))
			}
		}
		if o, is := e.Op.(op.RMSNorm); is && o.Gain == op.Plain && norm != nil {
			x := p.in(e, 0)
			w, err := p.weight(e, 0)
			if err != nil {
				panic(err)
			}
			for i, v := range x {
				row := x[i/len(w)*len(w):][:len(w)]
				y[i] = p.round(float32(norm(float64(v), float64(dot(row, row))/float64(len(w)), w[i%len(w)])))
			}
		}
	}
}

// An arithmetic without a name of its own is no bug as long as it is that of all operations of a form. A mistake that is small
// enough for the choice that it leaves is one.
func TestMistakeOrArithmetic(t *testing.T) {
	t.Parallel()
	bf16 := func(x float64) float64 { return floats.Round(hooks.BF16, x) }
	gelu := func(x, tanh float64) float64 { return 0.5 * x * (1 + tanh) }
	inner := func(x float64) float64 { return math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }
	_, passes, ck, list := goldenFile(t, "gemma3n-tiny", "decode.bfloat16")
	for _, tt := range []struct {
		what       string
		norm       func(x, square float64, w float32) float64
		activation func(x float64) float64
		mistake    bool
	}{
		{what: "the reciprocal root is rounded", norm: func(x, square float64, w float32) float64 { return x * bf16(1/math.Sqrt(square+1e-6)) * float64(w) }},
		{what: "tanh is rounded", activation: func(x float64) float64 { return gelu(x, bf16(math.Tanh(inner(x)))) }},
		{
			what: "epsilon is 1e-5", norm: func(x, square float64, w float32) float64 { return x / math.Sqrt(square+1e-5) * float64(w) },
			mistake: true,
		},
		{what: "GELU is that of erf", activation: func(x float64) float64 { return gelu(x, math.Erf(x/math.Sqrt2)) }, mistake: true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := &otherEngine{list: list, dtype: hooks.BF16, model: true}
			p.spoil = p.changing(tt.norm, tt.activation)
			code, report, rows := compareOther(t, "--isolate", p.run(t, ck, passes))
			if (code == exitMismatch) != tt.mistake || (len(rows) > 0) != tt.mistake {
				t.Errorf("exit %d, %v\n%s", code, rows, tail(report))
			}
			if strings.Contains(report, "arithmetic: ") == tt.mistake { // of a mistake no entry passes as one
				t.Errorf("the arithmetic is not named, or a mistake is\n%s", tail(report))
			}
		})
	}
}

// An order of keys that is not the same for all that share it is a mistake, and so is a wrong key in a ring buffer.
func TestLayoutHidesNoMistake(t *testing.T) {
	t.Parallel()
	golden, passes, ck, list := goldenFile(t, "gemma3-tiny", "decode.bfloat16")
	const layer = "layers.0.self_attn."
	tests := []struct {
		what  string
		port  otherEngine
		wrong []string // the only entries that are wrong, of each pass in which keys lie in slots
	}{
		{"keys and what follows are not in the values' order", otherEngine{straight: layer + "values"}, []string{layer + "keys", layer + "scores", layer + "scores_masked", layer + "probs_f32", layer + "probs", layer + "context"}},
		{"keys are not in the order of the rest", otherEngine{straight: layer + "keys"}, []string{layer + "values", layer + "scores", layer + "scores_masked", layer + "probs_f32", layer + "probs", layer + "context"}},
		{"probabilities are not", otherEngine{straight: layer + "probs"}, []string{layer + "probs", layer + "context"}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			p := tt.port
			p.list, p.dtype, p.model = list, hooks.BF16, true
			local := p.run(t, ck, passes)
			for _, args := range [][]string{{local, golden, "--all"}, {local, golden, "--all", "--no-isolate"}, {"--isolate", local}} {
				code, report, rows := compareOther(t, args...)
				if code != exitMismatch || len(rows) == 0 {
					t.Errorf("%v: exit %d, %v", args, code, rows)
				}
				for _, row := range rows {
					_, name, _ := strings.Cut(row, "/")
					if !slices.Contains(tt.wrong, name) {
						t.Errorf("%v: %s is flagged\n%s", args, row, tail(report))
					}
				}
			}
		})
	}
	t.Run("the oldest key is overwritten", func(t *testing.T) {
		spoil := func(e *order.Entry, pass int, y []float32) {
			if e.Name == layer+"keys" && pass == 2 {
				clear(y[:list.Config.HeadDim])
			}
		}
		local := (&otherEngine{list: list, dtype: hooks.BF16, model: true, spoil: spoil}).run(t, ck, passes)
		_, report, rows := compareOther(t, "--isolate", local)
		if want := []string{"pass2/" + layer + "keys"}; len(rows) == 0 || rows[0] != want[0] {
			t.Errorf("flagged %v, want %v\n%s", rows, want, tail(report))
		}
	})
}

// At level 2 keys are not captured: their order is found by the probabilities.
func TestLayoutWithoutKeys(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"gemma3n-tiny", "gemma3-tiny"} {
		golden, passes, ck, list := goldenFile(t, dir, "decode.bfloat16")
		local := (&otherEngine{list: list, dtype: hooks.BF16, model: true, level: 2}).run(t, ck, passes)
		for _, args := range [][]string{{local, golden, "--level", "2"}, {"--isolate", local, "--level", "2"}} {
			code, report, rows := compareOther(t, args...)
			if code != exitMatch || len(rows) > 0 || !strings.Contains(report, "layout: keys of sliding layers") {
				t.Errorf("%v: exit %d, %v\n%s", args, code, rows, tail(report))
			}
		}
	}
}
