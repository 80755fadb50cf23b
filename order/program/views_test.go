package program_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/order/program"
)

// array is a tensor whose elements are looked up by index: what a view has to show.
type array struct {
	shape []int
	at    func(index []int) float64
}

// all are its elements, row-major.
func (a array) all() []float64 {
	x := make([]float64, size(a.shape))
	for i := range x {
		x[i] = a.at(indexOf(i, a.shape))
	}
	return x
}

func indexOf(i int, shape []int) []int {
	index := make([]int, len(shape))
	for a := len(shape) - 1; a >= 0; a-- {
		index[a] = i % shape[a]
		i /= shape[a]
	}
	return index
}

func placeOf(index, shape []int) int {
	at := 0
	for a, n := range shape {
		at = at*n + index[a]
	}
	return at
}

// view draws one view of a tensor, as the builder has it and element by element.
func view(t *rapid.T, b *program.Builder, v program.Var, a array) (program.Var, array) {
	rank := len(a.shape)
	axis := rapid.IntRange(0, rank-1).Draw(t, "axis")
	n := a.shape[axis]
	switch rapid.SampledFrom([]string{"split", "permute", "slice", "take", "reshape", "strides"}).Draw(t, "view") {
	case "split":
		var of []int
		for k := 1; k <= n; k++ {
			if n%k == 0 {
				of = append(of, k)
			}
		}
		if len(of) == 0 {
			return v, a
		}
		first := rapid.SampledFrom(of).Draw(t, "pieces")
		inner := n / first
		return b.Split(v, axis, first), array{
			slices.Concat(a.shape[:axis], []int{first, inner}, a.shape[axis+1:]),
			func(i []int) float64 {
				return a.at(slices.Concat(i[:axis], []int{i[axis]*inner + i[axis+1]}, i[axis+2:]))
			},
		}
	case "permute":
		axes := rapid.Permutation(numbered(rank)).Draw(t, "axes")
		if rapid.Bool().Draw(t, "new axis") {
			axes = slices.Insert(axes, rapid.IntRange(0, rank).Draw(t, "where"), -1)
		}
		shape := make([]int, len(axes))
		for k, from := range axes {
			if shape[k] = 1; from >= 0 {
				shape[k] = a.shape[from]
			}
		}
		return b.Permute(v, axes...), array{shape, func(i []int) float64 {
			index := make([]int, rank)
			for k, from := range axes {
				if from >= 0 {
					index[from] = i[k]
				}
			}
			return a.at(index)
		}}
	case "slice":
		from := rapid.IntRange(0, n).Draw(t, "from")
		to := rapid.IntRange(from, n).Draw(t, "to")
		shape := slices.Clone(a.shape)
		shape[axis] = to - from
		return b.Slice(v, axis, from, to), array{shape, func(i []int) float64 {
			i = slices.Clone(i)
			i[axis] += from
			return a.at(i)
		}}
	case "strides":
		shape, stride := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 3).Draw(t, "shape"), make([]int, 3)
		low, high := 0, 0
		for k, d := range shape {
			stride[k] = rapid.IntRange(-3, 5).Draw(t, "stride")
			low, high = low+min(stride[k], 0)*(d-1), high+max(stride[k], 0)*(d-1)
		}
		total := size(a.shape)
		if high-low >= total {
			return v, a
		}
		off := -low + rapid.IntRange(0, total-1-(high-low)).Draw(t, "offset")
		old := a
		return b.View(v, shape, stride[:len(shape)], off), array{shape, func(i []int) float64 {
			at := off
			for k := range i {
				at += i[k] * stride[k]
			}
			return old.at(indexOf(at, old.shape))
		}}
	case "take":
		if rank == 1 || n == 0 {
			return v, a
		}
		k := rapid.IntRange(0, n-1).Draw(t, "index")
		return b.Take(v, axis, k), array{slices.Delete(slices.Clone(a.shape), axis, axis+1), func(i []int) float64 {
			return a.at(slices.Insert(slices.Clone(i), axis, k))
		}}
	}
	// The axes of a copy may be made one; those of a view only where its elements follow each other.
	shape := []int{size(a.shape)}
	if rank > 1 && rapid.Bool().Draw(t, "all but one") {
		shape = []int{a.shape[0], size(a.shape[1:])}
	}
	old := a
	return b.Reshape(b.Cat(0, v), shape...), array{shape, func(i []int) float64 { return old.at(indexOf(placeOf(i, shape), old.shape)) }}
}

