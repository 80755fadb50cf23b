package diagnose

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// table is a weight in memory.
type table struct {
	cols int
	data []float64
}

func (w table) Size() (rows, cols int) { return len(w.data) / w.cols, w.cols }

func (w table) Row(dst []float64, i int) error {
	copy(dst, w.data[i*w.cols:][:w.cols])
	return nil
}

// traced is the judge of an entry of which nothing but the trace's tensor is asked.
type traced struct {
	Judge
	y []float64
}

func (*traced) Choices(*program.Program) []program.Choice { return nil }
func (j *traced) Target() (y, half []float64)             { return j.y, make([]float64, len(j.y)) }

// tiny is a model of a fixture with a prompt of three tokens and two decode steps, whose tensors and weights differ in every element.
func tiny(t *testing.T, fixture string) *Model {
	t.Helper()
	data, err := os.ReadFile("../../fixtures/" + fixture + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{List: list, Passes: []order.Pass{{Tokens: 3}, {Tokens: 1, Past: 3}, {Tokens: 1, Past: 4}}, Room: 1 << 30}
	numbers := func(n int, of float64) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = float64(float32(math.Sin(1.7*float64(i)+of) + 0.25))
		}
		return all
	}
	m.Has = func(n order.Node) bool { return n.Entry >= 0 && n.Pass >= 0 }
	m.Read = func(n order.Node) (program.Value, error) {
		shape := m.List.Entries[n.Entry].Size(m.Passes[n.Pass], config.SlidingWindow)
		return program.Value{Shape: shape, Data: numbers(program.Size(shape), float64(3*n.Entry+100*n.Pass))}, nil
	}
	m.Weights = func(w order.Weight) (program.Rows, error) {
		of := 0.0
		for _, c := range w.Name {
			of = of*1.1 + float64(c)
		}
		return table{w.Shape[len(w.Shape)-1], numbers(program.Size(w.Shape), of)}, nil
	}
	return m
}

// node is a tensor of a pass.
func node(m *Model, name string, pass int) order.Node {
	return order.Node{Entry: m.List.Index(name), Pass: pass}
}

// entryOf is the entry of a tensor whose program is built of inputs, some of which are streams of stacks, and of the entry's weights.
func entryOf(t *testing.T, m *Model, at order.Node, inputs []order.Node, build func(b *program.Builder, in, w []program.Var) program.Var, streams ...*int) *Entry {
	t.Helper()
	e := &Entry{Node: at, Inputs: inputs, Items: make([]*int, len(inputs)), Weights: m.List.Entries[at.Entry].Weights}
	b := program.NewBuilder()
	var in, w []program.Var
	for k, n := range inputs {
		v, err := m.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		if k < len(streams) && streams[k] != nil {
			part := program.Size(v.Shape[1:])
			e.Items[k], v = streams[k], program.Value{Shape: v.Shape[1:], Data: v.Data[*streams[k]*part:][:part]}
		}
		e.Call.In, in = append(e.Call.In, v), append(in, b.Input(k, v.Shape))
	}
	for k, of := range e.Weights {
		rows, err := m.Weights(of)
		if err != nil {
			t.Fatal(err)
		}
		n, cols := rows.Size()
		e.Call.W, w = append(e.Call.W, rows), append(w, b.Weight(k, [2]int{n, cols}))
	}
	p, err := b.Program(build(b, in, w))
	if err != nil {
		t.Fatal(err)
	}
	e.Program, e.Judge = p, &traced{}
	e.Call.Arith, e.Call.Shape = program.Arith{DType: hooks.F32}, p.Out.Shape
	return e
}

// operationOf is the entry of a tensor with its own operation of its inputs in the pass.
func operationOf(t *testing.T, m *Model, name string, pass int) *Entry {
	t.Helper()
	at := node(m, name, pass)
	own := &m.List.Entries[at.Entry]
	var inputs []order.Node
	var streams []*int
	for _, r := range own.Inputs {
		inputs, streams = append(inputs, node(m, r.Name, pass)), append(streams, r.Index)
	}
	return entryOf(t, m, at, inputs, func(b *program.Builder, in, w []program.Var) program.Var {
		return b.Apply(own.Op, own.Op.Kind(), own.Size(m.Passes[pass], m.List.Config.SlidingWindow), in, w)
	}, streams...)
}

// placeIn is the text of the place of an input of an entry's program, by its number.
func placeIn(m *Model, e *Entry, inputs ...int) string {
	t := e.signed(m)
	var at []edit.Place
	for _, k := range inputs {
		at = append(at, t.PlaceOf(slices.IndexFunc(t.Steps, func(s program.Step) bool { return s.Prim == program.Input && s.Index() == k })))
	}
	return placed(at...)
}

// read are the numbers of a tensor.
func read(t *testing.T, m *Model, name string, pass int) []float64 {
	t.Helper()
	v, err := m.Read(node(m, name, pass))
	if err != nil {
		t.Fatal(err)
	}
	return v.Data
}

// weightsOf are the numbers of a weight of one row or several.
func weightsOf(t *testing.T, m *Model, name string) []float64 {
	t.Helper()
	w, _ := newSubject(m).weightOf(name)
	rows, err := m.Weights(w)
	if err != nil {
		t.Fatal(err)
	}
	return rows.(table).data
}

// makes holds what a mistake makes of an entry to the numbers of plain loops, which differ from those of the right program.
func makes(t *testing.T, m *Model, e *Entry, mistake Mistake, want []float64) {
	t.Helper()
	d, err := m.Apply(mistake, e)
	if d == nil || err != nil {
		t.Errorf("%s does not go with the entry: %v", mistake.Key(), err)
		return
	}
	p, c := d.Whole(e.Call)
	got, err := p.Eval(c)
	if err != nil {
		t.Errorf("%s: %v", mistake.Key(), err)
		return
	}
	right, err := e.Program.Eval(e.Call)
	if err != nil {
		t.Fatal(err)
	}
	same := func(x, y []float64) bool {
		return slices.EqualFunc(x, y, func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) })
	}
	if same(got.Data, right.Data) {
		t.Errorf("%s changes nothing", mistake.Key())
	}
	if !same(got.Data, want) {
		t.Errorf("%s makes %.5v, not %.5v", mistake.Key(), got.Data, want)
	}
}
