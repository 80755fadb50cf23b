package program_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// The program's own values take room for the rows that were asked for, and more rows are added to these. An evaluation that would take more than there is room
// for is refused before it is computed, and so is a part that an edited result does not have.
func TestKeptRowsTakeTheirOwnRoom(t *testing.T) {
	const n, rows, tokens = 16, 1024, 64
	call := program.Call{
		Arith: bounded(brain), In: []program.Value{tensor(numbers(tokens*n, 7, bf16), 1, tokens, n)},
		W: []program.Rows{matrix{rows, n, numbers(rows*n, 8, bf16)}}, Shape: []int{1, tokens, rows},
	}
	p, err := program.Of(op.Linear{}, op.Form, 0, call.Shape, [][]int{{1, tokens, n}}, [][2]int{{rows, n}})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.Keep(call, nil)
	if err != nil {
		t.Fatal(err)
	}
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

	ed := p.Edit()
	other, ok := ed.As(p.Out, []int{tokens, 1, rows})
	if !ok {
		t.Fatal("the result cannot be seen in another shape")
	}
	ed.Return(other)
	d, err := ed.End()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.EvalSome(d, &program.Some{Axis: 1, Keep: []int{40, 3}}); !errors.Is(err, program.ErrIndex) {
		t.Errorf("%v, want that the result has no token 40", err)
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
	k, err := p.Keep(call, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if v, err := k.Own(); !errors.Is(err, program.ErrIndex) {
			t.Errorf("%v and %v, want that there is no row 7", v.Data, err)
		}
	}
	if v, err := k.OwnSome(&program.Some{Axis: 1, Keep: []int{0}}); !errors.Is(err, program.ErrIndex) {
		t.Errorf("%v and %v after an error", v.Data, err)
	}
}
