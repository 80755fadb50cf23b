package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// stored is how a result may be kept in fewer bits than it should be: numbers of a narrower type, or whole numbers of a step.
type stored struct {
	Coding         // none for a type
	most   float64 // the largest whole number; 0 for a type
	dtype  hooks.DType
	round  func(x float64) float64 // a type that the model has no rounding for
	top    float64                 // the number of the type that the largest of a group becomes; 0 without a scale
}

// of is the mistake of a tensor that is stored so.
func (w stored) of(what Term) Mistake {
	if w.Coding == (Coding{}) {
		return Mistake{Kind: "tensor.rounded-dtype", Of: what, DType: w.dtype}
	}
	return Mistake{Kind: "tensor.rounded", Of: what, Coding: w.Coding}
}

// narrower are the ways to store the result, and those to compute it.
func (s *search) narrower() []stored {
	var all []stored
	for _, d := range []hooks.DType{hooks.F16, hooks.BF16} {
		if d != s.first.Call.DType {
			all = append(all, stored{dtype: d})
		}
	}
	all = append(all,
		stored{Coding: Coding{Float8E4M3, NoScale}, round: func(x float64) float64 { return float64(floats.FromF8E4M3(floats.F8E4M3(float32(x)))) }},
		stored{Coding: Coding{Float8E5M2, NoScale}, round: func(x float64) float64 { return float64(floats.FromF8E5M2(floats.F8E5M2(float32(x)))) }})
	for _, g := range []Scales{OfAll, ByRow} {
		all = append(all,
			stored{Coding: Coding{Float8E4M3, g}, top: 448, round: func(x float64) float64 { return float64(floats.FromF8E4M3(floats.F8E4M3(float32(x)))) }},
			stored{Coding: Coding{Float8E5M2, g}, top: 57344, round: func(x float64) float64 { return float64(floats.FromF8E5M2(floats.F8E5M2(float32(x)))) }})
	}
	for _, g := range []Scales{ByRow, OfAll, 32} {
		all = append(all, stored{Coding: Coding{Int8, g}, most: 127}, stored{Coding: Coding{Int4, g}, most: 7})
	}
	return all
}

// narrow tries results that are stored in fewer bits, and results of operands that are.
func (s *search) narrow() error {
	for _, w := range s.narrower() {
		if err := s.try(hypothesis{
			class: program.Inserted, make: func(e *Entry) *program.Edited { return s.stores(e, nil, w) },
			say: func(*Entry) Name { return w.of(theResult).name() },
		}); err != nil {
			return err
		}
	}
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, program.Input) {
		for _, w := range s.narrower() {
			if err := s.try(hypothesis{
				class: program.Inserted, make: func(e *Entry) *program.Edited { return w.reads(s, e, t.Of(i)) },
				say: func(*Entry) Name { return w.of(s.value(s.first, t.Result(i))).name() },
			}); err != nil {
				return err
			}
		}
	}
	if s.first.Call.DType != hooks.F32 {
		return nil
	}
	for rank, n := range []struct {
		kind  Kind
		as    string
		round func(x float64) float64
		out   bool
	}{
		{"precision.narrow", "bfloat16", func(x float64) float64 { return floats.Round(hooks.BF16, x) }, true},
		{"precision.narrow", "float16", func(x float64) float64 { return floats.Round(hooks.F16, x) }, true},
		{"precision.narrow-operands", "bfloat16", func(x float64) float64 { return floats.Round(hooks.BF16, x) }, false},
		{"precision.narrow-operands", "float16", func(x float64) float64 { return floats.Round(hooks.F16, x) }, false},
		{"precision.narrow", tf32, func(x float64) float64 { return math.Float64frombits(math.Float64bits(x) &^ (1<<42 - 1)) }, false},
		{"precision.narrow", tf32, func(x float64) float64 {
			return math.Float64frombits((math.Float64bits(x) + 1<<41) &^ (1<<42 - 1))
		}, false},
	} {
		if err := s.try(hypothesis{
			class: program.Inserted, of: computedAs(n.as, n.out || n.as == tf32),
			make: func(e *Entry) *program.Edited {
				d := s.leavesOf(e, n.round)
				if !n.out || d == nil {
					return d
				}
				to := stored{dtype: hooks.BF16}
				if rank == 1 {
					to.dtype = hooks.F16
				}
				if s.refused(e, func(some *program.Some) (program.Value, error) { return s.storedIn(e, d, to, some) }) {
					return nil
				}
				return s.stores(e, d, to)
			},
			say: func(*Entry) Name { return Mistake{Kind: n.kind, By: Term{Kind: AName, Name: n.as}}.name() },
		}); err != nil {
			return err
		}
	}
	return s.try(hypothesis{
		class: program.Inserted, make: s.products, say: func(*Entry) Name { return Mistake{Kind: "precision.products", DType: hooks.F16}.name() },
	})
}

