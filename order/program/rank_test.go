package program_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// chosen is a row with bounds, what lies within them, and the indexes of that which are largest, in some order.
type chosen struct {
	x     program.Value
	moved []float64
	k     int
	order []int // of moved, the largest first
}

// drawMoved is a row of n elements with bounds, and what lies within them.
func drawMoved(t *rapid.T, name string, n int) chosen {
	c := chosen{x: program.Value{Shape: []int{1, n}}}
	for range n {
		x := float64(rapid.IntRange(-6, 6).Draw(t, name))
		e := rapid.SampledFrom([]float64{0, 0, 0.25, 1, 2.5}).Draw(t, "e")
		c.x.Data, c.x.Bound = append(c.x.Data, x), append(c.x.Bound, e)
		c.moved = append(c.moved, x+e*rapid.SampledFrom([]float64{-1, -0.5, 0, 0.5, 1}).Draw(t, "by"))
	}
	return c
}

func drawChosen(t *rapid.T) chosen {
	n := rapid.IntRange(1, 7).Draw(t, "n")
	c := drawMoved(t, "x", n)
	c.k = rapid.IntRange(1, n).Draw(t, "k")
	c.order = numbered(n)
	for i := range c.order { // equal elements come in any order
		k := rapid.IntRange(i, n-1).Draw(t, "swap")
		c.order[i], c.order[k] = c.order[k], c.order[i]
	}
	slices.SortStableFunc(c.order, func(i, k int) int {
		switch {
		case c.moved[i] > c.moved[k]:
			return -1
		case c.moved[i] < c.moved[k]:
			return 1
		}
		return 0
	})
	return c
}

func floatsOf(x []int) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func evaluated(t interface{ Fatal(...any) }, o *formula, c program.Call) program.Value {
	v, err := program.Eval(o, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var bounds32 = program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}

// Whatever choice a computation within the bounds makes, what is gathered by it lies within the bounds of what is gathered here, also
// through copies and other views of the indexes; and so does what is written by it, and what is added.
func TestChoicesWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChosen(t)
		n := len(c.moved)
		table, written := drawMoved(t, "table", n), drawMoved(t, "written", c.k)
		copied := rapid.Bool().Draw(t, "copied")
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		o := of(func(b *program.Builder, in []program.Var) program.Var {
			index := b.Rank(in[0], c.k, false)
			if copied {
				index = b.Permute(b.Cat(0, b.Permute(index, 1, 0)), 1, 0)
			}
			switch kind {
			case 0:
				return b.Gather(1, in[0], index)
			case 1:
				return b.Gather(1, in[1], index)
			case 2:
				return b.Scatter(1, in[1], index, in[2])
			}
			return b.Collect("sum", 1, in[1], index, in[2])
		})
		got := evaluated(t, o, program.Call{Open: true, Arith: bounds32, In: []program.Value{c.x, table.x, written.x}, Shape: []int{1, map[bool]int{true: c.k, false: n}[kind < 2]}})
		want := slices.Clone(table.moved)
		if kind < 2 {
			want = nil
		}
		for r, i := range c.order[:c.k] {
			switch kind {
			case 0:
				want = append(want, c.moved[i])
			case 1:
				want = append(want, table.moved[i])
			case 2:
				want[i] = written.moved[r]
			default:
				want[i] += written.moved[r]
			}
		}
		for i, w := range want {
			if !(math.Abs(got.Data[i]-w) <= got.Bound[i]) {
				t.Fatalf("element %d may be %v, and is %v within %v", i, w, got.Data[i], got.Bound[i])
			}
		}
	})
}

// An engine's choice is the result if and only if some numbers within the bounds give it.
func TestOwnChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChosen(t)
		sorted := rapid.Bool().Draw(t, "sorted")
		o := of(func(b *program.Builder, in []program.Var) program.Var { return b.Rank(in[0], c.k, sorted) })
		call := program.Call{Open: true, Arith: bounds32, In: []program.Value{c.x}, Shape: []int{1, c.k}, Own: floatsOf(c.order[:c.k])}
		got := evaluated(t, o, call)
		if !slices.Equal(got.Data, call.Own) || slices.Max(got.Bound) > 0 {
			t.Fatalf("%v of %v is allowed, and the result is %v within %v", call.Own, c.moved, got.Data, got.Bound)
		}
		// Any other choice: right if no index that is left out is larger than one that is taken, at the most that bounds allow.
		own := floatsOf(rapid.Permutation(numbered(len(c.moved))).Draw(t, "other")[:c.k])
		if rapid.Bool().Draw(t, "twice") {
			own[c.k-1] = own[0]
		}
		right := c.k == 1 || own[c.k-1] != own[0]
		high := func(i int) float64 { return c.x.Data[i] + c.x.Bound[i] }
		low := func(i int) float64 { return c.x.Data[i] - c.x.Bound[i] }
		for r, v := range own {
			for i := range c.moved {
				at := slices.Index(own, float64(i))
				if (at < 0 || sorted && at > r) && low(i) > high(int(v)) {
					right = false
				}
			}
		}
		call.Own = own
		got = evaluated(t, o, call)
		if slices.Equal(got.Data, own) != right {
			t.Fatalf("%v of %v within %v is right: %v, and the result is %v within %v", own, c.x.Data, c.x.Bound, right, got.Data, got.Bound)
		}
		if slices.Max(got.Bound) > 0 {
			t.Fatalf("what is known to be right or wrong has the bounds %v", got.Bound)
		}
	})
}

