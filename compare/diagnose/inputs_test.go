package diagnose

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// both are the results of a function of two numbers.
func both(x, y []float64, of func(a, b float64) float64) []float64 {
	z := make([]float64, len(x))
	for i := range z {
		z[i] = of(x[i], y[i])
	}
	return z
}

func times(a, b float64) float64 { return a * b }
func plus(a, b float64) float64  { return a + b }

// silu is x·sigmoid(x) of each number.
func silu(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / (1 + math.Exp(-v))
	}
	return y
}

// productOf is the product of a matrix and one row.
func productOf(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for k, v := range x {
			y[i] += w[i*len(x)+k] * v
		}
	}
	return y
}

// An entry that reads another tensor, stream or weight has the numbers of that, in the layer and the pass of the entry.
func TestOtherInputsAreApplied(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	gated := operationOf(t, m, "layers.1.mlp.gated", 2)
	act := read(t, m, "layers.1.mlp.act_fn", 2)
	up := placeIn(m, gated, 1)
	before := tensorTerm("layers.1.mlp.up_proj")
	before.Before = true
	for _, c := range []struct {
		m    Mistake
		want []float64
	}{
		{Mistake{Kind: "input.other", Source: "layers.0.mlp.gate_proj"}, read(t, m, "layers.1.mlp.gate_proj", 2)},
		{Mistake{Kind: "input.pass-before", Source: "layers.0.mlp.up_proj", By: before}, read(t, m, "layers.1.mlp.up_proj", 1)},
		{Mistake{Kind: "input.layer-before", Source: "layers.2.mlp.up_proj"}, read(t, m, "layers.0.mlp.up_proj", 2)},
		{Mistake{Kind: "input.chained", Source: "layers.2.mlp.gated"}, read(t, m, "layers.0.mlp.gated", 2)},
		{Mistake{Kind: "instance.of-another-layer", Of: tensorTerm("layers.1.mlp.up_proj"), By: listTerm(Others, []string{"layers.0.mlp.gated=layers.0.mlp.gated", "layers.1.mlp.gated=layers.2.mlp.up_proj"})}, read(t, m, "layers.2.mlp.up_proj", 2)},
	} {
		c.m.Edit = up
		makes(t, m, gated, c.m, both(act, c.want, times))
	}

	added := both(both(act, read(t, m, "layers.1.mlp.up_proj", 2), times), read(t, m, "layers.0.mlp.gated", 2), plus)
	makes(t, m, gated, Mistake{Kind: "result.accumulated"}, added)
	if d, err := m.Apply(Mistake{Kind: "result.accumulated"}, operationOf(t, m, "layers.0.mlp.gated", 2)); d != nil || err != nil {
		t.Errorf("the first layer has no layer before, and is edited: %v", err)
	}

	cache := withinProgram(t, m, 3)
	old, fresh := read(t, m, "layers.0.self_attn.k_rope", 0), read(t, m, "layers.0.self_attn.k_rope", 1)
	other, otherFresh := read(t, m, "layers.2.self_attn.k_rope", 0), read(t, m, "layers.2.self_attn.k_rope", 1)
	norm, normFresh := read(t, m, "layers.0.self_attn.k_norm", 0), read(t, m, "layers.0.self_attn.k_norm", 1)
	place := func(at string, more ...edit.Place) string {
		d, err := edit.ParseEdit(at)
		if err != nil {
			t.Fatal(err)
		}
		return placed(append(d.At, more...)...)
	}
	of, kept := tensorTerm("layers.0.self_attn.k_rope"), Term{Kind: TheKept, Name: "layers.*.self_attn.k_rope"}
	pairs := listTerm(Others, []string{"layers.0.self_attn.scores=layers.2.self_attn.k_rope"})
	for _, c := range []struct {
		m    Mistake
		want []float64
	}{
		{Mistake{Kind: "input.other", Source: "layers.1.self_attn.k_norm", Edit: placeIn(m, cache, 1)}, append(slices.Clone(old), normFresh...)},
		{Mistake{Kind: "input.other", Source: "layers.1.self_attn.k_norm", Edit: place(placeIn(m, cache, 1), edit.Place{Arg: keptToo})}, append(slices.Clone(norm), normFresh...)},
		{Mistake{Kind: "input.other-kept", Source: "layers.1.self_attn.k_norm", Edit: placeIn(m, cache, 0)}, append(slices.Clone(norm), fresh...)},
		{Mistake{Kind: "instance.another", Of: of, By: pairs, Edit: placeIn(m, cache, 1)}, append(slices.Clone(other), otherFresh...)},
		{Mistake{Kind: "instance.another", Of: kept, By: pairs, Edit: placeIn(m, cache, 0)}, append(slices.Clone(other), fresh...)},
	} {
		makes(t, m, cache, c.m, twice(c.want))
	}

	norms := operationOf(t, m, "layers.1.input_layernorm", 1)
	weight := Mistake{Kind: "instance.of-another-layer", Of: weightTerm("layers.1.input_layernorm.weight"), By: listTerm(Others, []string{"layers.1.input_layernorm=layers.2.input_layernorm.weight"})}
	makes(t, m, norms, weight, rmsNorm(read(t, m, "layers.1.in", 1), weightsOf(t, m, "layers.2.input_layernorm.weight"), m.List.Config.RMSNormEps))
	if d, err := m.Apply(weight, operationOf(t, m, "layers.0.input_layernorm", 1)); d != nil || err != nil {
		t.Errorf("an entry that the list does not have is edited: %v", err)
	}

	difference := entryOf(t, m, node(m, "layers.1.mlp.gated", 1), []order.Node{node(m, "layers.1.mlp.act_fn", 1), node(m, "layers.1.mlp.up_proj", 1)}, func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Sub("", b.Mul("", in[0], in[1]), in[0])
	})
	x, y := read(t, m, "layers.1.mlp.act_fn", 1), read(t, m, "layers.1.mlp.up_proj", 1)
	makes(t, m, difference, Mistake{Kind: "inputs.exchanged", Edit: placeIn(m, difference, 0, 1)}, both(x, y, func(a, b float64) float64 { return b*a - b }))
	parts := difference.signed(m)
	reader := parts.PlaceOf(edit.StepsOf(difference.Program, program.Mul)[0])
	reader.Arg = 0
	gate := read(t, m, "layers.1.mlp.gate_proj", 1)
	makes(t, m, difference, Mistake{Kind: "input.apart", Source: "layers.0.mlp.gate_proj", Edit: placed(reader)}, both(both(gate, y, times), x, func(a, b float64) float64 { return a - b }))
}