// tf32 is the type of the inputs of tensor cores.
const tf32 = "tf32"

// products has sums of products whose operands and results are rounded to float16.
func (s *subject) products(e *Entry) *program.Edited {
	ed, some := e.Program.Edit(), false
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		if st.Prim != program.Dot {
			continue
		}
		some = true
		var args []program.Var
		for _, a := range st.Args {
			args = append(args, ed.RoundTo(a, program.Half))
		}
		ed.Pass(i, ed.RoundTo(ed.MoveWith(i, args...), program.Half))
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// leavesOf has inputs and weights whose elements are changed one by one.
func (s *subject) leavesOf(e *Entry, round func(x float64) float64) *program.Edited {
	ed := e.Program.Edit()
	for i := range e.Program.Steps {
		switch st := &e.Program.Steps[i]; st.Prim {
		case program.Input:
			in := e.Call.In[st.Index]
			v := program.Value{Shape: st.Shape, Data: make([]float64, len(in.Data))}
			for k, x := range in.Data {
				v.Data[k] = round(x)
			}
			ed.OtherInput(i, v)
		case program.Weight, program.Matrix:
			ed.OtherWeight(i, changed(e.Call.W[st.Index], func(row []float64) {
				for k, x := range row {
					row[k] = round(x)
				}
			}))
		}
	}
	return ended(ed)
}

// stores has the result of an edited program, nil for the entry's own, in fewer bits.
func (s *subject) stores(e *Entry, d *program.Edited, w stored) *program.Edited {
	v, ok := s.valueOf(e, d)
	if !ok || !w.store(v, e.Program.Out.Last(), e.Call.DType) {
		return nil
	}
	return given(e, v)
}

// storedIn is some of the result of an edited program, rounded to a type.
func (s *subject) storedIn(e *Entry, d *program.Edited, to stored, some *program.Some) (program.Value, error) {
	k, err := s.m.values(e)
	if err != nil {
		return program.Value{}, err
	}
	v, err := k.EvalSome(d, some)
	if err != nil {
		return v, err
	}
	if v.Bound == nil {
		v.Bound = make([]float64, len(v.Data))
	}
	to.store(v, v.Shape[len(v.Shape)-1], e.Call.DType)
	return v, nil
}

// store rounds a value in its place; it reports whether its rows have such groups.
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
		step := 0.0
		for i := range x {
			if w.most > 0 || w.top > 0 {
				x[i], b[i] = floats.Round(model, x[i]), 0
			}
			step = max(step, math.Abs(x[i]))
		}
		step = float64(float32(step / max(w.most, w.top, 1)))
		for i := range x {
			switch {
			case w.top > 0:
				if step > 0 {
					x[i] = floats.Round(model, float64(float32(w.round(float64(float32(x[i]/step)))*step)))
				}
			case w.round != nil:
				lo, hi := w.round(x[i]-b[i]), w.round(x[i]+b[i])
				x[i], b[i] = (lo+hi)/2, (hi-lo)/2
			case w.most == 0:
				lo, hi := floats.Round(w.dtype, x[i]-b[i]), floats.Round(w.dtype, x[i]+b[i])
				x[i], b[i] = (lo+hi)/2, (hi-lo)/2
			case step > 0:
				x[i] = floats.Round(model, float64(float32(math.RoundToEven(float64(float32(x[i]/step)))*step)))
			}
		}
	}
	return true
}

// reads has an input in fewer bits.
func (w stored) reads(s *search, e *Entry, at program.Place) *program.Edited {
	t, ed := e.signed(s.m), e.Program.Edit()
	all := t.Copies(at)
	for _, i := range all {
		in := e.Call.In[t.Steps[i].Index]
		v := program.Value{Shape: t.Steps[i].Shape, Data: append([]float64(nil), in.Data...), Bound: make([]float64, len(in.Data))}
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

// valueOf is the result of an edited program, nil for the entry's own, with its bounds; not shared.
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
	v := program.Value{Shape: x.Shape, Data: append([]float64(nil), x.Data...), Bound: make([]float64, len(x.Data))}
	copy(v.Bound, x.Bound)
	return v, true
}

// given has a value for its result.
func given(e *Entry, v program.Value) *program.Edited {
	ed := e.Program.Edit()
	v.Shape = e.Program.Out.Shape()
	ed.Return(ed.Other(v))
	return ended(ed)
}
