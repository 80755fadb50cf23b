package diagnose

import (
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// penalised looks for logits of ids that were read which are divided by a number where they are above 0, and multiplied by it below, or
// lowered by one: what samplers do to logits, and a model does not.
func (s *search) penalised() error {
	entry := &s.m.List.Entries[s.first.Node.Entry]
	if n := len(entry.Axes); n == 0 || axisWords(entry.Axes[n-1]) != "vocabulary" {
		return nil
	}
	var ratios, steps []float64
	for _, e := range s.entries {
		read := s.idsOf(e, true)
		own, ok := s.asStored(e)
		y, _ := e.Target()
		width := e.Program.Out.Last()
		if !ok {
			return s.err
		}
		for _, i := range e.Left {
			x := own.Data[i]
			if !slices.Contains(read, i%width) || x == 0 || y[i] == 0 {
				return nil
			}
			if ratio := x / y[i]; x > 0 {
				ratios = append(ratios, ratio)
			} else {
				ratios = append(ratios, 1/ratio)
			}
			steps = append(steps, x-y[i])
		}
	}
	if len(ratios) < shownElements {
		return nil
	}
	for rank, of := range []struct {
		by    []float64
		kind  Kind
		value func(x, by float64) float64
	}{
		{ratios, "logits.repetition-penalty", func(x, by float64) float64 {
			if x > 0 {
				return x / by
			}
			return x * by
		}},
		{steps, "logits.presence-penalty", func(x, by float64) float64 { return x - by }},
	} {
		slices.Sort(of.by)
		middle := of.by[len(of.by)/2]
		for d := range 4 {
			by, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'e', d, 64), 64)
			if err != nil || by <= 0 || by == 1 && rank == 0 {
				continue
			}
			for _, before := range []bool{true, false} {
				if err := s.try(hypothesis{
					class: program.Inserted, solved: 1, number: by,
					make: func(e *Entry) *program.Edited {
						return s.penalty(e, before, func(x float64) float64 { return of.value(x, by) })
					},
					say: func(*Entry) Name { return Mistake{Kind: of.kind, X: some(by)}.name() },
				}); err != nil || len(s.found) > 0 {
					return err
				}
			}
		}
	}
	return nil
}

// asStored is the entry's own result as it is stored in the model's dtype, with what its bounds leave open.
func (s *subject) asStored(e *Entry) (program.Value, bool) {
	v, ok := s.valueOf(e, nil)
	if !ok {
		return v, false
	}
	for i, x := range v.Data {
		low, high := floats.Round(e.Call.DType, x-v.Bound[i]), floats.Round(e.Call.DType, x+v.Bound[i])
		v.Data[i], v.Bound[i] = (low+high)/2, (high-low)/2
	}
	return v, true
}

// idsOf are the ids of an entry's pass, and of those before.
func (s *subject) idsOf(e *Entry, before bool) []int {
	var all []int
	for pass := range e.Node.Pass + 1 {
		n := order.Node{Entry: s.m.List.Index(order.InputIDs), Pass: pass}
		if pass < e.Node.Pass && !before || n.Entry < 0 || !s.m.Has(n) {
			continue
		}
		v, err := s.m.Read(n)
		if s.failed(err) {
			return nil
		}
		for _, id := range v.Data {
			all = append(all, int(id))
		}
	}
	return all
}

// penalty changes the logits of ids that were read in a pass, or until then.
func (s *subject) penalty(e *Entry, before bool, change func(x float64) float64) *program.Edited {
	v, ok := s.asStored(e)
	if !ok {
		return nil
	}
	read, width := s.idsOf(e, before), e.Program.Out.Last()
	for i, x := range v.Data {
		if slices.Contains(read, i%width) {
			low, high := change(x-v.Bound[i]), change(x+v.Bound[i])
			v.Data[i], v.Bound[i] = (low+high)/2, math.Abs(high-low)/2+twoRoundings(high)
		}
	}
	return given(e, v)
}
