package order_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

func recordedList(t *testing.T, text string) *order.List {
	t.Helper()
	p, err := recorded.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	l, err := order.Recorded(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Of one operation nothing is known: what is computed from it cannot be, and all the rest can.
const twoPasses = `{"format":"tracediff program","version":1,"model_type":"net",
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,["c0",2,"c2","v0"]],[1,0,[2]]]},{"tokens":1,"past":2,"calls":[[0,-1,["c1",1,"v0","v1"]],[2,0,[]]]}],
"templates":[
[{"name":"input_ids","of":"$0","level":1},
 {"op":"embedding","in":["w:e","$0"],"out":[["float32",[1,"$1",4]]]}],
[{"op":"moon","in":["v0"],"out":[["float32",[1,2,4]]]},{"name":"layers.0.moon","of":"t0","level":2},
 {"op":"neg","in":["t0"],"out":[["float32",[1,2,4]]]},{"name":"layers.0.neg","of":"t1","level":2},
 {"op":"exp","in":["v0"],"out":[["float32",[1,2,4]]]},{"name":"layers.0.keys","of":"t2","level":2}],
[{"op":"neg","in":["v4"],"out":[["float32",[1,1,4]]]},{"name":"layers.0.neg","of":"t0","level":2},
 {"op":"cat","in":["v3","v4"],"out":[["float32",[1,3,4]]],"attr":{"dim":1}},{"name":"layers.0.keys","of":"t1","level":2}]
],
"weights":{"e":{"dtype":"float32","shape":[9,4]}},
"constants":[{"dtype":"int64","shape":[1,2],"from":[{"kind":"ids"}],"sha256":""},{"dtype":"int64","shape":[1,1],"from":[{"kind":"ids"}],"sha256":""},{"dtype":"float32","shape":[],"from":[{"kind":"fill","value":0}],"sha256":"df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119"}]}`

func TestRecordedPasses(t *testing.T) {
	l := recordedList(t, twoPasses)
	want := []string{"input_ids", "layers.0.neg:embedding", "layers.0.moon:embedding", "layers.0.moon", "layers.0.neg", "layers.0.keys"}
	if got := l.Names(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the order is %v, want %v", got, want)
	}
	keys := l.Index("layers.0.keys")
	if got := l.Entries[keys].Shape; len(got) != 3 || got[1] != order.SFull {
		t.Errorf("keys have shape %v, want as many as there are tokens so far", got)
	}
	if a, b := l.At(order.Node{Entry: keys}), l.At(order.Node{Entry: keys, Pass: 1}); a.Op.Kind() != "exp" || b.Op.Kind() != "cat" {
		t.Errorf("keys are made by %s and %s", a.Op.Kind(), b.Op.Kind())
	}
	if moon := l.Index("layers.0.moon"); l.In(order.Node{Entry: moon, Pass: 1}) || !l.In(order.Node{Entry: moon}) {
		t.Error("the moon is of the first pass alone")
	}
	if got := strings.Join(l.Named().Names(), " "); got != "input_ids layers.0.moon layers.0.neg layers.0.keys" {
		t.Errorf("names: %s", got)
	}

	ids := l.Index("input_ids")
	none := func(n order.Node) bool { return n.Entry == ids }
	cut, err := l.Cut(none, order.Node{Entry: keys, Pass: 1})
	if err != nil || len(cut.Steps) != 4 || len(cut.Leaves) != 2 {
		t.Errorf("the cut of keys: %v, %v", cut, err)
	}
	var bare *order.BareError
	if _, err := l.Cut(none, order.Node{Entry: l.Index("layers.0.neg")}); !errors.As(err, &bare) || bare.Name != "layers.0.moon" || !strings.Contains(err.Error(), "moon: no formula is known for it") {
		t.Errorf("what needs an unknown operation: %v", err)
	}
	if _, err := l.Cut(none, order.Node{Entry: keys, Pass: 2}); !errors.As(err, &bare) {
		t.Errorf("a pass that was not recorded: %v", err)
	}
}

// Two passes that compute two tensors from each other have no common order.
func TestRecordedOrderOfPasses(t *testing.T) {
	f, err := os.ReadFile("../fixtures/programs/llama-tiny.bfloat16.program.json")
	if err != nil {
		t.Fatal(err)
	}
	l := recordedList(t, string(f))
	for pass := range 3 {
		for i := range l.Entries {
			n := order.Node{Entry: i, Pass: pass}
			for _, in := range l.At(n).Inputs {
				if at := l.Index(in.Name); !in.Prev && at >= i {
					t.Errorf("%s of pass %d is computed from %s, which is behind it", l.Entries[i].Name, pass, in.Name)
				}
			}
		}
	}
	crossed := func(first string) string {
		return `{"format":"tracediff program","version":1,
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,["w:e"]]]},{"tokens":1,"past":2,"calls":[[1,-1,["v0"]]]}],
"templates":[
[{"op":"neg","in":["$0"],"out":[["float32",[4]]]},{"name":"a","of":"t0","level":1},
 {"op":"exp","in":["` + first + `"],"out":[["float32",[4]]]},{"name":"b","of":"t1","level":1}],
[{"op":"exp","in":["$0"],"out":[["float32",[4]]]},{"name":"b","of":"t0","level":1},
 {"op":"neg","in":["t0"],"out":[["float32",[4]]]},{"name":"a","of":"t1","level":1}]
],
"weights":{"e":{"dtype":"float32","shape":[4]}}}`
	}
	p, err := recorded.Read(strings.NewReader(crossed("t0")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := order.Recorded(p); err == nil || !strings.Contains(err.Error(), "another pass has these in the opposite order") {
		t.Errorf("an order that no list has: %v", err)
	}
	if got := strings.Join(recordedList(t, crossed("$0")).Names(), " "); got != "b a" {
		t.Errorf("where the first pass computes neither from the other, the order is %q", got)
	}
}

// Two names of one value, which two passes have in two orders: the same one is computed in both, and the other is a view of it.
func TestRecordedNamesInOtherOrders(t *testing.T) {
	l := recordedList(t, `{"format":"tracediff program","version":1,
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,["w:e"]]]},{"tokens":1,"past":2,"calls":[[1,-1,["v0"]]]}],
"templates":[
[{"op":"exp","in":["$0"],"out":[["float32",[4]]]},{"name":"a","of":"t0","level":1},{"name":"b","of":"t0","level":1}],
[{"op":"exp","in":["$0"],"out":[["float32",[4]]]},{"name":"b","of":"t0","level":1},{"name":"a","of":"t0","level":1}]
],
"weights":{"e":{"dtype":"float32","shape":[4]}}}`)
	for pass := range 2 {
		if e := l.At(order.Node{Entry: l.Index("b"), Pass: pass}); len(e.Inputs) != 1 || e.Inputs[0].Name != "a" || e.Inputs[0].Prev {
			t.Errorf("b of pass %d is computed from %v, want a", pass, e.Inputs)
		}
	}
}

// Complex numbers are their two parts: a rotary embedding that multiplies by e^(iφ).
func TestRecordedComplexNumbers(t *testing.T) {
	l := recordedList(t, `{"format":"tracediff program","version":1,
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,[]]]}],
"templates":[
[{"op":"polar","in":["w:r","w:a"],"out":[["complex64",[3,2]]]},
 {"op":"bits","in":["w:x"],"out":[["complex64",[6]]]},
 {"op":"mul","in":[["t1",[3,2],[2,1],0],["t0",[3,2],[1,3],0]],"out":[["complex64",[3,2]]]},
 {"op":"mul","in":["t2",0.5],"out":[["complex64",[3,2]]]},
 {"op":"bits","in":[["t3",[6],[1],0]],"out":[["float32",[12]]]},{"name":"y","of":"t4","level":1}]
],
"weights":{"r":{"dtype":"float32","shape":[3,2]},"a":{"dtype":"float32","shape":[3,2]},"x":{"dtype":"float32","shape":[12]}}}`)
	row := func(shape ...int) (all []float64) {
		m := anyRows{shape, hooks.F32}
		n, cols := m.Size()
		for i := range n {
			x := make([]float64, cols)
			if err := m.Row(x, i); err != nil {
				t.Fatal(err)
			}
			all = append(all, x...)
		}
		return all
	}
	var want []float64
	r, x := row(3, 2), row(12)
	for i := range 6 {
		k := i/2 + 3*(i%2) // seen by columns
		y := complex(x[2*i], x[2*i+1]) * cmplx.Rect(r[k], r[k]) / 2
		want = append(want, real(y), imag(y))
	}
	cut, err := l.Cut(func(order.Node) bool { return false }, order.Node{Entry: l.Index("y")})
	if err != nil {
		t.Fatal(err)
	}
	env := order.Env{
		Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, Passes: make([]order.Pass, 1),
		Weights: func(w order.Weight) (program.Rows, error) { return anyRows{w.Shape, hooks.F32}, nil },
	}
	got, err := cut.Value(context.Background(), env)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range want {
		if far := math.Abs(got.Data[i] - v); len(want) != len(got.Data) || !(far <= got.Bound[i]) || !(got.Bound[i] <= 1e-5*(math.Abs(v)+math.Abs(x[i]*100))) {
			t.Errorf("part %d is %v, not %v: its bound is %g", i, got.Data[i], v, got.Bound[i])
		}
	}
}

// Steps without names that two passes have in two orders are entries of their own in each.
func TestRecordedStepsInOtherOrders(t *testing.T) {
	l := recordedList(t, `{"format":"tracediff program","version":1,
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,["w:e"]]]},{"tokens":1,"past":2,"calls":[[1,-1,["v0"]]]}],
"templates":[
[{"op":"exp","in":["$0"],"out":[["float32",[4]]]},{"op":"neg","in":["t0"],"out":[["float32",[4]]]},
 {"op":"abs","in":["t1"],"out":[["float32",[4]]]},{"name":"y","of":"t2","level":1}],
[{"op":"neg","in":["$0"],"out":[["float32",[4]]]},{"op":"exp","in":["t0"],"out":[["float32",[4]]]},
 {"op":"abs","in":["t1"],"out":[["float32",[4]]]},{"name":"y","of":"t2","level":1}]
],
"weights":{"e":{"dtype":"float32","shape":[4]}}}`)
	want := "y:neg@1 y:exp@1 y:exp@0 y:neg@0 y"
	if got := strings.Join(l.Names(), " "); got != want {
		t.Errorf("the order is %q, want %q", got, want)
	}
	cut, err := l.Cut(func(order.Node) bool { return false }, order.Node{Entry: l.Index("y"), Pass: 1})
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, n := range cut.Steps {
		steps = append(steps, l.Entries[n.Entry].Name)
	}
	if got := strings.Join(steps, " "); got != "y:exp@0 y:neg@1 y:exp@1 y" {
		t.Errorf("y of the second pass is computed by %q", got)
	}
}

// Names that each pass has of its own, and names behind ever more steps without one, are refused before a list is made of them.
func TestListsThatWouldBeLarge(t *testing.T) {
	const head = `{"format":"tracediff program","version":1,`
	several := func(n int, text func(k int) string) string {
		all := make([]string, n)
		for k := range all {
			all[k] = text(k)
		}
		return strings.Join(all, ",")
	}
	neg := func(of string) string { return `{"op":"neg","in":[` + of + `],"out":[["float32",[1]]]}` }
	names := several(10, func(k int) string { return fmt.Sprintf(`{"name":"layers.{layer}.n%d","of":"t0","level":3}`, k) })
	chain := neg("1") + "," + several(4000, func(k int) string { return neg(fmt.Sprintf(`"t%d"`, k)) })
	ends := several(1000, func(k int) string {
		return neg(`"t4000"`) + fmt.Sprintf(`,{"name":"n%d","of":"t%d","level":3}`, k, 4001+k)
	})
	for _, c := range []struct{ text, want string }{
		{
			`"passes":[` + several(4000, func(k int) string { return fmt.Sprintf(`{"tokens":1,"past":0,"calls":[[0,%d,[]]]}`, k) }) + `],"templates":[[` + neg("1") + "," + names + `]]}`,
			"names in 4000 passes",
		},
		{`"passes":[{"tokens":1,"past":0,"calls":[[0,-1,[]]]}],"templates":[[` + chain + "," + ends + `]]}`, "steps without a name"},
	} {
		p, err := recorded.Read(strings.NewReader(head + c.text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := order.Recorded(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
}
