package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	leastRow   = 4       // different numbers of a row that is looked for in other tensors
	mostRows   = 1 << 14 // rows that are looked for
	mostLooked = 1 << 26 // elements in which the rows are looked for
)

// statement is the claim that some entries have a relation. It gives these entries the port's own tensors, and gives nothing for further entries.
type statement struct {
	Relation
	of     []*Entry
	solved int
	exact  bool // see [Row.Exact]
}

// state judges a statement. The statement gives the port's value for explained elements, too: some order of summation gives that value.
func (s *search) state(r statement) error {
	return s.try(hypothesis{
		class: edit.InputOf, statement: &r, solved: r.solved, exact: r.exact,
	})
}

// edit makes the port's own tensor the result of an entry of the statement.
func (r *statement) edit(e *Entry) *program.Edited {
	y, _ := e.Target()
	if !slices.Contains(r.of, e) || len(y) != e.elements() {
		return nil
	}
	return given(e, program.Value{Data: slices.Clone(y), Bound: make([]float64, len(y))})
}

// notFinite checks whether all unexplained elements are NaN or infinite: memory was not written, or a number is too large for its type.
func notFinite(s *search) error {
	nan, up, down := false, false, false
	var of []*Entry
	for _, e := range s.entries {
		y, _ := e.Target()
		for _, i := range e.Left {
			if y[i]-y[i] == 0 {
				return nil
			}
			nan, up, down = nan || y[i] != y[i], up || math.IsInf(y[i], 1), down || math.IsInf(y[i], -1)
		}
		of = append(of, e, e.Small())
	}
	r := Relation{Kind: "elements.infinite", At: makeSpots(spotsOf(s, s.first.Program.Out.Shape, s.first.Left)...)}
	switch {
	case nan && (up || down):
		r.Kind = "elements.nan-or-infinite"
	case nan:
		r.Kind = "elements.nan"
	case down && !up:
		r.Kind = "elements.minus-infinity"
	}
	return s.state(statement{Relation: r, of: of, exact: true})
}

// relatedRows looks for the unexplained rows in captured tensors: in the entry itself, in its role, and in other tensors, of this pass and the pass
// before.
func relatedRows(s *search) error {
	if s.first != s.entries[0] {
		return nil
	}
	rows, n := map[*Entry][]int{}, 0
	for _, e := range s.entries {
		if rows[e] = leftRows(e); len(rows[e]) == 0 {
			return nil
		}
		n += len(rows[e])
	}
	if n > mostRows || s.first.Program.Out.Last() < leastRow {
		return nil
	}
	looked := 0
	for _, from := range relatives(s) {
		before := len(s.found)
		if err := relate(s, from, rows, &looked); err != nil || looked > mostLooked || len(s.found) > before { // the same rows may stand elsewhere, too
			return err
		}
	}
	return nil
}

// movedRows runs relatedRows early for an operation that computes nothing, before a search solves a number of a formula.
func movedRows(s *search) error {
	if !movesOnly(s) {
		return nil
	}
	return relatedRows(s)
}

// zeroRows checks whether the entries are all zeros. It runs before a search solves a number, or takes a difference, that happens to give zeros.
func zeroRows(s *search) error {
	rows := map[*Entry][]int{}
	for _, e := range s.entries {
		y, _ := e.Target()
		if slices.ContainsFunc(y, func(v float64) bool { return v != 0 }) {
			return nil
		}
		rows[e] = leftRows(e)
	}
	looked := 0
	return relate(s, relative{role: zeroRole}, rows, &looked)
}

// relate tries whether the unexplained rows are rows of a role.
func relate(s *search, from relative, rows map[*Entry][]int, looked *int) error {
	r := statement{of: s.entries, exact: from.role == zeroRole}
	var of rowSources
	for _, e := range s.entries {
		found, all := rowsAre(s.subject, e, rows[e], from, looked)
		if !all || s.err != nil || *looked > mostLooked {
			return s.err
		}
		if e == s.first {
			of = found
		}
		r.solved += len(rows[e])
	}
	r.Relation = relationOf(s, from, rows)
	if row := catalogue()[r.Kind]; strings.Contains(row.Words, "{from}") {
		r.From = of.spots(s)
	}
	return s.state(r)
}