// Without the engine's choice an index that bounds leave open has an infinite bound, and the others none; of a row with a NaN or without
// any bounds nothing is known, whatever was chosen.
func TestOpenChoice(t *testing.T) {
	o := of(func(b *program.Builder, in []program.Var) program.Var { return b.Rank(in[0], 3, false) })
	inf := math.Inf(1)
	for _, c := range []struct {
		x, e, own, want, bound []float64
	}{
		{[]float64{1, 9, 5, 7}, []float64{0, 0, 0, 0}, nil, []float64{1, 3, 2}, []float64{0, 0, 0}},
		{[]float64{1, 9, 5, 5}, []float64{0, 0, 0, 0}, nil, []float64{1, 2, 3}, []float64{0, inf, inf}},
		{[]float64{4, 9, 5, 7}, []float64{0.5, 0, 0.5, 0}, nil, []float64{1, 3, 2}, []float64{0, 0, inf}},
		{[]float64{4, 9, 5, 7}, []float64{0.5, 0, 0.5, 0}, []float64{0, 3, 1}, []float64{0, 3, 1}, []float64{0, 0, 0}},
		{[]float64{4, 9, 5, 7}, []float64{0.4, 0, 0.5, 0}, []float64{0, 3, 1}, []float64{1, 3, 2}, []float64{0, 0, 0}},
		{[]float64{4, 9, 5, 7}, []float64{0.4, 0, 0.5, 0}, []float64{3, 1, 2}, []float64{3, 1, 2}, []float64{0, 0, 0}},
		{[]float64{4, 9, 5, 7}, []float64{0, 0, 0, 0}, []float64{1, 3, 4}, []float64{1, 3, 2}, []float64{0, 0, 0}},
		{[]float64{math.NaN(), 9, 5, 7}, []float64{0, 0, 0, 0}, []float64{1, 3, 2}, []float64{0, 1, 3}, []float64{inf, inf, inf}},
		{[]float64{4, 9, 5, 7}, []float64{0, inf, 0, 0}, []float64{0, 2, 3}, []float64{1, 3, 2}, []float64{inf, inf, inf}},
	} {
		in := tensor(c.x, 1, 4)
		in.Bound = c.e
		got := evaluated(t, o, program.Call{Open: true, Arith: bounds32, In: []program.Value{in}, Shape: []int{1, 3}, Own: c.own})
		if !slices.Equal(got.Data, c.want) || !slices.Equal(got.Bound, c.bound) {
			t.Errorf("%v within %v, %v chosen: %v within %v, want %v within %v", c.x, c.e, c.own, got.Data, got.Bound, c.want, c.bound)
		}
	}
}

// A choice that is not open is made, whatever bounds allow for, unless nothing is known of what is chosen from.
func TestMadeChoice(t *testing.T) {
	o := of(func(b *program.Builder, in []program.Var) program.Var {
		return b.Gather(1, in[0], b.Rank(in[0], 2, false))
	})
	for e, want := range map[float64][]float64{0: {0, 0}, 3: {3, 3}, math.Inf(1): {math.Inf(1), math.Inf(1)}} {
		in := tensor([]float64{4, 9, 5, 7}, 1, 4)
		in.Bound = []float64{e, e, e, e}
		got := evaluated(t, o, program.Call{Arith: bounds32, In: []program.Value{in}, Shape: []int{1, 2}})
		if !slices.Equal(got.Data, []float64{9, 7}) || !slices.Equal(got.Bound, want) {
			t.Errorf("within %v: %v within %v, want %v", e, got.Data, got.Bound, want)
		}
	}
}

// A condition that bounds leave open has the bounds of both: what is chosen by it may be the other.
func TestOpenCondition(t *testing.T) {
	o := of(func(b *program.Builder, in []program.Var) program.Var {
		return b.Choose(b.Gate(in[0]), b.Literal(2), b.Literal(5))
	})
	in := tensor([]float64{-1, -1, 1, 1, 0}, 5)
	in.Bound = []float64{0.5, 1.5, 0.5, 1.5, 0}
	got := evaluated(t, o, program.Call{Open: true, Arith: bounds32, In: []program.Value{in}, Shape: []int{5}})
	if want := []float64{5, 5, 2, 2, 5}; !slices.Equal(got.Data, want) {
		t.Errorf("%v, want %v", got.Data, want)
	}
	if want := []float64{0, 3, 0, 3, 0}; !slices.Equal(got.Bound, want) {
		t.Errorf("within %v, want %v", got.Bound, want)
	}
}

// An index outside of what is written to is an error.
func TestScatterOutside(t *testing.T) {
	for _, at := range []float64{-1, 3, 0.5, math.NaN()} {
		o := of(func(b *program.Builder, in []program.Var) program.Var { return b.Scatter(0, in[0], in[1], in[2]) })
		_, err := program.Eval(o, program.Call{In: []program.Value{tensor([]float64{1, 2, 3}, 3), tensor([]float64{at}, 1), tensor([]float64{9}, 1)}, Shape: []int{3}})
		if !errors.Is(err, program.ErrIndex) {
			t.Errorf("index %v: %v", at, err)
		}
	}
}
