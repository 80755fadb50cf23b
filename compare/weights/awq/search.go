// Package awq finds factors that cancel between the tensors of a layer.
//
// AWQ multiplies the columns of a matrix by scales before it rounds them, and divides by the same scales what the columns are multiplied with:
// the weight of the norm before it, or the rows of the matrix whose result they take. The port computes what the original does, and neither
// tensor is the original's. So both are right where their factors cancel.
//
// The factors of a norm are known: the original's weight over the port's. Those of columns and rows of codes are measured, as the slope of the
// port's numbers over the original's, with the standard error that the codes leave it.
package awq

import (
	"context"
	"math"
	"slices"
)

// Verdict is the result for a single tensor, before the search for factors.
type Verdict int

// The verdicts. The first three are right.
const (
	Equal Verdict = iota
	Quantised
	Right
	Different // wrong, and not explained
	Other
)

// Comparison is one run over two checkpoints.
type Comparison interface {
	Verdict(t *Tensor) Verdict
	// Slopes reads a tensor and the original times factors. It returns errors of reading and of the context.
	Slopes(ctx context.Context, t *Tensor, f Factors) (columns, rows *Slopes, err error)
	// Vector reads a vector of numbers on both sides.
	Vector(ctx context.Context, t *Tensor) (local, original []float64, err error)
	// Judge holds a tensor of codes to the original times factors.
	Judge(ctx context.Context, t *Tensor, f Factors) error
	// Rescaled marks a norm as right: it is the original's over the factors of the columns.
	Rescaled(t *Tensor, factors []float64)
	// Suspect marks a tensor as unidentified: its columns have factors, so many standard errors apart. norm is the norm without factors before
	// it, or empty where the layer is unknown.
	Suspect(t *Tensor, norm string, apart float64)
	// SuspectNorm marks a norm as unidentified: it is divided by the factors of the columns of a matrix.
	SuspectNorm(t, matrix *Tensor, factors []float64)
}

// Search looks for factors that cancel, in layers of codes of a format whose writers may use factors. Search marks a tensor with
// cancelling factors as right, and a tensor with uncertain factors as unidentified.
func Search(ctx context.Context, c Comparison, tensors []*Tensor) error {
	followed := map[*Tensor]bool{}
	for _, l := range layersOf(tensors) {
		for _, t := range l {
			followed[t] = true
		}
		s := &search{c, l, map[*Tensor]*Factors{}}
		if err := s.rescale(ctx); err != nil {
			return err
		}
		for _, x := range scalings {
			if from := s.tensor(x.from); !x.rows && from != nil && c.Verdict(from) == Equal {
				if err := s.unmatched(ctx, x); err != nil {
					return err
				}
			}
		}
	}
	return searchUnknown(ctx, c, tensors, followed)
}

// search is the search for factors in one layer.
type search struct {
	Comparison
	layer layer
	found map[*Tensor]*Factors
}

func (s *search) tensor(name string) *Tensor { return s.layer[name+".weight"] }

// of are the factors of a tensor of the layer.
func (s *search) of(name string) *Factors {
	t := s.tensor(name)
	if s.found[t] == nil {
		s.found[t] = &Factors{}
	}
	return s.found[t]
}

// may reports whether a scaling may be one of the layer: what it is multiplied with are codes, and a norm that is right has no factors.
func (s *search) may(x scaling) bool {
	from := s.tensor(x.from)
	if from == nil || slices.ContainsFunc(x.into, func(name string) bool { return !s.tensor(name).coded() }) {
		return false
	}
	if !x.rows {
		return s.Verdict(from) > Right
	}
	return from.Coding != nil && from.Shape[0] == s.tensor(x.into[0]).Shape[1] && s.layer[x.from+".bias"] == nil
}

// rescale searches a layer for factors. Norms give their factors directly; then rescale measures row factors, and last the column factors
// of matrices after the norms.
func (s *search) rescale(ctx context.Context) error {
	var rows, norms []scaling
	for _, x := range scalings {
		if !s.may(x) {
			continue
		}
		if x.rows {
			rows = append(rows, x)
			continue
		}
		scales, err := ofNorm(ctx, s, s.tensor(x.from), 0)
		if err != nil {
			return err
		}
		if scales == nil {
			continue
		}
		for _, name := range x.into {
			s.of(name).Columns = scales
		}
		s.of(x.from).Rows = scales
		norms = append(norms, x)
	}
	for _, x := range rows {
		_, slopes, err := s.Slopes(ctx, s.tensor(x.from), Factors{Columns: s.of(x.from).Columns})
		if err != nil {
			return err
		}
		scales, err := s.cancel(ctx, slopes.inverse(), x)
		if err != nil {
			return err
		}
		if scales != nil {
			s.of(x.from).Rows, s.of(x.into[0]).Columns = scales.factor, scales.factor
		}
	}
	rescaled := map[*Tensor]bool{}
	for _, x := range norms {
		scales, err := s.cancel(ctx, known(s.of(x.from).Rows), x)
		if err != nil {
			return err
		}
		if rescaled[s.tensor(x.from)] = scales != nil; scales != nil {
			continue
		}
		for _, name := range x.into {
			s.of(name).Columns = nil
		}
		delete(s.found, s.tensor(x.from))
	}
	return s.judge(ctx, rescaled)
}

