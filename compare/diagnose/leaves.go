package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// leaves looks at what the program reads: weights, and captured tensors.
func (s *search) leaves() error {
	for _, look := range []func() error{s.weights, s.inputs} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// dense is a weight that was changed, held whole.
type dense struct {
	rows, cols int
	data       []float64
}

func (w *dense) Size() (rows, cols int) { return w.rows, w.cols }

func (w *dense) Row(dst []float64, i int) error {
	copy(dst, w.data[i*w.cols:][:w.cols])
	return nil
}

// read holds a weight whole.
func read(w program.Rows) (*dense, error) {
	rows, cols := w.Size()
	d := &dense{rows, cols, make([]float64, rows*cols)}
	for i := range rows {
		if err := w.Row(d.data[i*cols:][:cols], i); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// change is what may have become of a weight.
type change struct {
	words string
	make  func(w *dense, model hooks.DType) *dense // nil where it has no such
}

// each changes elements one by one, and stores them in the model's dtype.
func each(f func(x float64) float64) func(w *dense, model hooks.DType) *dense {
	return func(w *dense, model hooks.DType) *dense {
		out := &dense{w.rows, w.cols, slices.Clone(w.data)}
		for i, x := range out.data {
			out.data[i] = floats.Round(model, f(x))
		}
		return out
	}
}

// quantised rounds each group of n elements of a row, 0 for all, to whole numbers up to most times a step of its own.
func quantised(n int, most float64) func(w *dense, model hooks.DType) *dense {
	return func(w *dense, model hooks.DType) *dense {
		out := &dense{w.rows, w.cols, slices.Clone(w.data)}
		group := n
		if n == 0 {
			group = w.cols
		}
		if w.cols%group != 0 {
			return nil
		}
		for at := 0; at < len(out.data); at += group {
			g := out.data[at:][:group]
			top := 0.0
			for _, x := range g {
				top = max(top, math.Abs(x))
			}
			step := float64(float32(top / most))
			for i, x := range g {
				if step > 0 {
					g[i] = floats.Round(model, float64(float32(math.RoundToEven(float64(float32(x/step)))*step)))
				}
			}
		}
		return out
	}
}

// narrowed rounds to a narrower dtype.
func narrowed(d hooks.DType) func(w *dense, model hooks.DType) *dense {
	return func(w *dense, model hooks.DType) *dense {
		if model == d {
			return nil
		}
		return each(func(x float64) float64 { return floats.Round(d, x) })(w, model)
	}
}

var changes = []change{
	{"is transposed", func(w *dense, _ hooks.DType) *dense {
		if w.rows != w.cols || w.rows == 1 {
			return nil
		}
		out := &dense{w.rows, w.cols, make([]float64, len(w.data))}
		for i := range w.rows {
			for j := range w.cols {
				out.data[j*w.cols+i] = w.data[i*w.cols+j]
			}
		}
		return out
	}},
	{"has 1 added to it, as one that is stored with the 1", each(func(x float64) float64 { return x + 1 })},
	{"has 1 taken off", each(func(x float64) float64 { return x - 1 })},
	{"has the opposite sign", each(func(x float64) float64 { return -x })},
	{"is 0", each(func(float64) float64 { return 0 })},
	{"is 1", each(func(float64) float64 { return 1 })},
	{"is its reciprocal", each(func(x float64) float64 { return 1 / x })},
	{"is doubled", each(func(x float64) float64 { return 2 * x })},
	{"is halved", each(func(x float64) float64 { return x / 2 })},
	{"is rounded to bfloat16", narrowed(hooks.BF16)},
	{"is rounded to float16", narrowed(hooks.F16)},
	{"is rounded to 8 bits by row", quantised(0, 127)},
	{"is rounded to 4 bits by row", quantised(0, 7)},
	{"is rounded to 8 bits in groups of 32", quantised(32, 127)},
	{"is rounded to 4 bits in groups of 32", quantised(32, 7)},
}

// leafSteps are the first steps of weights, or of inputs.
func leafSteps(t *program.Parts, prims ...program.Prim) []int {
	var all []int
	for _, i := range t.Firsts() {
		if slices.Contains(prims, t.Steps[i].Prim) {
			all = append(all, i)
		}
	}
	return all
}

// maxHeld bounds the elements of a weight that is held whole to be changed.
const maxHeld = 1 << 24

// weights tries weights that were changed, and others of their shape.
func (s *search) weights() error {
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, program.Weight, program.Matrix) {
		at := t.Of(i)
		w := s.first.Weights[t.Steps[i].Index]
		for rank, c := range changes {
			if product(w.Shape) > maxHeld {
				break
			}
			h := hypothesis{
				class: program.Leaf, rank: rank,
				make: func(e *Entry) *program.Edited {
					return s.reweighted(e, at, func(k int) program.Rows {
						d, err := read(e.Call.W[k])
						if err != nil {
							return nil
						}
						if d = c.make(d, e.Call.DType); d == nil {
							return nil
						}
						return d
					})
				},
				say: func(e *Entry) Name { return Name{What: Role(w.Name) + " " + c.words, Site: Role(w.Name)} },
			}
			if err := s.try(h); err != nil {
				return err
			}
		}
		if err := s.otherWeights(at, w); err != nil {
			return err
		}
	}
	return nil
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// reweighted has another weight at a place: of gives it, by its number in the program.
func (s *search) reweighted(e *Entry, at program.Place, of func(k int) program.Rows) *program.Edited {
	t := e.signed(s.m)
	ed := e.Program.Edit()
	all := t.Copies(at)
	for _, i := range all {
		w := of(e.Program.Steps[i].Index)
		if w == nil {
			return nil
		}
		ed.OtherWeight(i, w)
	}
	if len(all) == 0 {
		return nil
	}
	d, err := ed.End()
	if err != nil {
		return nil
	}
	return d
}

// otherWeights tries other weights of the shape: of the same layer, of none, and for each entry by itself those of the same role in
// other layers.
func (s *search) otherWeights(at program.Place, w order.Weight) error {
	named := func(name func(own string) string) func(e *Entry) *program.Edited {
		return func(e *Entry) *program.Edited {
			return s.reweighted(e, at, func(k int) program.Rows {
				own := e.Weights[k]
				other := order.Weight{Name: name(own.Name), Shape: own.Shape}
				if other.Name == own.Name || !s.hasWeight(other) {
					return nil
				}
				rows, err := s.m.Weights(other)
				if err != nil {
					return nil
				}
				a, b := rows.Size()
				if x, y := e.Call.W[k].Size(); a != x || b != y { // some rows alone are kept of it
					return nil
				}
				return rows
			})
		}
	}
	for rank, other := range s.shaped(w) {
		text := Role(other) + " is used, not " + Role(w.Name)
		h := hypothesis{
			class: program.Leaf, rank: len(changes) + rank, make: named(func(own string) string { return beside(other, own) }),
			say: func(*Entry) Name { return Name{What: text, Site: Role(w.Name)} },
		}
		if err := s.try(h); err != nil {
			return err
		}
	}
	return s.instances(len(changes), Role(w.Name), s.sameRole(w.Name), program.Leaf, func(other string) func(e *Entry) *program.Edited {
		return named(func(string) string { return other })
	})
}

// hasWeight reports whether the order has a weight of a name and shape.
func (s *search) hasWeight(w order.Weight) bool {
	for i := range s.m.List.Entries {
		for _, o := range s.m.List.Entries[i].Weights {
			if o.Name == w.Name {
				return slices.Equal(o.Shape, w.Shape)
			}
		}
	}
	return false
}

// shaped lists a weight of each other role of a shape: of the layer where it has a layer.
func (s *search) shaped(w order.Weight) []string {
	var all []string
	seen := map[string]bool{Role(w.Name): true}
	for i := range s.m.List.Entries {
		for _, o := range s.m.List.Entries[i].Weights {
			if slices.Equal(o.Shape, w.Shape) && !seen[Role(o.Name)] {
				seen[Role(o.Name)] = true
				all = append(all, o.Name)
			}
		}
	}
	return all
}

// sameRole lists the weights of the same role as one.
func (s *search) sameRole(name string) []string {
	var all []string
	for i := range s.m.List.Entries {
		for _, o := range s.m.List.Entries[i].Weights {
			if Role(o.Name) == Role(name) && o.Name != name && !slices.Contains(all, o.Name) {
				all = append(all, o.Name)
			}
		}
	}
	return all
}

// beside is a name in the layer of another.
func beside(name, own string) string {
	layer, ok := layerOf(own)
	if _, has := layerOf(name); !ok || !has {
		return name
	}
	return layer + module(name)
}

// layerOf is the beginning of a name in a layer: "layers.3.".
func layerOf(name string) (string, bool) {
	m := module(name)
	return strings.TrimSuffix(name, m), m != name
}

// instances looks for what entries read of another layer, or stream: each entry by itself, all of its passes together.
func (s *search) instances(rank int, role string, others []string, class program.Class, with func(other string) func(e *Entry) *program.Edited) error {
	if len(others) == 0 {
		return nil
	}
	byName := map[string][]*Entry{}
	var names []string
	for _, e := range s.entries {
		name := s.m.List.Entries[e.Node.Entry].Name
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], e)
	}
	all := slices.Clone(others)
	chosen := map[string]func(e *Entry) *program.Edited{}
	var words []string
	for _, name := range names {
		candidates := all
		if _, ok := layerOf(name); ok { // that of the first entry was not its own
			candidates = append(slices.Clone(all), s.sameRole(all[0])...)
		}
		for _, other := range candidates {
			h := hypothesis{make: with(other)}
			s.tried++
			good := true
			for _, e := range byName[name] {
				may, err := s.may(h, e.Small())
				if err != nil {
					return err
				}
				if good = may; !good {
					break
				}
			}
			if good {
				chosen[name] = h.make
				words = append(words, name+" has that of "+other)
				break
			}
		}
		if chosen[name] == nil {
			return nil
		}
	}
	text := role + " is that of another layer: "
	if _, ok := layerOf(names[0]); !ok {
		text = role + " is another one: "
	}
	h := hypothesis{
		class: class, rank: rank,
		make: func(e *Entry) *program.Edited { return chosen[s.m.List.Entries[e.Node.Entry].Name](e) },
		say:  func(*Entry) Name { return Name{What: text + strings.Join(words, "; "), Site: role} },
	}
	return s.try(h)
}

// inputs tries other captured tensors in place of those that the program reads.
func (s *search) inputs() error {
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, program.Input) {
		n := s.first.Inputs[t.Steps[i].Index]
		own := s.m.List.Entries[n.Entry].Name
		places := []program.Place{t.Of(i)}
		for k := range t.Steps {
			for a, v := range t.Steps[k].Args {
				if t.Source(v) == i && len(v.Shape()) > 1 {
					places = append(places, program.Place{Step: t.Of(k).Step, Arg: a})
				}
			}
		}
		for rank, other := range s.captured(own) {
			for _, at := range places {
				h := s.reading(at, rank, own, other, 0)
				if err := s.try(h); err != nil {
					return err
				}
			}
		}
		if err := s.try(s.reading(t.Of(i), 1000, own, own, -1)); err != nil {
			return err
		}
		var same []string
		for k := range s.m.List.Entries {
			if e := &s.m.List.Entries[k]; Role(e.Name) == Role(own) && e.Name != own {
				same = append(same, e.Name)
			}
		}
		if err := s.instances(1001, Role(own), same, program.InputOf, func(other string) func(e *Entry) *program.Edited {
			return func(e *Entry) *program.Edited { return s.reads(e, t.Of(i), other, 0) }
		}); err != nil {
			return err
		}
	}
	return nil
}