func numbered(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// drawn draws a tensor with an element for each place.
func drawn(t *rapid.T) (program.Value, array) {
	shape := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 4).Draw(t, "shape")
	data := make([]float64, size(shape))
	for i := range data {
		data[i] = float64(i + 1)
	}
	return tensor(data, shape...), array{shape, func(i []int) float64 { return data[placeOf(i, shape)] }}
}

// Views of views show what indexing shows: copied, read by a step by element, by a sum and by a product of rows.
func TestViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, a := drawn(t)
		views := rapid.IntRange(1, 5).Draw(t, "views")
		var shown array
		show := func(b *program.Builder, v program.Var) program.Var {
			shown = a
			for range views {
				v, shown = view(t, b, v, shown)
			}
			if !slices.Equal(v.Shape, shown.shape) {
				t.Fatalf("the view is %v, not %v", v.Shape, shown.shape)
			}
			return v
		}
		b := program.NewBuilder()
		x := b.Input(0, in.Shape)
		v := show(b, x)
		rows := append(slices.Clone(shown.shape[:len(shown.shape)-1]), 1)
		for _, c := range []struct {
			name  string
			steps func(b *program.Builder) program.Var
			want  []float64
		}{
			{"as it is", func(*program.Builder) program.Var { return v }, shown.all()},
			{"copied", func(b *program.Builder) program.Var { return b.Cat(len(shown.shape)-1, v) }, shown.all()},
			{"negative", func(b *program.Builder) program.Var { return b.Neg(v) }, mapped(shown.all(), func(x float64) float64 { return -x })},
			{"and itself", func(b *program.Builder) program.Var { return b.Add("sum", b.Neg(b.Neg(v)), v) }, mapped(shown.all(), func(x float64) float64 { return x + x })},
			{"summed", func(b *program.Builder) program.Var { return b.Sum("sum", v) }, shown.rows(func(s, x float64) float64 { return s + x })},
			{"squared", func(b *program.Builder) program.Var {
				letters := "abcdefghij"[:len(shown.shape)-1]
				return b.Dot("dot", fmt.Sprintf("%sz,%sz->%sy", letters, "y"+letters, letters), v, b.Permute(v, append([]int{-1}, numbered(len(shown.shape))...)...))
			}, shown.rows(func(s, x float64) float64 { return s + x*x })},
		} {
			out := c.steps(b)
			p, err := b.Program(out)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			want := shown.shape
			if len(c.want) != size(want) || c.name == "summed" || c.name == "squared" {
				want = rows
			}
			for _, a := range []program.Arith{exact, bounded(single)} {
				got, err := p.Eval(program.Call{Arith: a, In: []program.Value{in}, Shape: want})
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				expected := c.want
				if a.Emulated {
					expected = mapped(expected, f32)
				}
				sameBits(t, c.name, got.Data, expected)
			}
		}
	})
}

// rows reduces the last axis.
func (a array) rows(f func(s, x float64) float64) []float64 {
	n := a.shape[len(a.shape)-1]
	out := make([]float64, size(a.shape[:len(a.shape)-1]))
	for i, x := range a.all() {
		out[i/n] = f(out[i/n], x)
	}
	return out
}