// cancel is [pool.cancel] for the tensors that a scaling goes into, without the factors of their rows.
func (s *search) cancel(ctx context.Context, given *measured, x scaling) (*measured, error) {
	if given == nil {
		return nil, nil
	}
	p := newPool(len(given.factor))
	for _, name := range x.into {
		columns, _, err := s.Slopes(ctx, s.tensor(name), Factors{Rows: s.of(name).Rows})
		if err != nil {
			return nil, err
		}
		p.add(columns)
	}
	return p.cancel(given), nil
}

// judge holds the tensors of codes to the original times their factors, which are known to cancel. So the norms are right.
func (s *search) judge(ctx context.Context, norms map[*Tensor]bool) error {
	for t, f := range s.found {
		switch {
		case norms[t]:
			s.Rescaled(t, f.Rows)
		case f.Any():
			if err := s.Judge(ctx, t, *f); err != nil {
				return err
			}
		}
	}
	return nil
}

// unmatched looks for column factors in all matrices after a norm without factors.
func (s *search) unmatched(ctx context.Context, x scaling) error {
	var p *pool
	for _, name := range x.into {
		t := s.tensor(name)
		if !t.coded() || s.Verdict(t) != Quantised {
			return nil
		}
		columns, _, err := s.Slopes(ctx, t, Factors{Rows: s.of(name).Rows})
		if err != nil {
			return err
		}
		if p == nil {
			p = newPool(len(columns.n))
		}
		p.add(columns)
	}
	if apart := p.apart(); apart > sameFactors {
		for _, name := range x.into {
			s.Suspect(s.tensor(name), x.from, math.Sqrt(apart))
		}
	}
	return nil
}

// searchUnknown looks at layers whose matrices after each norm are not known, and at norms that may be stored by 1+w. If a matrix of codes
// has column factors, or the factors of a norm of its layer, AWQ may have made both, but no proof exists: they become unidentified.
// followed has the tensors of the other layers.
func searchUnknown(ctx context.Context, c Comparison, tensors []*Tensor, followed map[*Tensor]bool) error {
	matrices := map[string][]*Tensor{} // by layer
	for _, t := range tensors {
		if p := prefixOf(t); p != "" && len(t.Shape) == 2 && t.coded() && !ofGGUF.MatchString(t.Coding.Data().Name) {
			matrices[p] = append(matrices[p], t)
		}
	}
	for _, list := range matrices {
		for _, t := range list {
			if followed[t] || c.Verdict(t) != Quantised {
				continue
			}
			columns, _, err := c.Slopes(ctx, t, Factors{})
			if err != nil {
				return err
			}
			p := newPool(len(columns.n))
			p.add(columns)
			if apart := p.apart(); apart > sameFactors {
				c.Suspect(t, "", math.Sqrt(apart))
			}
		}
	}
	for _, t := range tensors {
		if p := prefixOf(t); p != "" && c.Verdict(t) == Different && normName.MatchString(t.Name) {
			if err := suspectNorm(ctx, c, t, matrices[p], followed[t]); err != nil {
				return err
			}
		}
	}
	return nil
}

// suspectNorm marks a norm as unidentified if the columns of a matrix have the factors of the norm. The factors are read from w and from
// 1+w; a norm in a followed layer is read from 1+w only.
func suspectNorm(ctx context.Context, c Comparison, norm *Tensor, matrices []*Tensor, followed bool) error {
	for _, more := range []float64{0, 1} {
		if followed && more == 0 {
			continue
		}
		scales, err := ofNorm(ctx, c, norm, more)
		if err != nil {
			return err
		}
		for _, t := range matrices {
			if scales == nil || t.Shape[1] != len(scales) {
				continue
			}
			columns, _, err := c.Slopes(ctx, t, Factors{})
			if err != nil {
				return err
			}
			p := newPool(len(scales))
			if p.add(columns); p.cancel(known(scales)) != nil {
				c.SuspectNorm(norm, t, scales)
				return nil
			}
		}
	}
	return nil
}

// ofNorm returns the factors of a norm, float64 by column, with both sides read as w plus more; nil without factors.
func ofNorm(ctx context.Context, c Comparison, t *Tensor, more float64) ([]float64, error) {
	if len(t.Shape) != 1 || t.Coding != nil {
		return nil, nil
	}
	local, original, err := c.Vector(ctx, t)
	if err != nil {
		return nil, err
	}
	return quotients(local, original, more), nil
}
