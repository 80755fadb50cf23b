package diagnose

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// ofWidth is how many numbers each slot of the caches of these tests has.
const ofWidth = 12

// slotsOf are the numbers of some slots, −1 for zeros.
func slotsOf(all []float64, slots ...int) (x []float64) {
	for _, k := range slots {
		if k < 0 {
			x = append(x, make([]float64, ofWidth)...)
		} else {
			x = append(x, all[k*ofWidth:][:ofWidth]...)
		}
	}
	return x
}

// twice are numbers times 2.
func twice(x []float64) []float64 {
	y := slices.Clone(x)
	for i := range y {
		y[i] *= 2
	}
	return y
}

// withinProgram is an entry that multiplies what a cache has in the second pass by 2: the last slots of what the prompt has written, and a new one.
func withinProgram(t *testing.T, m *Model, kept int) *Entry {
	t.Helper()
	inputs := []order.Node{node(m, "layers.0.self_attn.k_rope", 0), node(m, "layers.0.self_attn.k_rope", 1)}
	return entryOf(t, m, node(m, "layers.0.self_attn.scores", 1), inputs, func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Mul("", b.Cat(2, b.Slice(in[0], 2, 3-kept, 3), in[1]), b.Literal(2))
	})
}

// A mistake in what a cache holds has the slots that it says, whether the cache is within a program or is the entry itself.
func TestSlotsAreApplied(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	all := append(read(t, m, "layers.0.self_attn.k_rope", 0), read(t, m, "layers.0.self_attn.k_rope", 1)...)
	of := cachedTerm("layers.*.self_attn.k_rope")
	for _, c := range []struct {
		m     Mistake
		kept  int // slots of the prompt
		slots []int
	}{
		{Mistake{Kind: "cache.oldest-kept"}, 2, []int{0, 1, 3}},
		{Mistake{Kind: "cache.sink", N: 1}, 2, []int{0, 2, 3}},
		{Mistake{Kind: "cache.decode-unwritten"}, 3, []int{0, 1, 2, -1}},
		{Mistake{Kind: "cache.decode-stale"}, 3, []int{0, 1, 2, 2}},
		{Mistake{Kind: "cache.newest-unwritten"}, 3, []int{0, 1, 2, -1}},
		{Mistake{Kind: "cache.newest-stale"}, 3, []int{0, 1, 2, 2}},
		{Mistake{Kind: "cache.slots-moved", N: 1}, 3, []int{3, 0, 1, 2}},
		{Mistake{Kind: "cache.slots-moved", N: -1}, 3, []int{1, 2, 3, 0}},
		{Mistake{Kind: "cache.slot-unwritten", Runs: "1=-"}, 3, []int{0, -1, 2, 3}},
		{Mistake{Kind: "cache.slot-repeated", Runs: "2=1"}, 3, []int{0, 1, 1, 3}},
		{Mistake{Kind: "cache.slots-repeated", Runs: "2-3=0"}, 3, []int{0, 1, 0, 1}},
	} {
		c.m.Of = of
		makes(t, m, withinProgram(t, m, c.kept), c.m, twice(slotsOf(all, c.slots...)))
	}
	first := slices.Clone(all)
	for i := len(first) - ofWidth + 4; i < len(first); i++ {
		first[i] = 0
	}
	makes(t, m, withinProgram(t, m, 3), Mistake{Kind: "cache.decode-channels", Of: of, N: 4, M: ofWidth}, twice(first))
	grown := slices.Clone(all)
	for c := range ofWidth {
		for slot := range 3 {
			at := c*5 + slot // in memory of the prompt's three slots by channel
			if grown[slot*ofWidth+c] = 0; at < 3*ofWidth {
				grown[slot*ofWidth+c] = all[at%3*ofWidth+at/3]
			}
		}
	}
	makes(t, m, withinProgram(t, m, 3), Mistake{Kind: "cache.rows-read-apart", Of: of, N: 5}, twice(grown))
	for _, c := range []struct {
		kind  Kind
		slots []int
	}{
		{"cache.slot-unwritten", []int{0, -1, 2, 3}},
		{"cache.slot-repeated", []int{0, 1, 1, 3}},
		{"cache.oldest-kept", []int{0, 0, 1, 2}},
		{"cache.sink", []int{0, 0, 2, 3}},
		{"cache.ring", []int{2, 3, 2, 3}},
		{"cache.slots-of-another", []int{1, 1, 1, 3}},
		{"cache.written-elsewhere", []int{0, 1, -1, 2}},
		{"cache.order", []int{3, 0, 1, 2}},
		{"cache.other-slots", []int{0, 3, 2, 0}},
	} {
		inputs := []order.Node{node(m, "layers.0.self_attn.k_rope", 0), node(m, "layers.0.self_attn.k_rope", 1)}
		e := entryOf(t, m, node(m, "layers.0.self_attn.keys", 1), inputs, func(b *program.Builder, in, _ []program.Var) program.Var { return b.Cat(2, in...) })
		want := slotsOf(all, c.slots...)
		e.Judge = &traced{y: want}
		makes(t, m, e, Mistake{Kind: c.kind, Of: Term{Kind: TheCache}}, want)
	}
	last := operationOf(t, m, "layers.0.self_attn.k_rope", 1)
	makes(t, m, last, Mistake{Kind: "result.last-slot", Source: "layers.2.self_attn.k_rope"}, slotsOf(all, 2))
}

