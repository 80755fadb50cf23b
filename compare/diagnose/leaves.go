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
	for _, look := range []func() error{s.exchanged, s.weights, s.inputs, s.stale} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// changed is a weight whose rows are changed as they are read.
type changed struct {
	program.Rows
	row func(x []float64)
}

func (w changed) Row(dst []float64, i int) error {
	err := w.Rows.Row(dst, i)
	w.row(dst)
	return err
}

// reordered is a weight with its rows in another order.
type reordered struct {
	program.Rows
	at func(i int) int
}

func (w reordered) Row(dst []float64, i int) error { return w.Rows.Row(dst, w.at(i)) }

// transposed is a square weight, held whole.
type transposed struct {
	n    int
	data []float64
}

func (w *transposed) Size() (rows, cols int) { return w.n, w.n }

func (w *transposed) Row(dst []float64, i int) error {
	for j := range dst {
		dst[j] = w.data[j*w.n+i]
	}
	return nil
}

// maxHeld bounds the elements of a weight that is held whole.
const maxHeld = 1 << 24

func transpose(w program.Rows) program.Rows {
	rows, cols := w.Size()
	if rows != cols || rows < 2 || rows*cols > maxHeld {
		return nil
	}
	t := &transposed{rows, make([]float64, rows*cols)}
	for i := range rows {
		if w.Row(t.data[i*cols:][:cols], i) != nil {
			return nil
		}
	}
	return t
}

// change is what may have become of a weight; make returns nil where it has no such.
type change struct {
	words string
	make  func(w program.Rows, model hooks.DType) program.Rows
}

// each changes elements one by one, and stores them in the model's dtype, or in float32.
func each(words string, stored bool, f func(x float64) float64) change {
	return change{words, func(w program.Rows, model hooks.DType) program.Rows {
		if !stored {
			model = hooks.F32
		}
		return changed{w, func(x []float64) {
			for i := range x {
				x[i] = floats.Round(model, f(x[i]))
			}
		}}
	}}
}

