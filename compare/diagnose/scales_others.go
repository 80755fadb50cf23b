package diagnose

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// ofOthers yields the scales of other matrices of the layer: the scale of the whole matrix, and the scales of rows.
func (o *outputs) ofOthers(s *search, k int, w program.Rows, yield func(Mistake) bool) {
	own := s.first.Weights[k]
	for _, m := range []Mistake{{}, {M: 1}} {
		t := scalesOf(w, m)
		for _, other := range matricesOfLayer(s.subject, own) {
			if t == nil || s.spent() {
				return
			}
			if m.M == 1 && other.Shape[0] != own.Shape[0] {
				continue
			}
			m.Kind, m.By, m.Source = scalesOfAnother, weightTerm(other.Name), other.Name
			of := otherTable(s.subject, m, own.Name)
			s.m.work += other.Shape[0] * other.Shape[1] / 8
			if of != nil && o.near(s, t, t.from(of)) && !o.rounded(m, yield) {
				return
			}
		}
	}
}

// scalesOfAnother is the mistake of a matrix with the scales of another matrix of its layer.
const scalesOfAnother Kind = "weight.scales-of-another"

// matricesOfLayer lists the other matrices in the layer of a weight.
func matricesOfLayer(s *subject, own order.Weight) (all []order.Weight) {
	layer := order.NameOf(own.Name)
	for _, w := range s.m.List.Weights() {
		if w.Name != own.Name && len(w.Shape) == 2 && layer.Within() && layer.SameLayer(order.NameOf(w.Name)) {
			all = append(all, w)
		}
	}
	return all
}

// otherTable is the table of the matrix that a mistake names, in the layer of a weight; nil if the layer has no such matrix.
func otherTable(s *subject, m Mistake, own string) *scaleTable {
	w, ok := s.weightOf(order.NameOf(m.Source).Beside(order.NameOf(own)).String())
	if !ok || w.Name == own || len(w.Shape) != 2 {
		return nil
	}
	rows, err := s.m.Weights(w)
	if s.failed(err) {
		return nil
	}
	return scalesOf(rows, m)
}

// from gives the scales of a second table; nil if the tables differ in the number of blocks.
func (t *scaleTable) from(other *scaleTable) func(i, j int) float64 {
	if len(t.of) != len(other.of) {
		return nil
	}
	return func(i, j int) float64 { return other.of[t.at(i, j)] }
}

// withScalesOfAnother is a matrix with the scales of another matrix of its layer.
func withScalesOfAnother(s *subject, e *Entry, m Mistake) *program.Edited {
	return reweighted(e, func(k int, w program.Rows) program.Rows {
		t, other := scalesOf(w, m), otherTable(s, m, e.Weights[k].Name)
		if t == nil || other == nil {
			return nil
		}
		wrong := t.from(other)
		if wrong == nil {
			return nil
		}
		return t.changed(w, m, wrong, e.Call.DType)
	}, m.Place)
}
