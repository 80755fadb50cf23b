package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// packed looks at weights that read one tensor as parts of one matrix: a file has it one part behind the other, and a port takes it as
// groups of rows that each have all parts, or the other way round.
func (s *search) packed() error {
	for _, i := range leafSteps(s.first.signed(s.m), program.Matrix) {
		w := s.first.Weights[s.first.Program.Steps[i].Index]
		parts := s.beside(w.Name)
		if len(parts) < 2 || len(s.first.Program.Of(program.Affine)) != 1 {
			continue
		}
		var names []string
		for _, e := range parts {
			names = append(names, Module(e.Weights[0].Name))
		}
		for _, n := range s.groups(parts) {
			for _, split := range []bool{false, true} {
				m := Mistake{Kind: "weight.packed-read-as-groups", Of: Term{Kind: AName, Name: listed(names)}, N: n, Place: Role(w.Name)}
				if split {
					m.Kind = "weight.groups-read-as-packed"
				}
				if err := s.try(hypothesis{
					class: program.Leaf,
					make:  func(e *Entry) *program.Edited { return s.repacked(e, n, split) },
					say:   func(*Entry) Name { return m.name() },
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// beside are the linear operations that read what the one with a weight reads.
func (s *subject) beside(weight string) []*order.Entry {
	var of *order.Entry
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if len(e.Weights) > 0 && e.Weights[0].Name == weight && len(e.Inputs) == 1 {
			of = e
		}
	}
	if of == nil {
		return nil
	}
	var all []*order.Entry
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if len(e.Weights) == 0 || len(e.Weights) != len(of.Weights) || len(e.Inputs) != 1 || e.Inputs[0].Name != of.Inputs[0].Name {
			continue
		}
		if len(e.Weights[0].Shape) == 2 && e.Weights[0].Shape[1] == of.Weights[0].Shape[1] {
			all = append(all, e)
		}
	}
	return all
}

// groups are how many groups of rows a matrix of some parts may have: one for each head, or for each row of the smallest.
func (s *search) groups(parts []*order.Entry) []int {
	c := s.m.List.Config
	least := parts[0].Weights[0].Shape[0]
	for _, e := range parts {
		least = min(least, e.Weights[0].Shape[0])
	}
	var all []int
	for _, n := range []int{c.NumKVHeads, c.NumHeads, least, least / 2, 2, 4} {
		ok := n > 1 && !slices.Contains(all, n)
		for _, e := range parts {
			ok = ok && e.Weights[0].Shape[0]%n == 0
		}
		if ok {
			all = append(all, n)
		}
	}
	return all
}

// repacked has the rows that an entry's linear operation takes of a matrix that is read otherwise than it is.
func (s *subject) repacked(e *Entry, groups int, split bool) *program.Edited {
	t := e.signed(s.m)
	ed := e.Program.Edit()
	for k, w := range e.Weights {
		at := slices.IndexFunc(t.Steps, func(st program.Step) bool {
			return (st.Prim == program.Matrix || st.Prim == program.Weight) && st.Index == k
		})
		parts := s.beside(e.Weights[0].Name)
		if at < 0 || len(parts) < 2 {
			return nil
		}
		of := &joint{groups: groups, split: split}
		for n, p := range parts {
			if k >= len(p.Weights) {
				return nil
			}
			rows, err := s.m.Weights(p.Weights[k])
			if s.failed(err) {
				return nil
			}
			if of.parts = append(of.parts, rows); p.Weights[k].Name == w.Name {
				of.own = n
			}
		}
		var other program.Rows = of
		if len(w.Shape) == 1 {
			other = bias{of}
		}
		if other = sameRows(e.Call.W[k], other); other == nil {
			return nil
		}
		ed.OtherWeight(at, other)
	}
	return ended(ed)
}

// joint are the rows that one part takes of a matrix of several.
type joint struct {
	parts  []program.Rows
	own    int
	groups int
	split  bool
}

func (j *joint) Size() (rows, cols int) { return j.parts[j.own].Size() }

func (j *joint) Row(dst []float64, i int) error {
	part, row := j.at(i, func(k int) int { n, _ := j.parts[k].Size(); return n })
	return j.parts[part].Row(dst, row)
}

// at is where row i of the own part comes from.
func (j *joint) at(i int, rows func(part int) int) (part, row int) {
	whole, before, group, inside := 0, 0, 0, 0
	for k := range j.parts {
		if k < j.own {
			before += rows(k)
		}
		whole += rows(k)
	}
	each := whole / j.groups
	if j.split { // the file has groups, the port reads parts
		c := before + i
		group, inside = c/each, c%each
		for k := range j.parts {
			n := rows(k) / j.groups
			if inside < n {
				return k, group*n + inside
			}
			inside -= n
		}
		return j.own, i
	}
	n := rows(j.own) / j.groups
	c := i/n*each + before/j.groups + i%n
	for k := range j.parts {
		if c < rows(k) {
			return k, c
		}
		c -= rows(k)
	}
	return j.own, i
}

// bias is the bias of a joint matrix.
type bias struct{ *joint }

func (b bias) Row(dst []float64, _ int) error {
	values := make([][]float64, len(b.parts))
	for k, p := range b.parts {
		_, n := p.Size()
		values[k] = make([]float64, n)
		if err := p.Row(values[k], 0); err != nil {
			return err
		}
	}
	for i := range dst {
		part, at := b.at(i, func(k int) int { return len(values[k]) })
		dst[i] = values[part][at]
	}
	return nil
}

// cuts looks at weights that read one tensor as parts of one matrix that are cut at the wrong place of it: the parts come in another order,
// or one begins where another does.
func (s *search) cuts() error {
	for _, i := range leafSteps(s.first.signed(s.m), program.Matrix) {
		w := s.listed(s.first.Weights[s.first.Program.Steps[i].Index])
		parts := s.beside(w.Name)
		if len(parts) < 2 || len(parts) > 4 || len(s.first.Program.Of(program.Affine)) != 1 {
			continue
		}
		own := slices.IndexFunc(parts, func(e *order.Entry) bool { return e.Weights[0].Name == w.Name })
		right := make([]int, len(parts))
		least, before, whole := parts[0].Weights[0].Shape[0], 0, 0
		for k, e := range parts {
			n := e.Weights[0].Shape[0]
			if right[k] = k; k < own {
				before += n
			}
			least, whole = min(least, n), whole+n
		}
		rows := w.Shape[0]
		seen := map[Mistake]bool{}
		try := func(order []int, start int, kind Kind, which func(bias bool) bool) error {
			m := Mistake{Kind: kind, Of: moduleTerm(w.Name), Runs: piecesOf(parts, order, start, rows), Place: Role(w.Name)}
			if seen[m] || start == before && slices.Equal(order[:own+1], right[:own+1]) {
				return nil
			}
			seen[m] = true
			return s.try(hypothesis{
				class: program.Leaf, make: func(e *Entry) *program.Edited { return s.recut(e, order, start, which) },
				say: func(*Entry) Name { return m.name() },
			})
		}
		for _, which := range []struct {
			kind Kind
			of   func(bias bool) bool
		}{{"weight.cut-elsewhere-with-bias", func(bool) bool { return true }}, {weightCut, func(b bool) bool { return !b }}, {"bias.cut-elsewhere", func(b bool) bool { return b }}} {
			if len(s.first.Weights) == 1 && which.kind != weightCut {
				continue
			}
			for start := 0; start+rows <= whole; start += least {
				if err := try(right, start, which.kind, which.of); err != nil {
					return err
				}
			}
			for _, order := range permutations(right) {
				if err := try(order, before, which.kind, which.of); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// weightCut is the mistake of a weight without a bias, or with the right one.
const weightCut Kind = "weight.cut-elsewhere"

// moduleTerm is the term of the module of a weight.
func moduleTerm(weight string) Term {
	return Term{Kind: AName, Name: strings.TrimSuffix(Role(weight), ".weight")}
}

// piecesOf says of which parts some rows are, when the parts come in an order.
func piecesOf(parts []*order.Entry, sequence []int, start, rows int) Runs {
	var all []Run
	at := 0
	for _, k := range sequence {
		n := parts[k].Weights[0].Shape[0]
		from, to := max(start-at, 0), min(start+rows-at, n)
		if from < to {
			run := Run{From: from, To: to, Is: from, Of: moduleTerm(parts[k].Weights[0].Name).Name}
			if to-from == n {
				run.Of += wholeOf
			}
			all = append(all, run)
		}
		at += n
	}
	return makeRuns(all...)
}

// permutations are the other orders of a few numbers.
func permutations(of []int) (all [][]int) {
	var walk func(begun []int)
	walk = func(begun []int) {
		if len(begun) == len(of) {
			if !slices.Equal(begun, of) {
				all = append(all, slices.Clone(begun))
			}
			return
		}
		for _, k := range of {
			if !slices.Contains(begun, k) {
				walk(append(begun, k))
			}
		}
	}
	walk(nil)
	return all
}

// sequence are rows of several matrices, one behind the other, from a start on.
type sequence struct {
	parts       []program.Rows
	start, rows int
	bias        bool // the parts are one row each, of which these are the elements
}

func (q *sequence) Size() (rows, cols int) {
	if q.bias {
		return 1, q.rows
	}
	_, cols = q.parts[0].Size()
	return q.rows, cols
}

func (q *sequence) Row(dst []float64, i int) error {
	if !q.bias {
		at := q.start + i
		for _, p := range q.parts {
			if n, _ := p.Size(); at < n {
				return p.Row(dst, at)
			} else {
				at -= n
			}
		}
		return nil
	}
	var all []float64
	for _, p := range q.parts {
		_, n := p.Size()
		row := make([]float64, n)
		if err := p.Row(row, 0); err != nil {
			return err
		}
		all = append(all, row...)
	}
	copy(dst, all[q.start:])
	return nil
}

// recut has the rows of a linear operation from another place of the matrix of several.
func (s *subject) recut(e *Entry, order []int, start int, which func(bias bool) bool) *program.Edited {
	t := e.signed(s.m)
	ed := e.Program.Edit()
	parts := s.beside(e.Weights[0].Name)
	if len(parts) != len(order) {
		return nil
	}
	for k, w := range e.Weights {
		at := slices.IndexFunc(t.Steps, func(st program.Step) bool {
			return (st.Prim == program.Matrix || st.Prim == program.Weight) && st.Index == k
		})
		bias := len(w.Shape) == 1
		if at < 0 {
			return nil
		} else if !which(bias) {
			continue
		}
		q := &sequence{start: start, rows: s.listed(w).Shape[0], bias: bias}
		for _, n := range order {
			if k >= len(parts[n].Weights) {
				return nil
			}
			rows, err := s.m.Weights(parts[n].Weights[k])
			if s.failed(err) {
				return nil
			}
			q.parts = append(q.parts, rows)
		}
		other := sameRows(e.Call.W[k], q)
		if other == nil {
			return nil
		}
		ed.OtherWeight(at, other)
	}
	return ended(ed)
}