// An entry that reads another stream of a stack has the numbers of that stream.
func TestOtherStreamsAreApplied(t *testing.T) {
	m := tiny(t, "gemma3n-tiny")
	stream := func(name string, k int) []float64 {
		all := read(t, m, name, 1)
		return all[k*len(all)/4:][:len(all)/4]
	}
	prediction := operationOf(t, m, "layers.1.active_prediction", 1)
	at := placeIn(m, prediction, 0)
	makes(t, m, prediction, Mistake{Kind: "input.stream", Source: "layers.0.altup.predict", N: 2, Edit: at}, stream("layers.1.altup.predict", 2))
	by := source{name: "layers.1.in", item: new(int)}.term()
	by.Item.Value = 3
	makes(t, m, prediction, Mistake{Kind: "input.other", Source: "layers.0.in", By: by, Edit: at}, stream("layers.1.in", 3))
	projection := operationOf(t, m, "altup_projections.1", 1)
	for _, by := range []int{-1, 0, 1} {
		own := Mistake{Kind: "input.own-stream", Source: "altup.init", N: by, Edit: placeIn(m, projection, 0)}
		makes(t, m, projection, own, productOf(weightsOf(t, m, projection.Weights[0].Name), stream("altup.init", 1+by)))
	}
}

// An operation where it does not belong has the numbers of plain loops.
func TestOperationsAreApplied(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	gated := operationOf(t, m, "layers.1.mlp.gated", 1)
	act, up := read(t, m, "layers.1.mlp.act_fn", 1), read(t, m, "layers.1.mlp.up_proj", 1)
	makes(t, m, gated, Mistake{Kind: "operation.taken-first", Source: "layers.0.mlp.act_fn", Edit: placeIn(m, gated, 1)}, both(act, silu(up), times))
	makes(t, m, gated, Mistake{Kind: "operation.taken-of-result", Source: "layers.0.mlp.act_fn", Edit: placed(edit.Place{Arg: result})}, silu(both(act, up, times)))
	function := operationOf(t, m, "layers.1.mlp.act_fn", 1)
	for _, at := range []int{result, unrounded} {
		makes(t, m, function, Mistake{Kind: "operation.twice", Source: "layers.0.mlp.act_fn", Edit: placed(edit.Place{Arg: at})}, silu(silu(read(t, m, "layers.1.mlp.gate_proj", 1))))
	}
	residual := operationOf(t, m, "layers.1.attn_residual", 1)
	ones := slices.Repeat([]float64{1}, m.List.Config.HiddenSize)
	overwritten := rmsNorm(read(t, m, "layers.1.in", 1), ones, m.List.Config.RMSNormEps) // its weight is not multiplied yet
	makes(t, m, residual, Mistake{Kind: "operand.overwritten", Source: "layers.0.input_layernorm", Edit: placeIn(m, residual, 0)}, both(overwritten, read(t, m, "layers.1.self_attn.o_proj", 1), plus))

	rope := operationOf(t, m, "layers.1.self_attn.q_rope", 1)
	x, cos, sin := read(t, m, "layers.1.self_attn.q_norm", 1), read(t, m, "rotary.cos", 1), read(t, m, "rotary.sin", 1)
	for _, c := range []struct {
		by       int
		channels []int // of the cosines and sines
	}{{2, []int{0, 2, 4, 6, 8, 10}}, {0, []int{0, 1, 2, 6, 7, 8}}} {
		want := slices.Clone(x)
		for head := 0; head < len(x); head += ofWidth {
			for i, k := range c.channels {
				turned := -x[head+(i+3)%6]
				if i >= 3 {
					turned = -turned
				}
				want[head+i] = x[head+i]*cos[k] + turned*sin[k]
			}
		}
		at := edit.Edit{At: []edit.Place{{Arg: result}}, Map: edit.Map{By: c.by}}
		makes(t, m, rope, Mistake{Kind: "channels.first-alone", N: 6, M: ofWidth, Edit: at.Text()}, want)
	}

	m = tiny(t, "gemma3n-tiny")
	dense := slices.IndexFunc(m.List.Entries, func(e order.Entry) bool {
		return order.NameOf(e.Name).Module() == "mlp.act_fn" && m.List.Index(order.NameOf("layers.0.mlp.gate_sparse").Beside(order.NameOf(e.Name)).String()) < 0
	})
	want := read(t, m, "layers.0.mlp.gate_proj", 1)
	for i, v := range want {
		want[i] = v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
	}
	sparse := operationOf(t, m, "layers.0.mlp.act_fn", 1)
	makes(t, m, sparse, Mistake{Kind: "layer.other-kind", By: Term{Kind: ALayer, Name: order.NameOf(m.List.Entries[dense].Name).Path()}}, want)
}
