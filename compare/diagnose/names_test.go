package diagnose_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// honest holds programs to a tensor: an element may be off by the bound of the program and half a unit.
type honest struct {
	e *diagnose.Entry
	y []float64
}

func (h *honest) Small() *diagnose.Entry                    { return h.e }
func (h *honest) Choices(*program.Program) []program.Choice { return nil }

func (h *honest) Target() (y, half []float64) {
	for _, v := range h.y {
		if math.IsInf(v, 0) {
			v = 0
		}
		off := math.Abs(v) * 0x1p-24
		if v != 0 {
			off = max(off, 0x1p-150)
		}
		half = append(half, off)
	}
	return h.y, half
}

func (h *honest) Leaves(x program.Value, limit int) ([]int, error) {
	_, half := h.Target()
	var left []int
	for i, v := range x.Data {
		if v != h.y[i] && (v == v || h.y[i] == h.y[i]) && (v-v != 0 || !(math.Abs(v-h.y[i]) <= x.Bound[i]+half[i]) || math.IsInf(x.Bound[i], 1)) && len(left) < limit {
			left = append(left, i)
		}
	}
	return left, nil
}

func (h *honest) Far(x program.Value) float64 {
	far := 0.0
	for i, v := range x.Data {
		far += (v - h.y[i]) * (v - h.y[i])
	}
	return far
}

func (h *honest) Refuses(*program.Program, program.Call) (bool, error) { return false, nil }

func (h *honest) Explains(p *program.Program, c program.Call) (all bool, shown, rows int, err error) {
	x, err := p.Eval(c)
	if err != nil {
		return false, 0, 0, err
	}
	left, err := h.Leaves(x, len(h.y))
	return len(left) == 0, len(h.e.Left), 3, err
}

// tokens is how many tokens the entries of these tests have.
const tokens = 3

// planted is an entry of qwen3-tiny whose tensor is what wrong makes of what the entry is computed from.
func planted(t *testing.T, m *diagnose.Model, name string, pass int, wrong func(in [][]float64, w [][]float64) []float64) *diagnose.Entry {
	t.Helper()
	at := m.List.Index(name)
	entry := &m.List.Entries[at]
	e := &diagnose.Entry{Node: order.Node{Entry: at, Pass: pass}, Weights: entry.Weights}
	e.Call.Arith = program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}
	var shapes [][]int
	var sizes [][2]int
	var in, weights [][]float64
	for k, r := range entry.Inputs {
		n := order.Node{Entry: m.List.Index(r.Name), Pass: pass}
		v, err := m.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.Data {
			v.Data[i] = float64(float32(v.Data[i] * float64(k+1)))
		}
		e.Inputs, e.Items, e.Call.In = append(e.Inputs, n), append(e.Items, nil), append(e.Call.In, v)
		shapes, in = append(shapes, v.Shape), append(in, v.Data)
	}
	for _, w := range entry.Weights {
		rows, err := m.Weights(w)
		if err != nil {
			t.Fatal(err)
		}
		n, cols := rows.Size()
		sizes, e.Call.W = append(sizes, [2]int{n, cols}), append(e.Call.W, rows)
		weights = append(weights, rows.(vector))
	}
	e.Call.Shape = []int{1, tokens, m.List.Config.HiddenSize}
	var err error
	if e.Program, err = program.Of(entry.Op, func(o program.Op) string { return o.Kind() }, 0, e.Call.Shape, shapes, sizes); err != nil {
		t.Fatal(err)
	}
	h := &honest{e: e, y: wrong(in, weights)}
	e.Judge = h
	x, err := e.Program.Eval(e.Call)
	if err != nil {
		t.Fatal(err)
	}
	e.Left, _ = h.Leaves(x, len(h.y))
	return e
}

// listOf is the order of a fixture.
func listOf(t *testing.T, fixture string) *order.List {
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
	return list
}

// model is qwen3-tiny with tensors and weights that are the same in every run.
func model(t *testing.T) *diagnose.Model {
	t.Helper()
	list := listOf(t, "qwen3-tiny")
	passes := []order.Pass{{Tokens: tokens}, {Tokens: tokens, Past: tokens}}
	return &diagnose.Model{
		List: list, Passes: passes, Has: func(order.Node) bool { return false },
		Weights: func(w order.Weight) (program.Rows, error) {
			v := make(vector, w.Shape[0])
			for i := range v {
				v[i] = 1 + float64((i+len(w.Name))%5)/8
			}
			return v, nil
		},
		Read: func(n order.Node) (program.Value, error) {
			v := program.Value{Shape: []int{1, tokens, list.Config.HiddenSize}, Data: make([]float64, tokens*list.Config.HiddenSize)}
			for i := range v.Data {
				v.Data[i] = float64(float32(math.Sin(float64(7*i+3*n.Entry+5*n.Pass+1)) * (1 + float64(i%7))))
			}
			return v, nil
		},
	}
}

