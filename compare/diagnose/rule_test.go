package diagnose_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// gullible takes every program for the trace's, or none.
type gullible struct {
	e   *diagnose.Entry
	all bool
}

func (g *gullible) Small() *diagnose.Entry                    { return g.e }
func (g *gullible) Choices(*program.Program) []program.Choice { return nil }

func (g *gullible) Target() (y, half []float64) {
	n := len(g.e.Left)
	return make([]float64, n), slices.Repeat([]float64{1e-9}, n)
}

func (*gullible) Far(program.Value) float64 { return 0 }

func (g *gullible) Leaves(_ program.Value, limit int) ([]int, error) {
	if g.all {
		return nil, nil
	}
	return g.e.Left[:min(limit, len(g.e.Left))], nil
}

func (g *gullible) Refuses(*program.Program, program.Call) (bool, error) { return false, nil }

func (g *gullible) Explains(*program.Program, program.Call) (bool, int, int, error) {
	return g.all, len(g.e.Left), 3, nil
}

// vector is a weight of one row.
type vector []float64

func (v vector) Size() (rows, cols int) { return 1, len(v) }

func (v vector) Row(dst []float64, _ int) error {
	copy(dst, v)
	return nil
}

// norm is the first norm of a model, of which every element is left.
func norm(t *testing.T, all bool, weights func(order.Weight) (program.Rows, error)) (*diagnose.Model, *diagnose.Entry) {
	t.Helper()
	list := listOf(t, "qwen3-tiny")
	at := list.Index("layers.0.input_layernorm")
	entry := &list.Entries[at]
	width := entry.Weights[0].Shape[0]
	shape := []int{1, 3, width}
	p, err := program.Of(entry.Op, func(o program.Op) string { return o.Kind() }, 0, shape, [][]int{shape}, [][2]int{{1, width}})
	if err != nil {
		t.Fatal(err)
	}
	in := program.Value{Shape: shape, Data: make([]float64, 3*width)}
	w := make(vector, width)
	left := make([]int, 3*width)
	for i := range in.Data {
		in.Data[i], left[i] = float64(i%7)-2.5, i
	}
	for i := range w {
		w[i] = 1 + float64(i%5)/8
	}
	e := &diagnose.Entry{
		Node: order.Node{Entry: at}, Program: p, Inputs: []order.Node{{Entry: at - 1}}, Items: []*int{nil}, Weights: entry.Weights, Left: left,
		Call: program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{in}, W: []program.Rows{w}, Shape: shape},
	}
	e.Judge = &gullible{e, all}
	return &diagnose.Model{
		List: list, Passes: []order.Pass{{Tokens: 3}}, Weights: weights,
		Read: func(order.Node) (program.Value, error) { return in, nil },
		Has:  func(order.Node) bool { return false },
	}, e
}

// Where edits of different values give everything, all are said and none is the name.
func TestEditsOfDifferentValuesAreNoName(t *testing.T) {
	m, e := norm(t, true, func(order.Weight) (program.Rows, error) { return nil, errors.New("not read") })
	f, err := diagnose.Find(t.Context(), m, []*diagnose.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	if f.Named() || f.What != "" || f.Page != "" || len(f.Undecided) < 2 || !f.Explains() {
		t.Errorf("%+v", f)
	}
	if text := f.Text(); !strings.Contains(text, f.Undecided[0].Text()) || !strings.Contains(text, f.Undecided[1].Text()) {
		t.Errorf("%q does not say what it may be: %v", text, f.Undecided)
	}
}

// Where nothing gives everything, the finding says so, and apart from that what was tried.
func TestWhatIsUnexplainedSaysWhatWasTried(t *testing.T) {
	m, e := norm(t, false, func(w order.Weight) (program.Rows, error) { return make(vector, w.Shape[0]), nil })
	f, err := diagnose.Find(t.Context(), m, []*diagnose.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	if f.Named() || f.Explains() || f.Tried < 100 || f.Stopped {
		t.Errorf("%+v", f)
	}
	if want := "unexplained: no mistake that was tried reproduces all elements"; f.Text() != want {
		t.Errorf("%q, want %q", f.Text(), want)
	}
	for _, words := range []string{fmt.Sprintf("%d mistakes: ", f.Tried), "steps left out", "constants", "weights", "orders of elements"} {
		if !strings.Contains(f.Searched(), words) {
			t.Errorf("%q does not say %q", f.Searched(), words)
		}
	}
}

// All searches of one finding together take no more than its account, each no more than its share. The one that stopped says so, and how to go on.
func TestSearchesOfOneFindingShareItsAccount(t *testing.T) {
	const searches, all = 4, 800 // hypotheses, were they nothing to compute
	find := func(m *diagnose.Model) *diagnose.Finding {
		_, e := norm(t, false, func(w order.Weight) (program.Rows, error) { return make(vector, w.Shape[0]), nil })
		f, err := diagnose.Find(t.Context(), m, []*diagnose.Entry{e})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	model := func(work int) *diagnose.Model {
		m, _ := norm(t, false, func(w order.Weight) (program.Rows, error) { return make(vector, w.Shape[0]), nil })
		m.Work = work
		return m
	}
	m := model(all * diagnose.HypothesisWork)
	tried := 0
	for n := searches; n > 0; n-- {
		m.Share(n)
		f := find(m)
		if now := f.Tried - tried; now < all/searches/2 || now > all/searches || !f.Stopped {
			t.Errorf("%d of %d tried by one of %d searches; stopped: %t", now, all, searches, f.Stopped)
		}
		if !strings.HasSuffix(f.Text(), "; the search stopped at its limit before every mistake was tried, --search-work 30x goes on") {
			t.Errorf("it stopped, and says %q", f.Text())
		}
		if len(f.NotReached) == 0 || f.NotReached[len(f.NotReached)-1] != "errors of low rank, slots from elsewhere, random weights" {
			t.Errorf("it stopped before the last kind, and says that it has not reached %q", f.NotReached)
		}
		tried = f.Tried
	}
	if f := find(m); f.Tried != tried || !f.Stopped {
		t.Errorf("%d more tried of an account that is used up", f.Tried-tried)
	}
	m = model(30 * all * diagnose.HypothesisWork)
	if f := find(m); f.Tried <= all || f.Stopped || len(f.NotReached) > 0 || strings.Contains(f.Text(), "--search-work") {
		t.Errorf("with thirty times as much, %d tried: %s", f.Tried, f.Text())
	}
}

// An error of reading a weight that an edit tries ends the search: it is not taken for an edit that explains nothing.
func TestErrorsOfReadingEndTheSearch(t *testing.T) {
	broken := errors.New("the disk is gone")
	m, e := norm(t, false, func(order.Weight) (program.Rows, error) { return nil, broken })
	if f, err := diagnose.Find(t.Context(), m, []*diagnose.Entry{e}); !errors.Is(err, broken) {
		t.Errorf("%v, %v", f, err)
	}
}
