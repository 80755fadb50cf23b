package diagnose

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// rowOf is a row of a matrix in a list of matrices; matrix −1 stands for zeros.
type rowOf struct{ matrix, row int }

// gathering says where the rows of a matrix, and the numbers of its bias, come from.
type gathering struct {
	own          string   // the matrix
	names        []string // the matrices that rows come from
	from         []rowOf  // for each row
	matrix, bias bool     // whether the matrix, and the bias, are changed
}

// gathered takes the rows of a matrix from several matrices, the numbers of its bias from the biases of these matrices, or both.
func gathered(s *subject, e *Entry, g gathering) *program.Edited {
	var roles []string
	own := g.own
	ownBias, has := biasOf(s, own)
	if g.matrix {
		roles = append(roles, order.NameOf(own).Role())
	}
	if has && g.bias {
		roles = append(roles, order.NameOf(ownBias).Role())
	}
	return reweighted(e, func(k int, w program.Rows) program.Rows {
		ofBias := e.Weights[k].Name == ownBias
		if !ofBias && e.Weights[k].Name != own {
			return nil
		}
		var all []program.Rows
		for _, name := range g.names {
			has := true
			if ofBias {
				name, has = biasOf(s, name)
			}
			w, ok := s.weightOf(name)
			if !has || !ok {
				all = append(all, nil)
				continue
			}
			rows, err := s.m.Weights(w)
			if s.failed(err) {
				return nil
			}
			all = append(all, rows)
		}
		_, width := w.Size()
		return gather(all, g.from, width, ofBias)
	}, roles...)
}

// gather is a matrix of a width with rows of several matrices, or a vector with numbers of several vectors; nil if a row does not exist.
func gather(of []program.Rows, from []rowOf, width int, vectors bool) program.Rows {
	for _, r := range from {
		if r.matrix < 0 {
			continue
		}
		w := of[r.matrix]
		if w == nil {
			return nil
		}
		if rows, cols := w.Size(); vectors && r.row >= cols || !vectors && (r.row >= rows || cols != width) {
			return nil
		}
	}
	if !vectors {
		return made{len(from), width, func(dst []float64, i int) error {
			if from[i].matrix < 0 {
				clear(dst)
				return nil
			}
			return of[from[i].matrix].Row(dst, from[i].row)
		}}
	}
	return made{1, len(from), func(dst []float64, _ int) error {
		values := make([][]float64, len(of))
		for i, r := range from {
			if r.matrix < 0 {
				dst[i] = 0
				continue
			}
			if values[r.matrix] == nil {
				_, n := of[r.matrix].Size()
				values[r.matrix] = make([]float64, n)
				if err := of[r.matrix].Row(values[r.matrix], 0); err != nil {
					return err
				}
			}
			dst[i] = values[r.matrix][r.row]
		}
		return nil
	}}
}

// biasOf is the bias of the operation that has a matrix.
func biasOf(s *subject, matrix string) (name string, ok bool) {
	for i := range s.m.List.Entries {
		if w := s.m.List.Entries[i].Weights; len(w) > 1 && w[0].Name == matrix && len(w[1].Shape) == 1 {
			return w[1].Name, true
		}
	}
	return "", false
}

// weightIn is the weight of a role that an entry reads, without a name if the entry reads no weight of the role.
func weightIn(e *Entry, role string) order.Weight {
	for _, w := range e.Weights {
		if order.NameOf(w.Name).Role() == role {
			return w
		}
	}
	return order.Weight{}
}
