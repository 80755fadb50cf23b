package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
)

var (
	inf     = math.Inf(1)
	notANum = math.NaN()
)

// some is a run of values that all differ, so that no case is vacuous by accident.
var some = []float64{1, -2, 3, -4, 5, -6, 7, -8}

func with(values []float64, at int, v float64) []float64 {
	out := append([]float64(nil), values...)
	out[at] = v
	return out
}

func times(values []float64, by float64) []float64 {
	out := append([]float64(nil), values...)
	for i := range out {
		out[i] *= by
	}
	return out
}

func TestVerdictOfOnePair(t *testing.T) {
	shape := []int{1, 2, 4}
	pair := func(d hooks.DType, l, r []float64) [2]hooks.Event {
		return [2]hooks.Event{fire("x", d, shape, l...), fire("x", d, shape, r...)}
	}
	shaped := func(l, r []int) [2]hooks.Event {
		return [2]hooks.Event{fire("x", hooks.F32, l, 1, 2, 3), fire("x", hooks.F32, r, 1, 2, 3)}
	}
	tests := []struct {
		why   string
		pair  [2]hooks.Event // local, reference
		class gate.Class     // empty: a match
		note  compare.NoteKind
		exit  int
	}{
		{"equal tensors match", pair(hooks.F32, some, some), "", "", 0},
		{"a rounding error matches", pair(hooks.F32, times(some, 1+1e-6), some), "", "", 0},
		{"a doubled tensor has cosine 1 and is wrong", pair(hooks.F32, times(some, 2), some), gate.Value, "", 1},
		{"so has a negated one", pair(hooks.F32, times(some, -1), some), gate.Value, "", 1},
		{"one wrong element of eight", pair(hooks.F32, with(some, 3, 4), some), gate.Value, "", 1},
		{"NaN on your port is no success", pair(hooks.F32, with(some, 2, notANum), some), gate.NonFinite, "", 1},
		{"nor is it on the reference side", pair(hooks.F32, some, with(some, 2, notANum)), gate.NonFinite, "", 1},
		{"infinity where the reference is finite", pair(hooks.F32, with(some, 2, inf), some), gate.NonFinite, "", 1},
		{"infinities of different sign", pair(hooks.F32, with(some, 2, inf), with(some, 2, -inf)), gate.NonFinite, "", 1},
		{"NaN is not infinity", pair(hooks.F32, with(some, 2, notANum), with(some, 2, inf)), gate.NonFinite, "", 1},
		{"overflow on both sides: equal, and nothing is tested", pair(hooks.F32, with(some, 2, inf), with(some, 2, inf)), "", compare.BothNaN, 1},
		{"−Inf on both sides is masked", pair(hooks.F32, with(some, 2, -inf), with(some, 2, -inf)), "", "", 0},
		{"NaN on both sides: equal, and nothing is tested", pair(hooks.F32, with(some, 2, notANum), with(some, 2, notANum)), "", compare.BothNaN, 1},
		{"nothing but NaN on both sides", pair(hooks.F32, []float64{notANum}, []float64{notANum}), "", compare.BothNaN, 1},
		{"−0 equals 0", pair(hooks.F32, with(some, 2, math.Copysign(0, -1)), with(some, 2, 0)), "", "", 0},
		{"a zero tensor against zero tests nothing", pair(hooks.F32, []float64{0}, []float64{0}), "", compare.Vacuous, 1},
		{"anything against zero is infinitely wrong", pair(hooks.F32, []float64{1e-30}, []float64{0}), gate.Value, "", 1},
		{"zero against something", pair(hooks.F32, []float64{0}, some), gate.Value, "", 1},
		{"a constant against the same constant tests nothing", pair(hooks.F32, []float64{3}, []float64{3}), "", compare.Vacuous, 1},
		{"constants under correlation are undefined, here they differ", pair(hooks.F32, []float64{3}, []float64{4}), gate.Value, "", 1},
		{"a value that overflows when squared fails closed", pair(hooks.F64, times(some, 1e300), some), gate.Value, "", 1},
		{"a shape with as many elements", shaped([]int{2, 3}, []int{3, 2}), gate.Shape, "", 1},
		{"a leading axis of one", shaped([]int{1, 3}, []int{3}), gate.Shape, "", 1},
		{"a padded vocabulary", shaped([]int{1, 4}, []int{1, 3}), gate.Shape, "", 1},
		{"an empty tensor tests nothing", shaped([]int{0, 3}, []int{0, 3}), "", compare.Vacuous, 1},
		{"empty in another way is another shape", shaped([]int{0, 3}, []int{0, 4}), gate.Shape, "", 1},
		{"a scalar is a test", shaped(nil, nil), "", "", 0},
		{"bfloat16 one unit apart", pair(hooks.BF16, times(some, 1+1.0/128), some), "", "", 0},
		{"bfloat16 doubled", pair(hooks.BF16, times(some, 2), some), gate.Value, "", 1},
		{"integers have no tolerance", pair(hooks.I64, with(some, 0, 2), some), gate.Value, "", 1},
		{"not even beyond 2^53", pair(hooks.I64, with(some, 0, 1<<60), with(some, 0, 1<<60)), "", "", 0},
		{"booleans neither", pair(hooks.Bool, []float64{1, 0, 1, 1}, []float64{1, 0, 1, 0}), gate.Value, "", 1},
	}
	for _, tt := range tests {
		res := run(t, build(t, manifest("local", tt.pair[0].Tensor.DType), tt.pair[0]),
			build(t, manifest("reference", tt.pair[1].Tensor.DType), tt.pair[1]), compare.Options{Order: names(t, "x")})
		if len(res.Rows) != 1 {
			t.Fatalf("%s: %d rows", tt.why, len(res.Rows))
		}
		row := res.Rows[0]
		want := compare.Match
		if tt.class != "" {
			want = compare.Mismatch
		}
		if row.Verdict != want || row.Class != tt.class {
			t.Errorf("%s: got %s %s (%s), want %s %s", tt.why, row.Verdict, row.Class, row.Detail, want, tt.class)
		}
		if (res.Divergence != nil) != (tt.class != "") {
			t.Errorf("%s: divergence %v", tt.why, res.Divergence)
		}
		if tt.note != "" && !hasNote(row, tt.note) || tt.note == "" && len(row.Notes) > 0 {
			t.Errorf("%s: notes %v, want %q", tt.why, row.Notes, tt.note)
		}
		if got := res.ExitCode(); got != tt.exit {
			t.Errorf("%s: exit code %d, want %d", tt.why, got, tt.exit)
		}
	}
}

