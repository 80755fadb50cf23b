package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// counted is a matrix that counts how often each of its rows is read.
type counted struct {
	rows, cols int
	read       []int
}

func (c *counted) Size() (rows, cols int) { return c.rows, c.cols }

func (c *counted) Row(dst []float64, i int) error {
	c.read[i]++
	for k := range dst {
		dst[k] = math.Sin(float64(i*c.cols + k + 1))
	}
	return nil
}

// Mistakes in the input or the weight of the head are refused by the few ids that are looked at first: the rows of the other ids are read for the few mistakes
// that are made from the whole weight. Mistakes in the result alone use one product.
func TestFewIdsRefuseBeforeAllAreComputed(t *testing.T) {
	m := model(t)
	at := m.List.Index("lm_head")
	entry := &m.List.Entries[at]
	ids, width := entry.Weights[0].Shape[0], entry.Weights[0].Shape[1]
	w := &counted{ids, width, make([]int, ids)}
	input := order.Node{Entry: m.List.Index(entry.Inputs[0].Name)}
	x, err := m.Read(input)
	if err != nil {
		t.Fatal(err)
	}
	m.Weights = func(o order.Weight) (program.Rows, error) {
		switch {
		case o.Name == entry.Weights[0].Name:
			return w, nil
		case len(o.Shape) == 1:
			return &counted{1, o.Shape[0], make([]int, 1)}, nil
		}
		return &counted{o.Shape[0], o.Shape[1], make([]int, o.Shape[0])}, nil
	}
	e := &diagnose.Entry{Node: order.Node{Entry: at}, Weights: entry.Weights[:1], Inputs: []order.Node{input}, Items: []*int{nil}}
	e.Call.Arith = program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}
	e.Call.In, e.Call.W, e.Call.Shape = []program.Value{x}, []program.Rows{w}, []int{1, tokens, ids}
	if e.Program, err = program.Of(entry.Op, func(o program.Op) string { return o.Kind() }, 0, e.Call.Shape, [][]int{x.Shape}, [][2]int{{ids, width}}); err != nil {
		t.Fatal(err)
	}
	all := &honest{e: e, y: make([]float64, tokens*ids)}
	some := program.Some{Axis: 1, Keep: []int{0, 2}, Columns: []int{0, 3, 4, 7, 8, 9, 30, 31}}
	few, part := &fewTargets{all, nil}, &honest{e: e}
	for i := range all.y { // nothing explains it
		all.y[i] = math.Cos(float64(i*i + 1))
		e.Left = append(e.Left, i)
	}
	for _, token := range some.Keep {
		for _, id := range some.Columns {
			few.known, part.y = append(few.known, token*ids+id), append(part.y, all.y[token*ids+id])
		}
	}
	e.Few = &diagnose.Few{Some: some, Leaves: part.Leaves, Far: part.Far, Target: part.Target}
	for k := range part.y {
		e.Few.Left = append(e.Few.Left, k)
	}
	e.Judge = few
	clear(w.read)
	f, err := diagnose.Find(t.Context(), m, []*diagnose.Entry{e})
	if err != nil || f.Explains() {
		t.Fatalf("%v, %v", f, err)
	}
	looked, other := w.read[some.Columns[0]], w.read[ids-1]
	if looked < 100 || 10*other > looked {
		t.Errorf("of %d mistakes that were tried, an id that is looked at first was read %d times, and another id %d times", f.Tried, looked, other)
	}

	k, err := e.Program.Keep(e.Call, nil)
	if err != nil {
		t.Fatal(err)
	}
	clear(w.read)
	for n := range 20 {
		ed := edit.NewEditor(e.Program)
		ed.Return(ed.Mul("factor", e.Program.Out, ed.Literal(float64(n+2))))
		d, err := ed.End()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.EvalSome(d, &some); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.read[some.Columns[0]]; n != 1 || w.read[ids-1] > 1 {
		t.Errorf("twenty factors of the logits read an id's row %d times, and %d times that of an id that is not looked at", n, w.read[ids-1])
	}
}