// inBits are numbers as whole numbers of a step, each group of a size by itself. The step follows from the numbers from some on.
func inBits(x []float64, size int, most float64, like []float64, ranged bool) []float64 {
	f := func(x float64) float64 { return float64(float32(x)) }
	var y []float64
	for at := 0; at < len(x); at += size {
		of := like
		if of == nil {
			of = x[at:][:size]
		}
		low, high := slices.Min(of), slices.Max(of)
		step, zero, least := f(max(high, -low)/most), 0.0, -most
		if ranged {
			step = f((high - low) / most)
			zero, least = math.RoundToEven(f(-low/step)), 0
		}
		for _, v := range x[at:][:size] {
			n := min(max(math.RoundToEven(f(v/step))+zero, least), most)
			y = append(y, f(f(n-zero)*step))
		}
	}
	return y
}

// misreadBytes are the numbers of the bytes of 8-bit floats that are written with some bits of exponent and read with others.
func misreadBytes(x []float64, written, read int) []float64 {
	number := func(code, exponent int) float64 {
		fraction := 7 - exponent
		one, e := 1<<fraction, code>>fraction
		if e == 0 {
			return float64(code) / float64(one) * math.Exp2(2-math.Exp2(float64(exponent-1)))
		}
		return (1 + float64(code%one)/float64(one)) * math.Exp2(float64(e)-math.Exp2(float64(exponent-1))+1)
	}
	var y []float64
	for _, v := range x {
		best := 0
		for code := range 0x78 {
			if math.Abs(number(code, written)-math.Abs(v)) < math.Abs(number(best, written)-math.Abs(v)) {
				best = code
			}
		}
		y = append(y, math.Copysign(number(best, read), v))
	}
	return y
}

// A tie is rounded to the even number, away from 0 or toward 0.
func TestTiesOfMisreadCaches(t *testing.T) {
	for rounding, want := range map[Rounding]float64{"": 1, HalfUp: 1.25, HalfDown: 1} { // 1.0625 is between 1 and 1.125, which e5m2 reads as 0x38 and 0x39
		x := program.Value{Shape: []int{1, 1}, Data: []float64{1.0625}}
		if !pack(Mistake{Kind: "cache.bits-misread", DType: hooks.F8E4M3, By: dtypeTerm(hooks.F8E5M2), Rounding: rounding}, x, 0, x, hooks.F32) || x.Data[0] != want/2 {
			t.Errorf("rounding %q gives %g, want %g", rounding, x.Data[0], want/2)
		}
	}
}