// normed is an RMS norm in plain loops.
func normed(x, w []float64, eps float64) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += len(w) {
		sum := 0.0
		for _, v := range x[at:][:len(w)] {
			sum += v * v
		}
		by := 1 / math.Sqrt(sum/float64(len(w))+eps)
		for i := range w {
			y[at+i] = float64(float32(x[at+i] * by * w[i]))
		}
	}
	return y
}

func named(t *testing.T, m *diagnose.Model, entries ...*diagnose.Entry) *diagnose.Finding {
	t.Helper()
	f, err := diagnose.Find(t.Context(), m, entries)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A name says in which layers and passes it is where others of the role are right, whatever the order of the entries.
func TestNamesSayWhereTheyAre(t *testing.T) {
	right := func(in, w [][]float64) []float64 { return normed(in[0], w[0], 1e-6) }
	wrong := func(in, w [][]float64) []float64 { return normed(in[0], w[0], 0.1) }
	const first, second = "layers.0.input_layernorm", "layers.2.input_layernorm"
	for _, c := range []struct {
		where       string
		left, given [][2]any
	}{
		{"", [][2]any{{first, 0}, {second, 0}}, nil},
		{"layers.2", [][2]any{{second, 0}, {second, 1}}, [][2]any{{first, 0}, {first, 1}}},
		{"pass 1", [][2]any{{first, 1}, {second, 1}}, [][2]any{{first, 0}, {second, 0}}},
		{"layers.2, pass 1", [][2]any{{second, 1}}, [][2]any{{first, 0}, {first, 1}, {second, 0}}},
		{"layers.0, layers.2, passes 0 to 1", [][2]any{{first, 1}, {second, 0}}, [][2]any{{first, 0}, {second, 1}}},
	} {
		for _, turned := range []bool{false, true} {
			m := model(t)
			var left, rest []*diagnose.Entry
			for _, n := range c.left {
				left = append(left, planted(t, m, n[0].(string), n[1].(int), wrong))
			}
			for _, n := range c.given {
				rest = append(rest, planted(t, m, n[0].(string), n[1].(int), right))
			}
			if turned {
				slices.Reverse(left)
				slices.Reverse(rest)
			}
			m.Rest = func() ([]*diagnose.Entry, error) { return rest, nil }
			f := named(t, m, left...)
			if f.Where != c.where || !strings.HasPrefix(f.What, "epsilon is 0.1") {
				t.Errorf("%q in %q, want it in %q", f.What, f.Where, c.where)
			}
			if c.where != "" && !strings.Contains(f.Text(), ", in "+c.where+" only") {
				t.Errorf("%q does not say where", f.Text())
			}
		}
	}
}

// A right entry in which the edit would change nothing does not say where it is.
func TestARightEntryThatShowsNothingTellsNothing(t *testing.T) {
	m := model(t)
	wrong := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 { return normed(in[0], w[0], 0.1) })
	zeros := func(order.Node) (program.Value, error) {
		return program.Value{Shape: []int{1, tokens, m.List.Config.HiddenSize}, Data: make([]float64, tokens*m.List.Config.HiddenSize)}, nil
	}
	m.Read = zeros
	right := planted(t, m, "layers.1.input_layernorm", 0, func(in, _ [][]float64) []float64 { return in[0] })
	m.Rest = func() ([]*diagnose.Entry, error) { return []*diagnose.Entry{right}, nil }
	if f := named(t, m, wrong); f.Where != "" || !f.Named() {
		t.Errorf("%+v", f)
	}
}

// A number that people type, and that fields of the configuration have by chance, is not said to be theirs.
func TestNumbersThatAreOfAFieldByChance(t *testing.T) {
	for _, c := range []struct {
		by   float64
		want string
	}{
		{2, "layers.*.input_layernorm.weight is multiplied by 2"},   // num_key_value_heads
		{16, "the result is multiplied by 16"},                      // hidden_size
		{1 / math.Sqrt(12), "the result is multiplied by 0.288675"}, // 1/√head_dim, which is not a number that people type
	} {
		m := model(t)
		e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			for i := range y {
				y[i] = float64(float32(y[i] * c.by))
			}
			return y
		})
		f := named(t, m, e)
		if has := strings.Contains(f.Text(), "("); !f.Named() || c.by == 2 && f.Text() != c.want || has != (c.by < 1) {
			t.Errorf("times %v: %q", c.by, f.Text())
		}
	}
}

