package diagnose

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// softmaxRows are softmaxes of rows of n numbers, whose sums have some more beside them.
func softmaxRows(x []float64, n int, more float64) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += n {
		sum := more
		for _, v := range x[at:][:n] {
			sum += math.Exp(v)
		}
		for i, v := range x[at:][:n] {
			y[at+i] = math.Exp(v) / sum
		}
	}
	return y
}

// scaledBy are numbers times one number.
func scaledBy(x []float64, by float64) []float64 {
	y := slices.Clone(x)
	for i := range y {
		y[i] *= by
	}
	return y
}

// withoutMaximum are softmaxes of rows of n numbers that take the largest number of each part of a size off, or the largest until then, and that share one sum.
func withoutMaximum(x []float64, n, size int, running bool) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += n {
		sum, top := 0.0, math.Inf(-1)
		for from := 0; from < n; from += size {
			part := x[at+from:][:size]
			if !running {
				top = math.Inf(-1)
			}
			top = max(top, slices.Max(part))
			for i, v := range part {
				y[at+from+i] = math.Exp(v - top)
				sum += math.Exp(v - top)
			}
		}
		for i := range n {
			y[at+i] /= sum
		}
	}
	return y
}

// A variant of a softmax has the numbers of plain loops.
func TestSoftmaxesAreApplied(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	probs := operationOf(t, m, "layers.1.self_attn.probs_f32", 1) // two heads of four keys
	x := read(t, m, "layers.1.self_attn.scores_masked", 1)
	overHeads := make([]float64, len(x))
	for k := range 4 {
		sum := math.Exp(x[k]) + math.Exp(x[4+k])
		overHeads[k], overHeads[4+k] = math.Exp(x[k])/sum, math.Exp(x[4+k])/sum
	}
	sigmoids := make([]float64, len(x))
	for i, v := range x {
		sigmoids[i] = 1 / (1 + math.Exp(-v))
	}
	axis := edit.Edit{At: []edit.Place{{}}, Map: edit.Map{Axis: 2}}.Text()
	for _, c := range []struct {
		m    Mistake
		want []float64
	}{
		{Mistake{Kind: "softmax.axis", Axis: "heads", Edit: axis}, overHeads},
		{Mistake{Kind: "softmax.base", X: some(2)}, softmaxRows(scaledBy(x, math.Ln2), 4, 0)},
		{Mistake{Kind: "softmax.slots-unwritten", X: some(3)}, softmaxRows(x, 4, 3)},
		{Mistake{Kind: "softmax.parts-averaged", N: 2}, scaledBy(softmaxRows(x, 2, 0), 0.5)},
		{Mistake{Kind: "softmax.parts-added", M: 2}, softmaxRows(x, 2, 0)},
		{Mistake{Kind: "softmax.parts-own-maximum", M: 2}, withoutMaximum(x, 4, 2, false)},
		{Mistake{Kind: "softmax.parts-own-maximum", K: 3}, withoutMaximum(x, 4, 2, false)},
		{Mistake{Kind: "softmax.parts-not-rescaled", N: 4}, withoutMaximum(x, 4, 1, true)},
		{Mistake{Kind: "router.sigmoid"}, sigmoids},
	} {
		makes(t, m, probs, c.m, c.want)
	}

	soft := func(b *program.Builder, x program.Var) program.Var {
		return b.Apply(softmax{}, "softmax", x.Shape, []program.Var{x}, nil)
	}
	scores := []order.Node{node(m, "layers.1.self_attn.scores_masked", 1), node(m, "layers.2.self_attn.scores_masked", 1)}
	chosen := func(b *program.Builder) program.Var { return b.Constant("", []float64{0, 2, 0, 2}, []int{1, 2, 1, 2}) }
	of := []float64{x[0], x[2], x[4], x[6]}
	overAll := softmaxRows(x, 4, 0)
	at := node(m, "layers.1.self_attn.probs", 1)
	first := entryOf(t, m, at, scores[:1], func(b *program.Builder, in, _ []program.Var) program.Var {
		return soft(b, b.Gather(3, in[0], chosen(b)))
	})
	makes(t, m, first, Mistake{Kind: "router.softmax-over-all"}, []float64{overAll[0], overAll[2], overAll[4], overAll[6]})
	last := entryOf(t, m, at, scores[:1], func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Gather(3, soft(b, in[0]), chosen(b))
	})
	makes(t, m, last, Mistake{Kind: "router.softmax-over-chosen"}, softmaxRows(of, 2, 0))

	scores[1].Entry = m.List.Index("layers.1.self_attn.scores")
	joined := entryOf(t, m, at, scores, func(b *program.Builder, in, _ []program.Var) program.Var { return soft(b, b.Cat(3, in[0], in[1])) })
	alone := softmaxRows(x, 4, 0)
	zeros := make([]float64, 4)
	want := slices.Concat(alone[:4], zeros, alone[4:], zeros)
	makes(t, m, joined, Mistake{Kind: "softmax.joined-left-out", Of: tensorTerm("layers.0.self_attn.scores")}, want)
}