// Operands are repeated along axes of size 1, and along those that they do not have, as numpy does.
func TestBroadcasting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "shape")
		operand := func(label string) []int {
			s := slices.Clone(shape[rapid.IntRange(0, len(shape)-1).Draw(t, label+" lacks"):])
			for i := range s {
				if rapid.Bool().Draw(t, label+" has one") {
					s[i] = 1
				}
			}
			return s
		}
		left, right := operand("left"), operand("right")
		whole := make([]int, max(len(left), len(right)))
		for i := range whole {
			whole[i] = 1
			for _, s := range [][]int{left, right} {
				if k := i - len(whole) + len(s); k >= 0 {
					whole[i] = max(whole[i], s[k])
				}
			}
		}
		x, y := numbers(size(left), 20, bf16), numbers(size(right), 21, bf16)
		at := func(data []float64, s, index []int) float64 {
			own := slices.Clone(index[len(index)-len(s):])
			for i, n := range s {
				own[i] %= n
			}
			return data[placeOf(own, s)]
		}
		var want []float64
		for i := range size(whole) {
			index := indexOf(i, whole)
			want = append(want, at(x, left, index)-at(y, right, index))
		}
		got, err := program.Eval(of(func(b *program.Builder, in []program.Var) program.Var { return b.Sub("s", in[0], in[1]) }),
			program.Call{In: []program.Value{tensor(x, left...), tensor(y, right...)}, Shape: whole})
		if err != nil {
			t.Fatal(err)
		}
		sameBits(t, "difference", got.Data, want)
	})
}

// A listing says which elements a step reads: its words, taken by themselves, are the view.
func TestListedViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, a := drawn(t)
		b := program.NewBuilder()
		v, shown := b.Input(0, in.Shape), a
		for range rapid.IntRange(1, 4).Draw(t, "views") {
			v, shown = view(t, b, v, shown)
		}
		if size(shown.shape) == 0 {
			return
		}
		p, err := b.Program(b.Neg(v))
		if err != nil {
			t.Fatal(err)
		}
		lines := p.Listing(strconv.Itoa, func(*program.Step) string { return "x" })
		last := lines[len(lines)-2]
		name, words, indexed := strings.Cut(strings.TrimSuffix(last.Args[0], "]"), "[")
		if last.Prim != "neg" || strings.Contains(name, " as ") {
			return
		}
		// What is named: the input, or a copy of a view, whose elements are counted on from the last view.
		k := slices.IndexFunc(lines, func(l program.Line) bool { return l.Name == name })
		p2, err := b.Program(v)
		if err != nil {
			t.Fatal(err)
		}
		shape := make([]int, len(lines[k].Shape))
		for i, word := range lines[k].Shape {
			shape[i], _ = strconv.Atoi(word)
		}
		if lines[k].Prim != "input" {
			return
		}
		got, err := p2.Eval(program.Call{In: []program.Value{in}, Shape: shown.shape})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range got.Data {
			index := indexOf(i, shown.shape)
			own := index
			if indexed {
				own = own[:0:0]
				for _, word := range strings.Fields(words) {
					own = append(own, readIndex(t, word, index))
				}
			}
			for len(own) > len(shape) { // new axes of size 1 in front
				own = own[1:]
			}
			own = slices.Clone(own)
			for a, n := range shape {
				if n == 1 { // repeated, as everywhere in a listing
					own[a] = 0
				}
			}
			if x := in.Data[placeOf(own, shape)]; x != want {
				t.Fatalf("%s of %v at %v is %v, the view %v", last.Args[0], shape, index, x, want)
			}
		}
	})
}

// readIndex is the value of an index such as 2j+k+1.
func readIndex(t *rapid.T, word string, index []int) int {
	sum := 0
	for term := range strings.SplitSeq(word, "+") {
		axis := strings.IndexAny(term, "ijklmnopq")
		by, digits := 1, term
		if axis >= 0 {
			digits = term[:axis]
		}
		if digits != "" {
			n, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatalf("%q: %v", word, err)
			}
			by = n
		}
		if axis >= 0 {
			by *= index[term[axis]-'i']
		}
		sum += by
	}
	return sum
}