// A number that leaves nothing of a value is no name: that the value is not used is.
func TestNumbersThatLeaveNothing(t *testing.T) {
	m := model(t)
	m.Without = edit.LeftOut.String() // the name that it has else
	e := planted(t, m, "layers.0.attn_residual", 0, func(in, _ [][]float64) []float64 { return slices.Clone(in[0]) })
	f := named(t, m, e)
	if !f.Named() || !strings.Contains(f.Text(), "is not used") || strings.Contains(f.Text(), "cap") {
		t.Errorf("%q", f.Text())
	}
}

// vague takes what lies between two tensors for the trace's.
type vague struct {
	honest
	other []float64
}

func (v *vague) Leaves(x program.Value, limit int) ([]int, error) {
	var left []int
	for i, at := range x.Data {
		low, high := min(v.y[i], v.other[i]), max(v.y[i], v.other[i])
		if !(at >= low-x.Bound[i] && at <= high+x.Bound[i]) && len(left) < limit {
			left = append(left, i)
		}
	}
	return left, nil
}

func (v *vague) Explains(p *program.Program, c program.Call) (all bool, shown, rows int, err error) {
	x, err := p.Eval(c)
	if err != nil {
		return false, 0, 0, err
	}
	left, err := v.Leaves(x, len(v.y))
	return len(left) == 0, len(v.e.Left), 3, err
}

// A number that may as well be another one, above or below it, is no name.
func TestNumbersThatTheDataDoNotTell(t *testing.T) {
	m := model(t)
	e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 { return normed(in[0], w[0], 6e-3) })
	h := e.Judge.(*honest)
	x := e.Call.In[0].Data
	e.Judge = &vague{*h, normed(x, e.Call.W[0].(vector), 5e-5)}
	f, err := diagnose.Find(t.Context(), m, []*diagnose.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	if text := f.Text(); f.Named() || !f.Explains() || !strings.Contains(text, "epsilon is 0.001") || !strings.Contains(text, "0.0001") {
		t.Errorf("%q", text)
	}
}

// Several numbers of one size that are all too small are one name.
func TestNumbersOfOneSizeAreOneName(t *testing.T) {
	m := model(t)
	read := m.Read
	m.Read = func(n order.Node) (program.Value, error) { // rows as small as the root of epsilon
		v, err := read(n)
		v.Data = slices.Clone(v.Data)
		for i := range v.Data {
			v.Data[i] *= 1e-3
		}
		return v, err
	}
	e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 { return normed(in[0], w[0], 0.99e-7) })
	h := e.Judge.(*honest)
	e.Judge = &vague{*h, normed(e.Call.In[0].Data, e.Call.W[0].(vector), 1.2e-7)}
	if f := named(t, m, e); f.What != "epsilon is 1e-07 (or 1.19209e-07)" || !f.Named() {
		t.Errorf("%q, or %v", f.What, f.Undecided)
	}
}

// A factor in front of a norm acts as epsilon does. Clearly different factors give the values, and one epsilon, or what is next to it: that comes first.
func TestAnEpsilonComesBeforeFactorsInFrontOfTheNorm(t *testing.T) {
	m := model(t)
	o := normOf8()
	o.op = &madeOf{func(b *program.Builder, in, w []program.Var) program.Var {
		x := b.Mul("scaled", in[0], b.Scalar("scale", 0.1))
		mean := b.Mean("mean", b.Mul("square", x, x))
		return b.Mul("weight", b.Mul("normed", x, b.Rsqrt("rsqrt", b.Add("+eps", mean, b.Scalar("eps", 1e-6)))), w[0])
	}}
	for i := range o.in[0].Data { // rows as small as the root of epsilon
		o.in[0].Data[i] *= 1e-2
	}
	with := func(eps float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			scaled := make([]float64, len(in[0]))
			for i, v := range in[0] {
				scaled[i] = v / 10
			}
			copy(y, normed(scaled, o.matrix[0], eps))
		}
	}
	e := o.made(t, m, with(0.8e-7))
	h := e.Judge.(*honest)
	e.Judge = &vague{*h, o.made(t, m, with(1.6e-7)).Judge.(*honest).y}
	if f := named(t, m, e); len(f.Undecided) == 0 || f.Undecided[0].What != "epsilon is 1e-07 (or 1.19209e-07)" {
		t.Errorf("%q, or %v", f.What, f.Undecided)
	}
}

