package program_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/program/programtest"
)

func wholeOf(t *testing.T, p *program.Program, call program.Call) program.Value {
	t.Helper()
	v, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func kept(t *testing.T, p *program.Program, call program.Call) *program.Kept {
	t.Helper()
	k, err := p.Keep(call, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The program's own values take room for the rows that were asked for, and more rows are added to these. An evaluation that would take more than there is room
// for is refused before it is computed, and so is a part that an edited result does not have.
func TestKeptRowsTakeTheirOwnRoom(t *testing.T) {
	const n, rows, tokens = 16, 1024, 64
	p, call := linear(t, tokens, n, rows)
	whole, k := wholeOf(t, p, call), kept(t, p, call)
	before := k.Numbers()
	for _, keep := range [][]int{{40, 3}, {41, 3, 40}, {2}} {
		v, err := k.OwnSome(&program.Some{Axis: 1, Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		for at, token := range keep {
			same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
			if !slices.EqualFunc(v.Data[at*rows:][:rows], whole.Data[token*rows:][:rows], same) || !slices.EqualFunc(v.Bound[at*rows:][:rows], whole.Bound[token*rows:][:rows], same) {
				t.Errorf("token %d of %v is not that of the whole", token, keep)
			}
		}
	}
	if took := k.Numbers() - before; took != 4*2*rows {
		t.Errorf("4 tokens of %d with their bounds take %d numbers", rows, took)
	}
	k.Room = k.Numbers() + 8*rows
	if _, err := k.Own(); !errors.Is(err, program.ErrRoom) {
		t.Errorf("%v, want that there is no room for all tokens", err)
	}
	if _, err := k.OwnSome(&program.Some{Axis: 1, Keep: []int{5}}); err != nil {
		t.Errorf("%v, and there is room for one more token", err)
	}
	k.Room = 0

	ed := edit.NewEditor(p)
	other, ok := edit.As(p.Out, []int{tokens, 1, rows})
	if !ok {
		t.Fatal("the result cannot be seen in another shape")
	}
	ed.Return(other)
	d, err := ed.End()
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range [][]int{nil, {1, 2}} {
		if _, err := k.EvalSome(d, &program.Some{Axis: 1, Keep: []int{40, 3}, Columns: columns}); !errors.Is(err, program.ErrIndex) {
			t.Errorf("%v, want that the result has no token 40", err)
		}
	}
	if other, ok = edit.As(p.Out, []int{tokens * rows}); ok {
		ed := edit.NewEditor(p)
		ed.Return(other)
		if d, err = ed.End(); err == nil {
			_, err = k.EvalSome(d, &program.Some{Axis: 1, Keep: []int{3}, Columns: []int{1}})
		}
		if !errors.Is(err, program.ErrIndex) {
			t.Errorf("%v, want that the result has one axis", err)
		}
	}
}

// A step that is not computed row by row takes the room of all its rows, and is refused with these.
func TestKeptRoomIsOfWholeSteps(t *testing.T) {
	const n, tokens = 64, 256
	call := program.Call{Arith: bounded(brain), In: []program.Value{tensor(numbers(tokens*n, 7, bf16), 1, tokens, n)}, Shape: []int{1, 2 * tokens, n}}
	p, err := program.Of(programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var { return b.Cat(1, in[0], in[0]) }), op.Form, 0, call.Shape, [][]int{{1, tokens, n}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := kept(t, p, call)
	k.Room = k.Numbers() + 4*n
	if _, err := k.OwnSome(&program.Some{Axis: 1, Keep: []int{5}}); !errors.Is(err, program.ErrRoom) {
		t.Errorf("%v, and %d numbers are kept of %d", err, k.Numbers(), k.Room)
	}
}

// The room of a part is used again with zeros in all columns that were computed: a product with a bias computes all.
func TestRoomIsUsedAgainAsZeros(t *testing.T) {
	const n, width, tokens = 8, 8192, 3
	call := program.Call{
		Arith: bounded(brain), In: []program.Value{tensor(numbers(tokens*n, 7, bf16), 1, tokens, n), tensor(numbers(tokens*width/2, 9, bf16), 1, tokens, width/2)},
		W: []program.Rows{matrix{width, n, numbers(width*n, 8, bf16)}, matrix{1, width, numbers(width, 3, bf16)}}, Shape: []int{1, tokens, width},
	}
	p, err := program.Of(programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var {
		return b.Add("", b.Affine("", in[0], w[0], b.Whole(w[1])), b.Cat(2, in[1], in[1]))
	}), op.Form, 0, call.Shape, [][]int{{1, tokens, n}, {1, tokens, width / 2}}, [][2]int{{width, n}, {1, width}})
	if err != nil {
		t.Fatal(err)
	}
	again := func(prim program.Prim) *program.Edited {
		ed := edit.NewEditor(p)
		i := slices.IndexFunc(p.Steps, func(s program.Step) bool { return s.Prim == prim })
		ed.Pass(i, ed.MoveWith(i, p.Steps[i].Args...))
		d, err := ed.End()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	k, some := kept(t, p, call), &program.Some{Axis: 1, Keep: []int{1}, Columns: []int{7, 4097}}
	for range 2 { // the second takes the room of the first
		if _, err := k.EvalSome(again(program.Affine), &program.Some{Axis: 1, Keep: []int{1}, Columns: []int{0, 3}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := k.EvalSome(again(program.Cat), some)
	if err != nil {
		t.Fatal(err)
	}
	want, err := kept(t, p, call).EvalSome(again(program.Cat), some)
	if err != nil || !slices.Equal(got.Data, want.Data) || !slices.Equal(got.Bound, want.Bound) {
		t.Errorf("%v within %v, want %v within %v, %v", got.Data, got.Bound, want.Data, want.Bound, err)
	}
}

// An operand of no columns is read of a step that nothing else reads. Cores share the bounds of a large operand that has none, which the race detector may see.
func TestOperandsWithoutColumnsOrBounds(t *testing.T) {
	const rows, width = 512, 256
	call := program.Call{Arith: bounded(brain), In: []program.Value{tensor(numbers(rows*width, 7, bf16), rows, width)}, Shape: []int{rows, width}}
	p, err := program.Of(programtest.Weighted(func(b *program.Builder, in, w []program.Var) program.Var {
		none := b.Slice(b.Mul("", in[0], b.Literal(2)), 1, 3, 3)
		return b.Mul("", b.Cat(1, none, in[0]), in[0])
	}), op.Form, 0, call.Shape, [][]int{{rows, width}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, k := wholeOf(t, p, call), kept(t, p, call)
	part, err := k.OwnSome(&program.Some{Axis: 0, Keep: []int{9}})
	if err != nil || !slices.Equal(part.Data, whole.Data[9*width:10*width]) {
		t.Errorf("%d numbers, %v", len(part.Data), err)
	}
}

// An error of the program's own steps is that of every evaluation that follows: what was not computed is never read as numbers.
func TestKeptErrorsStay(t *testing.T) {
	call := program.Call{
		Arith: bounded(brain), In: []program.Value{tensor([]float64{1, 7, 0}, 1, 3)}, W: []program.Rows{matrix{3, 4, numbers(12, 8, bf16)}}, Shape: []int{1, 3, 4},
	}
	p, err := program.Of(op.Lookup{Rows: 3}, op.Form, 0, call.Shape, [][]int{{1, 3}}, [][2]int{{3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	k := kept(t, p, call)
	for range 2 {
		if v, err := k.Own(); !errors.Is(err, program.ErrIndex) {
			t.Errorf("%v and %v, want that there is no row 7", v.Data, err)
		}
	}
	if v, err := k.OwnSome(&program.Some{Axis: 1, Keep: []int{0}}); !errors.Is(err, program.ErrIndex) {
		t.Errorf("%v and %v after an error", v.Data, err)
	}
}