func hasNote(r compare.Row, kind compare.NoteKind) bool {
	for _, n := range r.Notes {
		if n.Kind == kind {
			return true
		}
	}
	return false
}

// TestIntegersBeyondFloat64 has two int64s that are the same float64 and two that are the same bits.
func TestIntegersBeyondFloat64(t *testing.T) {
	one := func(d hooks.DType, words ...byte) hooks.Event {
		return hooks.Event{Name: "x", Tensor: hooks.Tensor{DType: d, Shape: []int{len(words) / 8}, Data: words}}
	}
	odd := []byte{1, 0, 0, 0, 0, 0, 0x20, 0} // 2^53 + 1
	even := []byte{0, 0, 0, 0, 0, 0, 0x20, 0}
	ones := []byte{255, 255, 255, 255, 255, 255, 255, 255}
	tests := []struct {
		why  string
		l, r hooks.Event
		want compare.Verdict
	}{
		{"2^53 and 2^53+1 are one float64", one(hooks.I64, odd...), one(hooks.I64, even...), compare.Mismatch},
		{"as unsigned, too", one(hooks.U64, odd...), one(hooks.I64, even...), compare.Mismatch},
		{"the same number, signed and unsigned", one(hooks.U64, odd...), one(hooks.I64, odd...), compare.Match},
		{"−1 and 2^64−1 are the same bits", one(hooks.I64, ones...), one(hooks.U64, ones...), compare.Mismatch},
		{"int32 holds the same number", fire("x", hooks.I32, []int{1}, 7), fire("x", hooks.I64, []int{1}, 7), compare.Match},
		{"or another", fire("x", hooks.I32, []int{1}, 8), fire("x", hooks.I64, []int{1}, 7), compare.Mismatch},
		{"a float against an integer is exact", fire("x", hooks.F32, []int{1}, 7.001), fire("x", hooks.I64, []int{1}, 7), compare.Mismatch},
	}
	for _, tt := range tests {
		res := run(t, build(t, manifest("local", 0), tt.l), build(t, manifest("reference", 0), tt.r), compare.Options{Order: names(t, "x")})
		if got := res.Rows[0].Verdict; got != tt.want {
			t.Errorf("%s: %s", tt.why, got)
		}
	}
}