// quantised rounds each group of n elements of a row, 0 for all, to whole numbers up to most times a step of its own.
func quantised(words string, n int, most float64) change {
	return change{words, func(w program.Rows, model hooks.DType) program.Rows {
		group := n
		if _, cols := w.Size(); n == 0 {
			group = cols
		} else if cols%n != 0 {
			return nil
		}
		return changed{w, func(row []float64) {
			for at := 0; at < len(row); at += group {
				g := row[at:][:group]
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
		}}
	}}
}

// narrowed rounds to a narrower dtype.
func narrowed(d hooks.DType) change {
	return change{"is rounded to " + d.String(), func(w program.Rows, model hooks.DType) program.Rows {
		if model == d {
			return nil
		}
		return changed{w, func(x []float64) {
			for i := range x {
				x[i] = floats.Round(d, x[i])
			}
		}}
	}}
}

// woven reads blocks of rows as n rows of block/n, columns first: the rows of heads for the other rotary embedding.
func woven(block, n int) change {
	inner := block / n
	return change{
		fmt.Sprintf("has the rows of each head of %d in the order of the other rotary embedding (%d × %d)", block, n, inner),
		func(w program.Rows, _ hooks.DType) program.Rows {
			if rows, _ := w.Size(); rows%block != 0 {
				return nil
			}
			return reordered{w, func(i int) int {
				at := i % block
				return i - at + at%n*inner + at/n
			}}
		},
	}
}

// changes are those that a weight is tried with.
func (s *search) changes() []change {
	all := []change{
		{"is transposed", func(w program.Rows, _ hooks.DType) program.Rows { return transpose(w) }},
		each("is taken as 1+w", false, func(x float64) float64 { return 1 + x }),
		each("has 1 added, as one that is stored with the 1", true, func(x float64) float64 { return 1 + x }),
		each("has 1 taken off", true, func(x float64) float64 { return x - 1 }),
		each("has the opposite sign", true, func(x float64) float64 { return -x }),
		each("is 0", true, func(float64) float64 { return 0 }),
		each("is 1", true, func(float64) float64 { return 1 }),
		each("is its reciprocal", true, func(x float64) float64 { return 1 / x }),
		narrowed(hooks.BF16), narrowed(hooks.F16),
		quantised("is rounded to 8 bits by row", 0, 127), quantised("is rounded to 4 bits by row", 0, 7),
		quantised("is rounded to 8 bits in groups of 32", 32, 127), quantised("is rounded to 4 bits in groups of 32", 32, 7),
	}
	c := s.m.List.Config
	for _, n := range []int{2, c.HeadDim / 2} {
		if n > 1 && c.HeadDim%n == 0 && n < c.HeadDim {
			all = append(all, woven(c.HeadDim, n))
		}
	}
	var by []number
	for _, n := range []float64{2, 0.5, 4, 0.25, 8, 0.125} {
		by = append(by, number{value: n})
	}
	for _, n := range s.numbers {
		if n.value != 1 && !slices.ContainsFunc(by, func(o number) bool {
			return same(o.value, n.value) && o.words == "" && !strings.HasPrefix(n.words, "√hidden")
		}) {
			by = append(by, n)
		}
	}
	for _, n := range by {
		words := "is multiplied by " + short(n.value)
		if n.words != "" {
			words += " (" + n.words + ")"
		}
		all = append(all, each(words, true, func(x float64) float64 { return x * float64(float32(n.value)) }))
	}
	return all
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

// weights tries weights that were changed, and others of their shape.
func (s *search) weights() error {
	t := s.first.signed(s.m)
	changes := s.changes()
	for _, i := range leafSteps(t, program.Weight, program.Matrix) {
		at := t.Of(i)
		w := s.first.Weights[t.Steps[i].Index]
		for rank, c := range changes {
			h := hypothesis{
				class: program.Leaf, rank: rank,
				make: func(e *Entry) *program.Edited {
					return s.reweighted(e, at, func(k int) program.Rows { return c.make(e.Call.W[k], e.Call.DType) })
				},
				say: func(e *Entry) Name { return Name{What: Role(w.Name) + " " + c.words, Site: Role(w.Name)} },
			}
			if err := s.try(h); err != nil {
				return err
			}
		}
		if err := s.otherWeights(at, w, len(changes)); err != nil {
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
func (s *search) otherWeights(at program.Place, w order.Weight, rank int) error {
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
	for k, other := range s.shaped(w) {
		text := Role(other) + " is used, not " + Role(w.Name)
		h := hypothesis{
			class: program.Leaf, rank: rank + k, make: named(func(own string) string { return beside(other, own) }),
			say: func(*Entry) Name { return Name{What: text, Site: Role(w.Name)} },
		}
		if err := s.try(h); err != nil {
			return err
		}
	}
	return s.instances(rank, Role(w.Name), s.sameRole(w.Name), program.Leaf, func(other string) func(e *Entry) *program.Edited {
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

// sameRole lists the weights of the role of one, itself too.
func (s *search) sameRole(name string) []string {
	var all []string
	for i := range s.m.List.Entries {
		for _, o := range s.m.List.Entries[i].Weights {
			if Role(o.Name) == Role(name) && !slices.Contains(all, o.Name) {
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
	if len(others) < 2 {
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
	chosen := map[string]func(e *Entry) *program.Edited{}
	var words []string
	for _, name := range names {
		for _, other := range others {
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
		class: class, rank: rank, solved: len(names),
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
		for rank, other := range s.captured(own) {
			if err := s.try(s.reading(t.Of(i), rank, own, other, 0)); err != nil {
				return err
			}
		}
		if err := s.try(s.reading(t.Of(i), 1000, own, own, -1)); err != nil {
			return err
		}
		var same []string
		for k := range s.m.List.Entries {
			if e := &s.m.List.Entries[k]; Role(e.Name) == Role(own) {
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

// exchanged tries each two inputs in each other's place.
func (s *search) exchanged() error {
	t := s.first.signed(s.m)
	all := leafSteps(t, program.Input)
	for k, i := range all {
		for _, j := range all[:k] {
			a, b := t.Of(j), t.Of(i)
			text := fmt.Sprintf("%s and %s are exchanged", s.value(s.first, t.Result(j)), s.value(s.first, t.Result(i)))
			err := s.try(hypothesis{
				class: program.Swapped, rank: k,
				make: func(e *Entry) *program.Edited {
					t := e.signed(s.m)
					x, y := t.Copies(a), t.Copies(b)
					ed := e.Program.Edit()
					if len(x) != 1 || len(y) != 1 || !ed.Exchange(x[0], y[0]) {
						return nil
					}
					d, err := ed.End()
					if err != nil {
						return nil
					}
					return d
				},
				say: func(*Entry) Name { return Name{What: text} },
			})
			if err != nil {
				return err
			}
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

// tensor is a captured tensor that was computed before an entry.
func (s *search) tensor(e *Entry, name string, pass int) (program.Value, bool) {
	n := order.Node{Entry: s.m.List.Index(name), Pass: e.Node.Pass + pass}
	if n.Entry < 0 || n.Pass < 0 || pass == 0 && n.Entry >= e.Node.Entry || !s.m.Has(n) {
		return program.Value{}, false
	}
	v, err := s.m.Read(n)
	return v, err == nil
}

// reads has a captured tensor in place of what is read at a place; nil where there is none of as many elements.
func (s *search) reads(e *Entry, at program.Place, name string, pass int) *program.Edited {
	t := e.signed(s.m)
	all := t.Copies(at)
	n := s.m.List.Index(name)
	if len(all) == 0 || n < 0 || e.Node.Pass+pass < 0 {
		return nil
	}
	size := product(t.Steps[all[0]].Shape)
	if product(s.m.List.Entries[n].Size(s.m.Passes[e.Node.Pass+pass], s.m.List.Config.SlidingWindow)) != size {
		return nil
	}
	v, ok := s.tensor(e, name, pass)
	if !ok || len(v.Data) != size {
		return nil
	}
	ed := e.Program.Edit()
	for _, i := range all {
		if slices.Equal(v.Shape, t.Steps[i].Shape) {
			ed.OtherInput(i, v)
			continue
		}
		other, some := ed.Other(v), false
		for k := range t.Steps { // its axes may be in another order: as its readers see them
			for a, arg := range t.Steps[k].Args {
				if t.Source(arg) == i {
					if some = ed.ReadAs(k, a, other); !some {
						return nil
					}
				}
			}
		}
		if !some {
			return nil
		}
	}
	d, err := ed.End()
	if err != nil {
		return nil
	}
	return d
}