// reading is the hypothesis that a place reads another captured tensor.
func (s *search) reading(at program.Place, rank int, own, other string, pass int) hypothesis {
	text := fmt.Sprintf("reads %s, not %s", Role(other), Role(own))
	if pass != 0 {
		text = fmt.Sprintf("reads %s of the pass before", Role(own))
	}
	return hypothesis{
		class: program.InputOf, rank: rank,
		make: func(e *Entry) *program.Edited {
			return s.reads(e, at, beside(other, s.m.List.Entries[e.Node.Entry].Name), pass)
		},
		say: func(e *Entry) Name { return Name{What: text, Site: Role(own)} },
	}
}

// captured lists tensors that could be read in place of one: one of each other role.
func (s *search) captured(own string) []string {
	var all []string
	seen := map[string]bool{Role(own): true}
	target := s.first.Node.Entry
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if k < target && !seen[Role(e.Name)] && s.m.Has(order.Node{Entry: k, Pass: s.first.Node.Pass}) {
			seen[Role(e.Name)] = true
			all = append(all, e.Name)
		}
	}
	return all
}

// reads has a captured tensor in place of what is read at a place; nil where there is none of the shape.
func (s *search) reads(e *Entry, at program.Place, name string, pass int) *program.Edited {
	n := order.Node{Entry: s.m.List.Index(name), Pass: e.Node.Pass + pass}
	if n.Entry < 0 || n.Pass < 0 || n == e.Node || pass == 0 && n.Entry >= e.Node.Entry || !s.m.Has(n) || slices.Contains(e.Inputs, n) && pass != 0 {
		return nil
	}
	t := e.signed(s.m)
	all := t.Copies(at)
	if len(all) == 0 {
		return nil
	}
	want := t.Steps[all[0]].Shape
	if at.Arg >= 0 {
		want = t.Steps[all[0]].Args[at.Arg].Shape()
	}
	size := product(want)
	if entry := &s.m.List.Entries[n.Entry]; product(entry.Size(s.m.Passes[n.Pass], s.m.List.Config.SlidingWindow)) != size {
		return nil
	}
	v, err := s.m.Read(n)
	if err != nil || len(v.Data) != size {
		return nil
	}
	ed := e.Program.Edit()
	for _, i := range all {
		if at.Arg < 0 {
			if !slices.Equal(v.Shape, want) {
				return nil
			}
			ed.OtherInput(i, v)
			continue
		}
		if !ed.ReadAs(i, at.Arg, ed.Other(v)) {
			return nil
		}
	}
	d, err := ed.End()
	if err != nil {
		return nil
	}
	return d
}
