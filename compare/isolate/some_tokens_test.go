package isolate_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// Some tokens of a program's result are to the bit what they are in all of it, with their bounds: attention over all keys of a few queries, norms,
// products and rotations, in all ways in which a search evaluates programs. They take less work.
func TestSomeTokensAreThoseOfAll(t *testing.T) {
	ctx := t.Context()
	looked, less := 0, 0
	for _, golden := range []string{"gemma3n-tiny/decode.bfloat16", "gemma3-tiny/decode.float32", "llama-tiny/decode.float32", "gemma2-tiny/decode.bfloat16"} {
		trace := testengine.OpenGolden(t, "golden/"+golden+".safetensors")
		i := isolatorOf(t, trace)
		// Between the tokens and these entries lies as much as can be: what is captured of attention, and tables, is not used.
		far := func(n order.Node) bool {
			e := i.List().At(n)
			return i.Has(n) && (e.Layer < 0 && !i.Fixed(n.Entry) || e.Op.Kind() == "linear" || e.Op.Kind() == "rms_norm")
		}
		for k, r := range trace.Records() {
			if k%4 != 1 {
				continue
			}
			n := order.Node{Entry: i.List().Index(r.Name), Pass: r.Pass}
			if n.Entry < 0 || i.List().At(n).Op == nil {
				continue
			}
			for _, has := range []func(order.Node) bool{i.Has, far} {
				of, err := i.TrialFrom(n, has)
				if isolate.Lacking(err) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				if err := of.Prepare(ctx); err != nil && !errors.Is(err, order.ErrOwn) {
					t.Fatal(err)
				}
				at, tokens := isolate.TokenAxis(of.Entry), i.Env().Passes[n.Pass].Tokens
				if of.Formula == nil || at < 0 || at >= len(of.Y.Shape)-1 || tokens < 3 || of.Chooses() {
					continue
				}
				looked++
				some := &program.Some{Axis: at, Keep: []int{tokens - 1, 1}}
				if width := of.Y.Shape[len(of.Y.Shape)-1]; looked%2 == 0 && width > 5 {
					some.Columns = []int{width - 1, 0, 4}
				}
				less += someOf(t, r.Key, of, some)
			}
		}
	}
	if looked < 200 || less < 100 {
		t.Errorf("%d entries were looked at, %d took less work", looked, less)
	}
}

// someOf compares some of a trial's result with all of it, and returns 1 where an edited program takes less work.
func someOf(t *testing.T, key string, of *isolate.Trial, some *program.Some) (less int) {
	t.Helper()
	call := of.Call
	call.Arith = of.Isolator.Env().Arith
	p := of.Formula.Program
	whole, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	few := call
	few.Some = some
	same := func(how string, got, all program.Value, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s, %s: %v", key, how, err)
		}
		at, tokens := some.Axis, all.Shape[some.Axis]
		outer, inner, width := program.Size(all.Shape[:at]), program.Size(all.Shape[at+1:]), all.Shape[len(all.Shape)-1]
		columns := some.Columns
		if columns == nil {
			columns = isolate.UpTo(0, width)
		}
		few := inner / width * len(columns)
		if len(got.Data) != outer*len(some.Keep)*few || got.Shape[at] != len(some.Keep) || program.Size(got.Shape) != len(got.Data) {
			t.Fatalf("%s, %s: %v, of %v", key, how, got.Shape, all.Shape)
		}
		for o := range outer {
			for k, token := range some.Keep {
				for c := range few {
					a, b := (o*len(some.Keep)+k)*few+c, (o*tokens+token)*inner+c/len(columns)*width+columns[c%len(columns)]
					if math.Float64bits(got.Data[a]) != math.Float64bits(all.Data[b]) || math.Float64bits(got.Bound[a]) != math.Float64bits(all.Bound[b]) {
						t.Fatalf("%s, %s: element %d of token %d is %x within %x, want %x within %x", key, how, c, token, got.Data[a], got.Bound[a], all.Data[b], all.Bound[b])
					}
				}
			}
		}
	}
	got, err := p.Eval(few)
	same("evaluated", got, whole, err)

	hull := few
	hull.Hull = true
	call.Hull = true
	all, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	call.Hull = false
	got, err = p.Eval(hull)
	same("in the hull", got, all, err)

	search, err := p.Search(few)
	if err != nil {
		t.Fatal(err)
	}
	got, err = search.Eval(p.Own())
	same("searched", got, whole, err)

	kept, err := p.Keep(call, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts := edit.NewStepIndex(p, func(program.Prim, int) string { return "" })
	// The result read in another order needs other columns of what it is computed from.
	steps, maps := append(parts.Edits().LeftOut(), parts.Edits().Exchanged()...), parts.Edits().Maps([]int{2, 4})
	var edits []edit.Edit
	for _, all := range [][]edit.Edit{steps, maps} {
		for k := 0; k < len(all); k += 1 + len(all)/8 {
			edits = append(edits, all[k])
		}
	}
	for _, d := range edits {
		ed := d.Apply(parts)
		if ed == nil {
			continue
		}
		fresh, err := p.Keep(call, nil)
		if err != nil {
			t.Fatal(err)
		}
		first, firstErr := fresh.EvalSome(ed, some)
		before := kept.Work
		all, err := kept.Eval(ed)
		if err != nil {
			continue
		}
		took := kept.Work - before
		same("edited before all of it was computed", first, all, firstErr)
		after, err := fresh.Eval(ed)
		if err != nil || !sameValue(after, all) {
			t.Fatalf("%s: %v, or all of it is different after some of it", key, err)
		}
		own, err := fresh.OwnSome(some)
		same("of the program itself", own, whole, err)
		got, err := kept.EvalSome(ed, some)
		same("edited", got, all, err)
		if kept.Work-before-took < took {
			less = 1
		}
	}
	return less
}

// sameValue reports whether two values are the same to the bit, with their bounds.
func sameValue(a, b program.Value) bool {
	same := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	return slices.EqualFunc(a.Data, b.Data, same) && slices.EqualFunc(a.Bound, b.Bound, same)
}
