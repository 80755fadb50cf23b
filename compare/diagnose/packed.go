package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/permute"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// joint is one matrix with the weights of several linear operations. The operations read the same tensor.
type joint struct {
	parts []*order.Entry // in the order of the matrix
	own   int            // index of the part of the entry
}

// jointOf is the matrix that a weight may be a part of; ok is false if no other operation reads the same tensor.
func jointOf(s *subject, weight string) (p joint, ok bool) {
	var of *order.Entry
	for k := range s.m.List.Entries {
		if e := &s.m.List.Entries[k]; len(e.Weights) > 0 && e.Weights[0].Name == weight && len(e.Weights[0].Shape) == 2 && len(e.Inputs) == 1 {
			of = e
		}
	}
	for k := range s.m.List.Entries {
		e := &s.m.List.Entries[k]
		if of == nil || len(e.Weights) == 0 || len(e.Weights) != len(of.Weights) || len(e.Inputs) != 1 || e.Inputs[0].Name != of.Inputs[0].Name {
			continue
		}
		if e.Weights[0].Name == weight {
			p.own = len(p.parts)
		}
		if len(e.Weights[0].Shape) == 2 && e.Weights[0].Shape[1] == of.Weights[0].Shape[1] {
			p.parts = append(p.parts, e)
		}
	}
	return p, len(p.parts) > 1
}

// rows is how many rows a part has.
func (p joint) rows(part int) int { return p.parts[part].Weights[0].Shape[0] }

// size counts rows: of all parts together, of the parts before the own part, and of the smallest part.
func (p joint) size() (whole, before, least int) {
	least = p.rows(0)
	for k := range p.parts {
		if k < p.own {
			before += p.rows(k)
		}
		whole, least = whole+p.rows(k), min(least, p.rows(k))
	}
	return whole, before, least
}

// at returns the part and the row of the part for row i of a matrix, or of one of n groups in the matrix.
func (p joint) at(i, n int) rowOf {
	for k := range p.parts {
		if i < p.rows(k)/n {
			return rowOf{k, i}
		}
		i -= p.rows(k) / n
	}
	return rowOf{p.own, i}
}

// joints yields the weights of the first entry that may be a part of a matrix, each with the matrix.
func joints(s *search) iter.Seq2[order.Weight, joint] {
	return func(yield func(order.Weight, joint) bool) {
		if len(edit.StepsOf(s.first.Program, program.Affine)) != 1 {
			return
		}
		for _, w := range weightsRead(s, program.Matrix) {
			if p, ok := jointOf(s.subject, w.Name); ok && !yield(w, p) {
				return
			}
		}
	}
}

// packedMatrices yields mistakes of weights that are stored as one matrix. Either the file has whole parts, one after another, and the port reads
// groups of rows, each with rows of all parts; or the file has groups and the port reads whole parts.
func packedMatrices(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for w, p := range joints(s) {
			var names []string
			for _, e := range p.parts {
				names = append(names, order.NameOf(e.Weights[0].Name).Module())
			}
			for _, n := range groupsOf(s.subject, p) {
				m := Mistake{Kind: "weight.packed-read-as-groups", Of: Term{Kind: AName, Name: listed(names)}, N: n, Place: order.NameOf(w.Name).Role()}
				split := m
				split.Kind = splitKind
				if !yield(m) || !yield(split) {
					return
				}
			}
		}
	}
}

// splitKind is the mistake of a matrix of groups that is read as whole parts.
const splitKind Kind = "weight.groups-read-as-packed"

// groupsOf lists the numbers of groups that a joint matrix may have: the number of heads or of KV heads, the rows of the smallest part or half of
// them, 2, or 4.
func groupsOf(s *subject, p joint) []int {
	c := s.m.List.Config
	_, _, least := p.size()
	var all []int
	for _, n := range []int{c.NumKVHeads, c.NumHeads, least, least / 2, 2, 4} {
		if n > 1 && !slices.Contains(all, n) && p.hasGroups(n) {
			all = append(all, n)
		}
	}
	return all
}

// hasGroups reports whether the rows of each part can be divided into n groups.
func (p joint) hasGroups(n int) bool {
	return n > 0 && !slices.ContainsFunc(p.parts, func(e *order.Entry) bool { return e.Weights[0].Shape[0]%n != 0 })
}

