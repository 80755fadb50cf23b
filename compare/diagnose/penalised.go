package diagnose

import (
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// penalties are changes that samplers make to the logits of ids that were read, and that a model does not make. to changes a logit x by a number, and
// by is the number that takes x to y.
var penalties = map[Kind]struct{ to, by func(x, y float64) float64 }{
	"logits.repetition-penalty": {
		func(x, by float64) float64 {
			if x > 0 {
				return x / by
			}
			return x * by
		},
		func(x, y float64) float64 {
			if x > 0 {
				return x / y
			}
			return y / x
		},
	},
	"logits.presence-penalty": {
		func(x, by float64) float64 { return x - by },
		func(x, y float64) float64 { return x - y },
	},
}

// penalised yields penalties on the logits of ids that were read, in the pass or up to its end. A repetition penalty divides a positive logit by a
// number and multiplies a negative logit by the number. A presence penalty subtracts a number.
func penalised(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		axes := s.m.List.Entries[s.first.Node.Entry].Axes
		if axes == "" || axisWords(axes[len(axes)-1]) != "vocabulary" {
			return
		}
		var right, port []float64
		for _, e := range s.entries {
			read := idsOf(s.subject, e, true)
			own, ok := s.asStored(e)
			y, _ := e.Target()
			for _, i := range e.Left {
				if !ok || !slices.Contains(read, i%e.Program.Out.Last()) || own.Data[i] == 0 || y[i] == 0 {
					return
				}
				right, port = append(right, own.Data[i]), append(port, y[i])
			}
		}
		if len(right) < shownElements {
			return
		}
		for _, kind := range []Kind{"logits.repetition-penalty", "logits.presence-penalty"} {
			by := make([]float64, len(right))
			for i, x := range right {
				by[i] = penalties[kind].by(x, port[i])
			}
			slices.Sort(by)
			for digits := range 4 {
				x, err := strconv.ParseFloat(strconv.FormatFloat(by[len(by)/2], 'e', digits, 64), 64)
				if err != nil || x <= 0 || x == 1 && kind == "logits.repetition-penalty" {
					continue
				}
				for _, ids := range []string{"", order.InputIDs} {
					if !yield(Mistake{Kind: kind, X: some(x), Source: ids}) || len(s.found) > 0 {
						return
					}
				}
			}
		}
	}
}

// idsOf returns the ids of an entry's pass, and, with before, the ids of all earlier passes.
func idsOf(s *subject, e *Entry, before bool) []int {
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

// penalty changes the logits of ids that were read. If the mistake has a Source, the port looks only at the ids of the pass.
func penalty(s *subject, e *Entry, m Mistake) *program.Edited {
	v, ok := s.asStored(e)
	if !ok {
		return nil
	}
	read, width, to := idsOf(s, e, m.Source == ""), e.Program.Out.Last(), penalties[m.Kind].to
	for i, x := range v.Data {
		if slices.Contains(read, i%width) {
			low, high := to(x-v.Bound[i], m.X.Value), to(x+v.Bound[i], m.X.Value)
			v.Data[i], v.Bound[i] = (low+high)/2, math.Abs(high-low)/2+twoRoundings(high)
		}
	}
	return given(e, v)
}