func TestDTypeMismatch(t *testing.T) {
	list := tiny(t)
	const name = "layers.0.mlp.up_proj" // in the model's dtype
	const f32 = "layers.0.self_attn.probs_f32"
	tests := []struct {
		why    string
		name   string
		models [2]hooks.DType // local, reference
		dtypes [2]hooks.DType
		strict bool
		want   gate.Class
	}{
		{"a float32 port of a bfloat16 reference", name, [2]hooks.DType{hooks.F32, hooks.BF16}, [2]hooks.DType{hooks.F32, hooks.BF16}, false, ""},
		{"the same when asked to be strict", name, [2]hooks.DType{hooks.F32, hooks.BF16}, [2]hooks.DType{hooks.F32, hooks.BF16}, true, gate.DType},
		{"your port's trace alone leaves its model's dtype", name, [2]hooks.DType{hooks.BF16, hooks.BF16}, [2]hooks.DType{hooks.F32, hooks.BF16}, false, gate.DType},
		{"the reference alone does", name, [2]hooks.DType{hooks.BF16, hooks.BF16}, [2]hooks.DType{hooks.BF16, hooks.F32}, false, gate.DType},
		{"both do", name, [2]hooks.DType{hooks.BF16, hooks.BF16}, [2]hooks.DType{hooks.F32, hooks.F32}, false, gate.DType},
		{"both have fewer digits than their model", name, [2]hooks.DType{hooks.F32, hooks.F32}, [2]hooks.DType{hooks.BF16, hooks.BF16}, false, gate.DType},
		{"the order has it in float32", f32, [2]hooks.DType{hooks.BF16, hooks.BF16}, [2]hooks.DType{hooks.F32, hooks.F32}, false, ""},
		{"your port has rounded it", f32, [2]hooks.DType{hooks.BF16, hooks.BF16}, [2]hooks.DType{hooks.BF16, hooks.F32}, false, gate.DType},
		{"nobody says what the model's dtype is", name, [2]hooks.DType{}, [2]hooks.DType{hooks.F32, hooks.BF16}, false, ""},
	}
	for _, tt := range tests {
		shape := []int{1, 1, 8}
		values := append([]float64{1.001}, some...) // no number of bfloat16
		// And one that is of any dtype, so that a trace is not one that only says it is of bfloat16.
		other := fire("layers.0.input_layernorm", hooks.F32, shape, some...)
		l := build(t, manifest("local", tt.models[0]), other, fire(tt.name, tt.dtypes[0], shape, values...))
		r := build(t, manifest("reference", tt.models[1]), other, fire(tt.name, tt.dtypes[1], shape, values...))
		res := run(t, l, r, compare.Options{Order: list, Judging: compare.Judging{StrictDType: tt.strict}})
		if row := rowOfKey(t, res, tt.name); row.Class != tt.want {
			t.Errorf("%s: got %+v, want class %q", tt.why, row, tt.want)
		}
	}
	// Numbers of bfloat16 that are stored as float32 are what a bfloat16 engine has computed.
	stored := fire(name, hooks.F32, []int{1, 1, 8}, some...)
	res := run(t, build(t, manifest("local", hooks.BF16), stored), build(t, manifest("reference", hooks.BF16), fire(name, hooks.BF16, []int{1, 1, 8}, some...)), compare.Options{Order: list})
	if len(res.Rows) != 1 || res.Rows[0].Verdict != compare.Match {
		t.Errorf("bfloat16 in float32: got %+v", res.Rows)
	}
}

func TestTieAndGreedyFlip(t *testing.T) {
	logits := func(values ...float64) hooks.Event {
		return fire("logits", hooks.F32, []int{1, 1, len(values)}, values...)
	}
	tests := []struct {
		why  string
		l, r hooks.Event
		want compare.NoteKind
	}{
		{"two logits 1e-5 apart change places", logits(9.99999, 10, 1, -5), logits(10, 9.99999, 1, -5), compare.Tie},
		{"two that are far apart", logits(1, 10, 2, -5), logits(10, 1, 2, -5), compare.Greedy},
		{"no flip", logits(10, 9.9, 1, -5), logits(10, 9.9, 1, -5), ""},
	}
	for _, tt := range tests {
		res := run(t, build(t, manifest("local", 0), tt.l), build(t, manifest("reference", 0), tt.r), compare.Options{Order: names(t, "logits")})
		row := res.Rows[0]
		if got := hasNote(row, compare.Tie); got != (tt.want == compare.Tie) {
			t.Errorf("%s: %+v", tt.why, row.Notes)
		}
		if got := hasNote(row, compare.Greedy); got != (tt.want == compare.Greedy) {
			t.Errorf("%s: %+v", tt.why, row.Notes)
		}
		if tt.want != "" && !strings.Contains(row.Notes[0].Text, "1 of 1 rows") {
			t.Errorf("%s: %q", tt.why, row.Notes[0].Text)
		}
	}
}