// A cache in few bits has the numbers of plain loops, and so has one of which an operation is taken.
func TestCachesInBitsAreApplied(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	const role = "layers.*.self_attn.k_rope"
	old, fresh := read(t, m, "layers.0.self_attn.k_rope", 0), read(t, m, "layers.0.self_attn.k_rope", 1)
	all := append(slices.Clone(old), fresh...)
	fixed := func(x []float64, step float64) []float64 { // the largest number is 127 steps
		return inBits(x, len(x), 127, []float64{-127 * step, 127 * step}, false)
	}
	eps := m.List.Config.RMSNormEps
	norm := weightsOf(t, m, "layers.0.self_attn.k_norm.weight")
	for _, c := range []struct {
		m    Mistake
		want []float64
	}{
		{Mistake{Kind: "cache.rounded", By: Term{Kind: OneScale}, N: 8}, append(inBits(old, len(old), 127, nil, false), fresh...)},
		{Mistake{Kind: "cache.rounded", By: Term{Kind: ScalesOfTokens}, N: 4}, append(inBits(old, ofWidth, 7, nil, false), fresh...)},
		{Mistake{Kind: "cache.rounded", By: Term{Kind: ScalesOfTokensAndHeads}, N: 4, Rounding: NewestToo}, inBits(all, ofWidth, 7, nil, false)},
		{Mistake{Kind: "cache.rounded-between", By: Term{Kind: OneScale}, N: 4}, append(inBits(old, len(old), 15, nil, true), fresh...)},
		{Mistake{Kind: "cache.rounded-as-the-newest", By: Term{Kind: OneScale}, N: 4}, append(inBits(old, len(old), 7, fresh, false), fresh...)},
		{Mistake{Kind: "cache.rounded-as-the-first", By: Term{Kind: ScalesOfHeads}, N: 4}, append(inBits(old, len(old), 7, old[:ofWidth], false), fresh...)},
		{Mistake{Kind: "cache.rounded-to-multiples", X: some(0.125)}, append(fixed(old, 0.125), fresh...)},
		{Mistake{Kind: "cache.bits-misread", DType: hooks.F8E4M3, By: dtypeTerm(hooks.F8E5M2)}, append(misreadBytes(old, 4, 5), fresh...)},
		{Mistake{Kind: "cache.bits-misread", DType: hooks.F8E5M2, By: dtypeTerm(hooks.F8E4M3), Rounding: NewestToo}, misreadBytes(all, 5, 4)},
		{Mistake{Kind: "cache.rounded-to-multiples", X: some(0.125), Rounding: NewestInFloat32}, fixed(all, 0.125)},
	} {
		c.m.Of = cachedTerm(role)
		makes(t, m, withinProgram(t, m, 3), c.m, twice(c.want))
	}
	for _, c := range []struct {
		kind Kind
		want []float64
	}{
		{"cache.operation-taken", rmsNorm(all, norm, eps)},
		{"cache.operation-taken-before", append(rmsNorm(old, norm, eps), fresh...)},
	} {
		for _, kind := range []Kind{c.kind, "cache.operation-taken-again" + c.kind[len("cache.operation-taken"):]} {
			makes(t, m, withinProgram(t, m, 3), Mistake{Kind: kind, By: cachedTerm(role), Source: "layers.1.self_attn.k_norm"}, twice(c.want))
		}
	}
}

// rmsNorm is an RMS norm of each row.
func rmsNorm(x, w []float64, eps float64) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += len(w) {
		sum := 0.0
		for _, v := range x[at:][:len(w)] {
			sum += v * v
		}
		for i := range w {
			y[at+i] = x[at+i] / math.Sqrt(sum/float64(len(w))+eps) * w[i]
		}
	}
	return y
}

// What is not rounded to the model's dtype on the way gives other numbers than what is.
func TestCachesInBitsRoundOnTheWay(t *testing.T) {
	m := tiny(t, "qwen3-tiny")
	of := func(r Rounding) []float64 {
		e := withinProgram(t, m, 3)
		e.Call.DType = hooks.BF16
		d, err := m.Apply(Mistake{Kind: "cache.rounded", Of: cachedTerm("layers.*.self_attn.k_rope"), By: Term{Kind: OneScale}, N: 8, Rounding: r}, e)
		if err != nil {
			t.Fatal(err)
		}
		p, c := d.Whole(e.Call)
		v, err := p.Eval(c)
		if err != nil {
			t.Fatal(err)
		}
		return v.Data
	}
	if slices.Equal(of(""), of(InFloat32)) {
		t.Error("the ways to round are one")
	}
}