// zeroRole stands in place of a role if rows are zeros.
const zeroRole = "zeros"

// relative is a role in which rows are looked for. pass is relative to the pass of the entry.
type relative struct {
	role string
	pass int
	own  bool // the entry itself
}

// relatives lists the roles in which rows are looked for: the entry itself first, then zeros, the inputs, the entry's role, and all other roles.
func relatives(s *search) []relative {
	own := order.NameOf(s.m.List.Entries[s.first.Node.Entry].Name).Role()
	all := []relative{{role: own, own: true}, {role: zeroRole}}
	add := func(role string, pass int) {
		if r := (relative{role: role, pass: pass}); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, n := range s.first.Inputs {
		add(order.NameOf(s.m.List.Entries[n.Entry].Name).Role(), n.Pass-s.first.Node.Pass)
	}
	add(own, 0)
	add(own, -1)
	for k := range s.m.List.Entries {
		add(order.NameOf(s.m.List.Entries[k].Name).Role(), 0)
	}
	for k := range s.m.List.Entries {
		add(order.NameOf(s.m.List.Entries[k].Name).Role(), -1)
	}
	return all
}

// leftRows lists the rows, along the last axis, with unexplained elements.
func leftRows(e *Entry) []int {
	var all []int
	width := e.Program.Out.Last()
	for _, i := range e.Left {
		if r := i / width; !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// rowsAre finds each of the given rows of the trace's tensor in the tensors of a role, to the bit. all reports whether the tensors have every row.
func rowsAre(s *subject, e *Entry, rows []int, from relative, looked *int) (found rowSources, all bool) {
	y, _ := e.Target()
	width := e.Program.Out.Last()
	missing := map[uint64][]int{} // rows by their first elements
	for _, r := range rows {
		row := y[r*width:][:width]
		if n := distinct(row); from.role != zeroRole && n < leastRow || from.role == zeroRole && (n > 1 || row[0] != 0) {
			return nil, false
		}
		missing[begins(row)] = append(missing[begins(row)], r)
	}
	if from.role == zeroRole {
		return nil, true
	}
	found = rowSources{}
	look := func(n order.Node, shape []int, data []float64, skip []int) {
		for at := 0; at+width <= len(data) && len(missing) > 0; at += width {
			row := data[at:][:width]
			if slices.Contains(skip, at/width) {
				continue
			}
			key := begins(row)
			left := slices.DeleteFunc(missing[key], func(r int) bool {
				same := slices.Equal(y[r*width:][:width], row)
				if same {
					found[r] = rowSource{n, shape, at / width}
				}
				return same
			})
			if len(left) > 0 {
				missing[key] = left
			} else {
				delete(missing, key)
			}
		}
	}
	if from.own {
		*looked += len(y)
		look(e.Node, e.Program.Out.Shape, y, rows)
		return found, len(missing) == 0
	}
	pass := e.Node.Pass + from.pass
	for k := range s.m.List.Entries {
		n := order.Node{Entry: k, Pass: pass}
		if pass < 0 || order.NameOf(s.m.List.Entries[k].Name).Role() != from.role || n == e.Node || from.pass == 0 && k > e.Node.Entry || !s.m.Has(n) {
			continue
		}
		v, err := s.m.Read(n)
		if s.failed(err) {
			return nil, false
		}
		if *looked += len(v.Data); *looked > mostLooked {
			return nil, false
		}
		look(n, v.Shape, v.Data, nil)
	}
	return found, len(missing) == 0
}

// distinct counts the different numbers of a row, up to [leastRow]. A row with few different numbers, such as probabilities of 0 and 1, equals rows
// of many tensors.
func distinct(row []float64) int {
	var seen []float64
	for _, x := range row {
		if !slices.Contains(seen, x) {
			if seen = append(seen, x); len(seen) == leastRow {
				break
			}
		}
	}
	return len(seen)
}

// begins tells rows apart by two of their elements.
func begins(row []float64) uint64 {
	return math.Float64bits(row[0])*31 ^ math.Float64bits(row[len(row)-1])
}

// operationsSince lists the kinds of the operations between a role and the entry, the entry's own operation last. Rows of the role were handed on
// past these operations. The list is nil if the entry is not computed from the role.
func operationsSince(s *search, role string) []string {
	type way struct {
		entry int
		kinds []string
	}
	seen := map[int]bool{}
	for ways := []way{{s.first.Node.Entry, nil}}; len(ways) > 0; ways = ways[1:] {
		w := ways[0]
		e := &s.m.List.Entries[w.entry]
		if e.Op == nil || seen[w.entry] || len(w.kinds) == mostSince {
			continue
		}
		seen[w.entry] = true
		kinds := append([]string{e.Op.Kind()}, w.kinds...)
		for _, r := range e.Inputs {
			if order.NameOf(r.Name).Role() == role {
				return kinds
			}
			ways = append(ways, way{s.m.List.Index(r.Name), kinds})
		}
	}
	return nil
}

// mostSince is the largest number of operations that rows may have been handed on past.
const mostSince = 3

// repeats returns an index of an axis at which all rows of a given index are found again, in the same places; −1 without such an index.
func repeats(e *Entry, axis, index int) int {
	y, _ := e.Target()
	shape := e.Program.Out.Shape
	inner, n := program.Size(shape[axis+1:]), shape[axis]
	for other := range n {
		same := other != index
		for at := 0; same && at < len(y); at += n * inner {
			same = slices.Equal(y[at+index*inner:][:inner], y[at+other*inner:][:inner])
		}
		if same {
			return other
		}
	}
	return -1
}

// relationOf makes the relation of the unexplained rows to a role.
func relationOf(s *search, from relative, rows map[*Entry][]int) Relation {
	r := Relation{Kind: "rows.of-another", Place: from.role, By: Term{Kind: RowsOf, Name: from.role, Before: from.pass < 0}}
	for e, of := range rows {
		r.N, r.M = r.N+len(of), r.M+e.elements()/e.Program.Out.Last()
	}
	own := s.m.List.Entries[s.first.Node.Entry].Name
	shape := s.first.Program.Out.Shape
	spots := spotsOf(s, shape[:len(shape)-1], rows[s.first])
	r.At = makeSpots(spots...)
	axis, index := -1, -1 // the only index of the only axis, if there is just one
	if len(spots) == 1 && len(spots[0].at) == 1 {
		axis, index = spots[0].axis, spots[0].at[0]
	}
	ofKeys := index >= 0 && spots[0].counts == order.AxisKey
	kinds := operationsSince(s, from.role)
	switch {
	case from.own && ofKeys && repeats(s.first, axis, index) >= 0:
		return Relation{Kind: "rows.stale-keys", Place: from.role, Of: tensorTerm(own), K: repeats(s.first, axis, index), At: r.At}
	case from.own:
		r.Kind, r.By = "rows.of-itself", Term{Kind: OwnRows}
	case from.role == zeroRole:
		r.Kind, r.By = "rows.zeros", Term{Kind: Zeros}
	case from.pass == 0 && movesOnly(s) && slices.ContainsFunc(s.first.Inputs, func(n order.Node) bool { return order.NameOf(s.m.List.Entries[n.Entry].Name).Role() == from.role }):
		r.By.Kind = OtherRowsOf // the operation computes nothing that could have been left out
	case len(kinds) == 1 && from.pass == 0 && len(spots) == 1:
		return Relation{Kind: "rows.left-as-they-are", Place: from.role, By: tensorTerm(from.role), At: r.At}
	case len(kinds) > 1:
		r.Kind, r.Of = "rows.operations-left-out", listTerm(Operations, kinds[:len(kinds)-1])
		return r
	case ofKeys && kinds == nil:
		return Relation{Kind: "rows.overwritten", Place: from.role, Of: tensorTerm(own), By: r.By, At: r.At}
	}
	if r.At != "" {
		r.Of = Term{Kind: Tensor, Name: own}
	}
	return r
}

// movesOnly reports whether the program computes nothing: the result has elements of the inputs.
func movesOnly(s *search) bool {
	return !slices.ContainsFunc(s.first.Program.Steps, func(st program.Step) bool { return st.Prim.Computes() || st.Prim == program.Angle })
}
