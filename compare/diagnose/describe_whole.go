package diagnose

import (
	"math"
	"math/bits"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostWhole is the largest number of inputs for which rounding is tried.
const mostWhole = 4

// wholeInputs describes entries that the right operation gives with some inputs rounded or truncated to whole numbers. Single inputs are tried first, then
// several together. The result is nil if no inputs explain the entries.
func wholeInputs(x *difference) *Description {
	s := x.search
	t := s.first.signed(s.m)
	var at []edit.Place
	var names []string
	for _, i := range leafSteps(t, program.Input) {
		entry := &s.m.List.Entries[s.first.Inputs[t.Steps[i].Index()].Entry]
		if _, given := entry.Op.(op.Given); !given { // ids and positions are whole numbers
			at, names = append(at, t.PlaceOf(i)), append(names, order.NameOf(entry.Name).Role())
		}
	}
	if len(at) == 0 || len(at) > mostWhole {
		return nil
	}
	var sets []int
	for set := 1; set < 1<<len(at); set++ {
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b int) int { return bits.OnesCount(uint(a)) - bits.OnesCount(uint(b)) })
	for _, set := range sets {
		var places []edit.Place
		var of []string
		for k := range at {
			if set>>k&1 == 1 {
				places, of = append(places, at[k]), append(of, names[k])
			}
		}
		for _, way := range []struct {
			kind, mistake Kind
			whole         func(float64) float64
		}{{"described.whole", "input.whole", math.RoundToEven}, {"described.truncated", "input.truncated", math.Trunc}} {
			d, err := givenBy(s, func(e *Entry) *program.Edited { return wholeAt(s.subject, e, places, way.whole) })
			if s.failed(err) {
				return nil
			}
			if d != nil {
				d.Kind, d.Of = way.kind, listTerm(Operations, slices.Compact(of))
				s.draft(d).proposes = []Mistake{{Kind: way.mistake, Of: d.Of}}
				return d
			}
		}
	}
	return nil
}

// wholeAt puts whole numbers in place of inputs.
func wholeAt(s *subject, e *Entry, places []edit.Place, whole func(float64) float64) *program.Edited {
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	for _, at := range places {
		all := t.Copies(at)
		if len(all) == 0 {
			return nil
		}
		for _, i := range all {
			x, ok := s.valueAt(e, t.Result(i))
			if !ok {
				return nil
			}
			v := program.Value{Shape: t.Steps[i].Shape, Data: make([]float64, len(x))}
			for k := range x {
				v.Data[k] = whole(x[k])
			}
			if !slices.ContainsFunc(v.Data, func(x float64) bool { return x != 0 }) { // a tensor of zeros has another cause
				return nil
			}
			ed.OtherInput(i, v)
		}
	}
	return ended(ed)
}

// givenBy counts the elements of all entries that an edit gives. The result is nil if the edit gives too few of the elements that the right operation does
// not give.
func givenBy(s *search, edit func(e *Entry) *program.Edited) (*Description, error) {
	d := &Description{}
	wrong, left := 0, 0
	for _, e := range s.entries {
		e = e.Small()
		x := edit(e)
		if x == nil || s.err != nil {
			return nil, s.err
		}
		k, err := s.m.values(e)
		if err != nil {
			return nil, err
		}
		leaves, all, of := e.Leaves, e.elements(), len(e.Left)
		var v program.Value
		if f := e.Few; f != nil && len(f.Left) > 0 {
			y, _ := f.Target()
			leaves, all, of = f.Leaves, len(y), len(f.Left)
			v, err = k.EvalSome(x, &f.Some)
		} else {
			v, err = k.Eval(x)
		}
		if err != nil {
			return nil, outside(err)
		}
		still, err := leaves(v, all)
		if err != nil {
			return nil, err
		}
		wrong, left, d.Elements = wrong+of, left+len(still), d.Elements+all
		if float64(left) > (1-leastShare)*float64(wrong) {
			return nil, nil
		}
	}
	if wrong-left < shownElements {
		return nil, nil
	}
	d.Explained = d.Elements - left
	return d, nil
}