// regrouped makes a linear operation with the rows that the port takes if it reads the matrix in the wrong form.
func regrouped(s *subject, e *Entry, m Mistake) *program.Edited {
	w := weightIn(e, m.Place)
	p, ok := jointOf(s, w.Name)
	if !ok || !p.hasGroups(m.N) {
		return nil
	}
	whole, before, _ := p.size()
	each, from := whole/m.N, make([]rowOf, p.rows(p.own))
	for i := range from {
		n := p.rows(p.own) / m.N
		if m.Kind != splitKind {
			from[i] = p.at(i/n*each+before/m.N+i%n, 1)
			continue
		}
		group, inside := (before+i)/each, (before+i)%each // in the file: the port reads whole parts
		r := p.at(inside, m.N)
		from[i] = rowOf{r.matrix, group*p.rows(r.matrix)/m.N + r.row}
	}
	return gathered(s, e, gathering{w.Name, p.matrices(), from, true, true})
}

// matrices are the names of the weights.
func (p joint) matrices() (all []string) {
	for _, e := range p.parts {
		all = append(all, e.Weights[0].Name)
	}
	return all
}

// Kinds of wrong cuts: of a weight with its bias, of only the weight, and of only the bias.
const (
	bothCut   Kind = "weight.cut-elsewhere-with-bias"
	weightCut Kind = "weight.cut-elsewhere"
	biasCut   Kind = "bias.cut-elsewhere"
)

// mostParts is the largest number of parts that are tried in other orders.
const mostParts = 4

// cutMatrices yields one matrix of several weights that is cut at a wrong place: the port has the parts in another order, or takes rows of a neighbour.
func cutMatrices(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for w, p := range joints(s) {
			if len(p.parts) > mostParts {
				continue
			}
			right := make([]int, len(p.parts))
			for k := range right {
				right[k] = k
			}
			whole, before, least := p.size()
			rows := p.rows(p.own)
			seen := map[Mistake]bool{}
			cut := func(sequence []int, start int, kind Kind) bool {
				m := Mistake{Kind: kind, Of: moduleTerm(w.Name), Runs: p.pieces(sequence, start, rows), Place: order.NameOf(w.Name).Role()}
				if seen[m] || start == before && slices.Equal(sequence[:p.own+1], right[:p.own+1]) {
					return true
				}
				seen[m] = true
				return yield(m)
			}
			for _, kind := range []Kind{bothCut, weightCut, biasCut} {
				if len(s.first.Weights) == 1 && kind != weightCut {
					continue
				}
				for start := 0; start+rows <= whole; start += least {
					if !cut(right, start, kind) {
						return
					}
				}
				for sequence := range permute.All(len(right)) {
					if !cut(sequence, before, kind) {
						return
					}
				}
			}
		}
	}
}

// moduleTerm is the term of the module of a weight.
func moduleTerm(weight string) Term {
	return Term{Kind: AName, Name: strings.TrimSuffix(order.NameOf(weight).Role(), ".weight")}
}

// pieces lists the parts from which the given number of rows comes, from row start on. The matrix has its parts in the given sequence.
func (p joint) pieces(sequence []int, start, rows int) Runs {
	var all []sourceRun
	at := 0
	for _, k := range sequence {
		n := p.rows(k)
		from, to := max(start-at, 0), min(start+rows-at, n)
		if from < to {
			run := sourceRun{From: from, To: to, Is: from, Of: moduleTerm(p.parts[k].Weights[0].Name).Name}
			if to-from == n {
				run.Of += wholeOf
			}
			all = append(all, run)
		}
		at += n
	}
	return makeRuns(all...)
}

// recut makes a linear operation with the rows of its weight, the numbers of its bias, or both, from another place of the joint matrix.
func recut(s *subject, e *Entry, m Mistake) *program.Edited {
	w := weightIn(e, m.Place)
	p, ok := jointOf(s, w.Name)
	if !ok {
		return nil
	}
	var from []rowOf
	for _, run := range m.Runs.list() {
		name := strings.TrimSuffix(run.Of, wholeOf)
		k := slices.IndexFunc(p.parts, func(e *order.Entry) bool { return moduleTerm(e.Weights[0].Name).Name == name })
		if k < 0 || run.To > p.rows(k) {
			return nil
		}
		for i := run.From; i < run.To; i++ {
			from = append(from, rowOf{k, i})
		}
	}
	return gathered(s, e, gathering{w.Name, p.matrices(), from, m.Kind != biasCut, m.Kind != weightCut})
}