// lessMean are numbers less the mean of all.
func lessMean(x []float64) []float64 {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	y := slices.Clone(x)
	for i := range y {
		y[i] -= mean
	}
	return y
}

// A variant of a norm or of a gate, and rows of other ids, have the numbers of plain loops.
func TestNormsAndIDsAreApplied(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	norm := operationOf(t, m, "layers.1.input_layernorm", 1)
	x, w, eps := read(t, m, "layers.1.in", 1), weightsOf(t, m, "layers.1.input_layernorm.weight"), m.List.Config.RMSNormEps
	makes(t, m, norm, Mistake{Kind: "norm.layernorm"}, rmsNorm(lessMean(x), w, eps))
	makes(t, m, norm, Mistake{Kind: "norm.of-parts", N: 8, M: 16}, append(rmsNorm(x[:8], w[:8], eps), rmsNorm(x[8:], w[8:], eps)...))

	in := []order.Node{node(m, "layers.1.in", 1), node(m, "layers.1.attn_residual", 1)}
	centred := entryOf(t, m, node(m, "layers.1.mlp.gated", 1), in[:1], func(b *program.Builder, in, _ []program.Var) program.Var {
		d := b.Sub("", in[0], b.Mean("", in[0]))
		return b.Mul("", d, b.Rsqrt("", b.Mean("", b.Mul("", d, d))))
	})
	makes(t, m, centred, Mistake{Kind: "norm.rmsnorm"}, rmsNorm(x, slices.Repeat([]float64{1}, len(x)), 0))
	gate := entryOf(t, m, node(m, "layers.1.mlp.gated", 1), in, func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Max(b.Literal(0), b.Sub("", in[0], in[1]))
	})
	makes(t, m, gate, Mistake{Kind: "sparsity.not-shifted"}, both(x, read(t, m, "layers.1.attn_residual", 1), func(a, b float64) float64 {
		if a > b {
			return a
		}
		return 0
	}))

	reads := func(m *Model, ids ...float64) {
		reading := m.Read
		m.Read = func(n order.Node) (program.Value, error) {
			if m.List.Entries[n.Entry].Name == order.InputIDs {
				return program.Value{Shape: []int{1, 3}, Data: slices.Clone(ids)}, nil
			}
			return reading(n)
		}
	}
	rowsOf := func(w []float64, width int, rows ...int) (all []float64) {
		for _, r := range rows {
			all = append(all, w[r*width:][:width]...)
		}
		return all
	}
	reads(m, 3, 100, 7)
	table := weightsOf(t, m, "embed_tokens.weight")
	lookup := operationOf(t, m, "embed_tokens.lookup", 0)
	makes(t, m, lookup, Mistake{Kind: "ids.row-after"}, rowsOf(table, 16, 4, 101, 8))
	makes(t, m, lookup, Mistake{Kind: "ids.row-before"}, rowsOf(table, 16, 2, 99, 6))
	makes(t, m, lookup, Mistake{Kind: "ids.row-zero"}, rowsOf(table, 16, 0, 0, 0))
	m = tiny(t, "gemma3n-tiny")
	width := 7 * 8 // of a row: seven layers
	table = weightsOf(t, m, "embed_tokens_per_layer.weight")
	beyond := len(table) / width
	reads(m, 3, float64(beyond), 7) // the right lookup takes row 0
	makes(t, m, operationOf(t, m, "embed_tokens_per_layer.lookup", 0), Mistake{Kind: "ids.last-row"}, rowsOf(table, width, 3, beyond-1, 7))
}
