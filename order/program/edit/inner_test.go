package edit_test

import (
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// part is what one operation has of a program.
type part struct {
	in, w    []program.Var
	out      program.Var
	from, to int
}

// An edit of the steps of one operation changes these alone, where another operation has the same steps: of 2·(2x+3)+3 one number is another one, the result of one is
// read with 1 added, or one reads another tensor.
func TestInnerProgramsAreEditedAlone(t *testing.T) {
	var parts [2]part
	p, c := formulaOf(t, []int{1, 2, 8}, func(b *program.Builder, in []program.Var) program.Var {
		x := in[0]
		for k := range parts {
			parts[k] = part{in: []program.Var{x}, from: b.Len()}
			x = b.Add("+3", b.Mul("doubled", x, b.Scalar("two", 2)), b.Scalar("three", 3))
			if parts[k].to = b.Len(); k == 0 {
				x = b.R(b.Reshape(b.Cat(0, x), 1, 2, 8)) // the rounding is a step of its own
			}
			parts[k].out = x
		}
		return x
	})
	for k, o := range parts {
		x, ok := edit.InnerOf(p, o.from, o.to, o.in, o.w, o.out)
		if k == 0 {
			x, ok = edit.InnerOf(p, o.from, o.to+1, o.in, o.w, o.out)
		}
		if !ok {
			t.Fatalf("operation %d has no program of its own", k)
		}
		number := slices.IndexFunc(x.Steps, func(s program.Step) bool { return s.Site == "three" })
		input := slices.IndexFunc(x.Steps, func(s program.Step) bool { return s.Prim == program.Input })
		of := func(y, three float64) float64 { return 2*y + three }
		for name, e := range map[string]struct {
			edit func(ed *edit.Editor)
			want func(x float64) float64 // of the operation
		}{
			"number": {func(ed *edit.Editor) { ed.SetNumber(number, 5) }, func(x float64) float64 { return of(x, 5) }},
			"result": {func(ed *edit.Editor) { ed.Return(ed.Add("", x.Out, ed.Literal(1))) }, func(x float64) float64 { return of(x, 4) }},
			"input": {func(ed *edit.Editor) {
				ed.OtherInput(input, program.Value{Shape: []int{1, 2, 8}, Data: slices.Repeat([]float64{7}, 16)})
			}, func(float64) float64 { return of(7, 3) }},
			"handed on": {func(ed *edit.Editor) { ed.Return(x.Result(input)) }, func(x float64) float64 { return x }},
		} {
			inner := edit.NewEditor(x.Program)
			e.edit(inner)
			d, err := inner.End()
			if err != nil {
				t.Fatal(err)
			}
			whole := edit.NewEditor(p)
			if !edit.Put(whole, x, d) {
				t.Fatalf("%s of operation %d has no place", name, k)
			}
			if d, err = whole.End(); err != nil {
				t.Fatal(err)
			}
			gives(t, d, c, func(row []float64) (all []float64) {
				for _, v := range row {
					if k == 0 {
						all = append(all, of(e.want(v), 3))
					} else {
						all = append(all, e.want(of(v, 3)))
					}
				}
				return all
			})
		}
	}
	if _, ok := edit.InnerOf(p, parts[1].from, parts[1].to, nil, nil, parts[1].out); ok {
		t.Error("an operation that reads another has a program without that")
	}
	if v, ok := edit.Given(p, parts[0].in[0], c); !ok || !slices.Equal(v.Data, c.In[0].Data) {
		t.Errorf("the input is %v", v.Data)
	}
	if _, ok := edit.Given(p, parts[1].in[0], c); ok {
		t.Error("what is computed is an input")
	}
}
