package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// stored is a way to keep a tensor in too few bits: as numbers of a narrower type, or as whole numbers. Numbers may share a scale.
type stored struct {
	Coding             // none for a type
	dtype  hooks.DType // of the numbers; 0 for whole numbers
	top    float64     // the largest of the numbers that share a scale becomes top; 0 without a scale
}

// storedAs is how a mistake keeps a tensor.
func storedAs(m Mistake) stored {
	w := stored{Coding: m.Coding}
	switch m.Coding.Numbers {
	case Float8E4M3:
		w.dtype = hooks.F8E4M3
	case Float8E5M2:
		w.dtype = hooks.F8E5M2
	case Int8:
		w.top = 127
	case Int4:
		w.top = 7
	default:
		w.dtype = m.DType
	}
	if w.dtype != 0 && w.Coding != (Coding{}) && w.Scales != NoScale {
		w.top = floats.Largest(w.dtype)
	}
	return w
}

// narrower lists the ways to store a tensor in fewer bits, without the tensor.
func narrower(model hooks.DType) []Mistake {
	var all []Mistake
	for _, d := range []hooks.DType{hooks.F16, hooks.BF16} {
		if d != model {
			all = append(all, Mistake{Kind: "tensor.rounded-dtype", DType: d})
		}
	}
	add := func(scales Scales, numbers ...Codes) {
		for _, n := range numbers {
			all = append(all, Mistake{Kind: "tensor.rounded", Coding: Coding{n, scales}})
		}
	}
	for _, scales := range []Scales{NoScale, OfAll, ByRow} {
		add(scales, Float8E4M3, Float8E5M2)
	}
	for _, scales := range []Scales{ByRow, OfAll, 32} {
		add(scales, Int8, Int4)
	}
	return all
}

// inFewerBits yields results that are stored in fewer bits, and results of operands that are stored in fewer bits.
func inFewerBits(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, at := range append([]int{result}, leafSteps(t, program.Input)...) {
			for _, m := range narrower(s.first.Call.DType) {
				m.Of, m.Edit = placeTerm(s, t, at), placed(placeOf(t, at))
				if !yield(m) {
					return
				}
			}
		}
	}
}

// storedInFewerBits rounds the result, or an input, to fewer bits.
func storedInFewerBits(s *subject, e *Entry, m Mistake) *program.Edited {
	w, at := storedAs(m), s.place(m)
	if at == (edit.Place{Arg: result}) {
		return stores(s, e, nil, w)
	}
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	all := t.Copies(at)
	for _, i := range all {
		v := ownedValue(program.Value{Shape: t.Steps[i].Shape, Data: e.Call.In[t.Steps[i].Index()].Data})
		if !w.store(v, v.Shape[len(v.Shape)-1], e.Call.DType) {
			return nil
		}
		ed.OtherInput(i, v)
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}

// stores rounds the result of an edited program to fewer bits. d is nil for the entry's own program.
func stores(s *subject, e *Entry, d *program.Edited, w stored) *program.Edited {
	v, ok := s.valueOf(e, d)
	if !ok || !w.store(v, e.Program.Out.Last(), e.Call.DType) {
		return nil
	}
	return given(e, v)
}

// store rounds a value in place. It reports whether rows of the given length consist of whole groups.
func (w stored) store(v program.Value, row int, model hooks.DType) bool {
	group := int(w.Scales)
	switch {
	case w.Scales == ByRow:
		group = row
	case group < 0:
		group = len(v.Data)
	case row%group != 0:
		return false
	}
	for at := 0; at < len(v.Data); at += group {
		x, b := v.Data[at:][:group], v.Bound[at:][:group]
		if w.top == 0 {
			for i := range x {
				low, high := floats.Round(w.dtype, x[i]-b[i]), floats.Round(w.dtype, x[i]+b[i])
				x[i], b[i] = (low+high)/2, (high-low)/2
			}
			continue
		}
		scale := 0.0
		for i := range x {
			x[i], b[i] = floats.Round(model, x[i]), 0
			scale = max(scale, math.Abs(x[i]))
		}
		if scale = float64(float32(scale / w.top)); !(scale > 0) {
			continue
		}
		for i := range x {
			x[i] = floats.Round(model, float64(float32(w.round(float64(float32(x[i]/scale)))*scale)))
		}
	}
	return true
}

// round gives the nearest number that can be kept. x is in units of the scale.
func (w stored) round(x float64) float64 {
	if w.dtype == 0 {
		return math.RoundToEven(x)
	}
	return floats.Round(w.dtype, x)
}

// valueOf is the result of an edited program with its bounds. d is nil for the entry's own program. The caller may write to the value.
func (s *subject) valueOf(e *Entry, d *program.Edited) (program.Value, bool) {
	k, err := s.m.values(e)
	if s.failed(err) {
		return program.Value{}, false
	}
	var x program.Value
	if d == nil {
		x, err = k.Own()
	} else {
		x, err = k.Eval(d)
	}
	if err != nil {
		s.failed(outside(err))
		return x, false
	}
	return ownedValue(x), true
}

// asStored is the entry's own result after the rounding to the model's dtype. An element has a bound if its own bound allows for several numbers of the dtype.
func (s *subject) asStored(e *Entry) (program.Value, bool) {
	v, ok := s.valueOf(e, nil)
	if ok {
		stored{dtype: e.Call.DType}.store(v, e.Program.Out.Last(), e.Call.DType)
	}
	return v, ok
}

// ownedValue is a copy of a value with its bounds. The copy may be written to.
func ownedValue(x program.Value) program.Value {
	v := program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: make([]float64, len(x.Data))}
	copy(v.Bound, x.Bound)
	return v
}

// given makes a value the result.
func given(e *Entry, v program.Value) *program.Edited {
	ed := edit.NewEditor(e.Program)
	v.Shape = e.Program.Out.Shape
	ed.Return(ed.Other(v))
	return ended(ed)
}