// A power of ten that may as well be a number near it has both said.
func TestPowersOfTenAreSaidWithWhatIsNearThem(t *testing.T) {
	m := model(t)
	e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 { return normed(in[0], w[0], 1.005e-3) })
	h := e.Judge.(*honest)
	e.Judge = &vague{*h, normed(e.Call.In[0].Data, e.Call.W[0].(vector), 0x1.ffp-11)}
	if text := named(t, m, e).What; !strings.HasPrefix(text, "epsilon is 0.001 (or 0.000976562") {
		t.Errorf("%q", text)
	}
}

// What is minus infinity may be masked: it need not be too large a number.
func TestMinusInfinityIsMasked(t *testing.T) {
	for at, want := range map[float64]string{math.Inf(-1): "channels 0, 1, 2 are -infinity: masked or suppressed", math.Inf(1): "channels 0, 1, 2 are infinite: overflow of the dtype"} {
		m := model(t)
		e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			for i := range y {
				if i%m.List.Config.HiddenSize < 3 {
					y[i] = at
				}
			}
			return y
		})
		if f := named(t, m, e); !strings.HasPrefix(f.Text(), want) {
			t.Errorf("%v: %q", at, f.Text())
		}
	}
}

// A name has a mistake of a step, or a relation that was read off the port's own tensor, and never both.
func TestANameHasAMistakeOrARelation(t *testing.T) {
	for _, c := range []struct {
		entry             string
		mistake, relation diagnose.Kind
		gives             func(in, w [][]float64) []float64
	}{
		{"layers.0.input_layernorm", "number.value", "", func(in, w [][]float64) []float64 { return normed(in[0], w[0], 0.1) }},
		{"layers.0.attn_residual", "", "rows.zeros", func(in, _ [][]float64) []float64 { return make([]float64, len(in[0])) }},
		{"layers.0.input_layernorm", "", "elements.minus-infinity", func(in, _ [][]float64) []float64 { return slices.Repeat([]float64{math.Inf(-1)}, len(in[0])) }},
	} {
		m := model(t)
		f := named(t, m, planted(t, m, c.entry, 0, c.gives))
		if f.Mistake.Kind != c.mistake || f.Relation.Kind != c.relation {
			t.Errorf("%s: mistake %q, relation %q; want %q, %q", f.What, f.Mistake.Kind, f.Relation.Kind, c.mistake, c.relation)
		}
	}
}

// A relation says which rows the wrong rows are. It says nothing of rows that are zeros.
func TestARelationSaysWhereRowsComeFrom(t *testing.T) {
	width := listOf(t, "qwen3-tiny").Config.HiddenSize
	for _, c := range []struct {
		wrong func(y []float64)
		from  diagnose.Spots
		says  string
	}{
		{func(y []float64) { copy(y[width:2*width], y) }, "tokens=0", "rows are other rows of the same tensor (in layers.0.input_layernorm: tokens 1): those of tokens 0"},
		{func(y []float64) { copy(y[:width], y[2*width:]) }, "tokens=2", "rows are other rows of the same tensor (in layers.0.input_layernorm: tokens 0): those of tokens 2"},
		{func(y []float64) { clear(y[:width]) }, "", "rows are zeros (in layers.0.input_layernorm: tokens 0)"},
	} {
		m := model(t)
		f := named(t, m, planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 {
			y := normed(in[0], w[0], 1e-6)
			c.wrong(y)
			return y
		}))
		if f.Relation.From != c.from || !strings.HasSuffix(f.What, c.says) {
			t.Errorf("%q from %q, want %q from %q", f.What, f.Relation.From, c.says, c.from)
		}
	}
}

// A relation is read off the port's own tensor and makes no edit: it says nothing about another entry.
func TestARelationSaysNothingOfAnotherEntry(t *testing.T) {
	right := func(in, w [][]float64) []float64 { return normed(in[0], w[0], 1e-6) }
	width := listOf(t, "qwen3-tiny").Config.HiddenSize
	for kind, wrong := range map[diagnose.Kind]func(y []float64){
		"elements.infinite": func(y []float64) { copy(y[width:], slices.Repeat([]float64{math.Inf(1)}, width)) },
		"rows.zeros":        func(y []float64) { clear(y[width : 2*width]) },
		"rows.of-itself":    func(y []float64) { copy(y[width:2*width], y) },
	} {
		m := model(t)
		e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 {
			y := right(in, w)
			wrong(y)
			return y
		})
		f := named(t, m, e)
		edit := f.Edit()
		if f.Relation.Kind != kind || edit == nil {
			t.Fatalf("%q is %q", f.Text(), f.Relation.Kind)
		}
		for _, of := range []*diagnose.Entry{e, planted(t, m, "layers.2.input_layernorm", 0, right)} {
			if d, err := m.Apply(*edit, of); d != nil || err != nil {
				t.Errorf("%s has an edit: %v, %v", kind, d, err)
			}
		}
	}
}
