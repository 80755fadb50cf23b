package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// usually gives the mistake of an entry; the zero value if the entry cannot have the mistake.
type usually func(s *subject, e *Entry) Mistake

// decoding leaves a mistake out of the first pass.
func decoding(of usually) usually {
	return func(s *subject, e *Entry) Mistake {
		if e.Node.Pass == 0 {
			return Mistake{}
		}
		return of(s, e)
	}
}

// always gives the same mistake for every entry.
func always(m Mistake) usually { return func(*subject, *Entry) Mistake { return m } }

// stepsOf lists the entry's steps with a name and one of the given primitives, or any primitive if none is given.
func stepsOf(e *Entry, site string, prims ...program.Prim) (all []int) {
	for i := range e.Program.Steps {
		if st := &e.Program.Steps[i]; st.Site == site && (len(prims) == 0 || slices.Contains(prims, st.Prim)) {
			all = append(all, i)
		}
	}
	return all
}

// inputOf are the steps of an input: one, or none.
func inputOf(e *Entry, input int) []int {
	for i := range e.Program.Steps {
		if st := &e.Program.Steps[i]; st.Prim == program.Input && st.Index() == input {
			return []int{i}
		}
	}
	return nil
}

// editPlaces lists the places of steps, each place once.
func editPlaces(s *subject, e *Entry, steps []int) (all []edit.Place) {
	for _, i := range steps {
		if at := e.signed(s.m).PlaceOf(i); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// saidOf is the mistake of an edit of steps, as a search names it; the zero value for an edit without a place.
func saidOf(s *subject, e *Entry, d edit.Edit) Mistake {
	if len(d.At) == 0 {
		return Mistake{}
	}
	m := editMistake(s, e, d)
	m.Edit = d.Text()
	return m
}

// editOf is the mistake of the first edit of steps for which meant holds.
func editOf(of func(edit.Edits) []edit.Edit, meant func(t *edit.StepIndex, d edit.Edit) bool) usually {
	return func(s *subject, e *Entry) Mistake {
		t := e.signed(s.m)
		all := of(t.Edits())
		if k := slices.IndexFunc(all, func(d edit.Edit) bool { return meant(t, d) }); k >= 0 {
			return saidOf(s, e, all[k])
		}
		return Mistake{}
	}
}

// leftOut leaves the operation out: the result is an input.
func leftOut(input int) usually {
	return editOf(edit.Edits.LeftOut, func(t *edit.StepIndex, d edit.Edit) bool {
		from := &t.Steps[t.At(d.From).Step]
		return d.At[0] == t.PlaceOf(t.Out.Step) && from.Prim == program.Input && from.Index() == input
	})
}

// streamsUnscaled reports whether an edit leaves the scale of the further parts of a stack out.
func streamsUnscaled(t *edit.StepIndex, d edit.Edit) bool {
	step, from := t.Copies(d.At[0])[0], &t.Steps[t.At(d.From).Step]
	return from.Prim == program.Input && from.Index() >= 2 && from.Index()%2 == 0 &&
		slices.ContainsFunc(t.Steps[t.Out.Step].Args, func(v program.Var) bool { return v.Step == step })
}

// biasLeftOut reports whether an edit leaves a bias out.
func biasLeftOut(_ *edit.StepIndex, d edit.Edit) bool { return d.At[0].Arg == 2 }

// ofRepeated reports whether an edit is of the second input, and each index of the next axis reads the input again, as the heads of a group read one
// KV head. With the edit, the heads read the KV heads in turn.
func ofRepeated(t *edit.StepIndex, d edit.Edit) bool {
	if d.At[0].Arg < 0 || d.Map.Kind != edit.Reread || d.Map.Other != d.Map.Axis+1 || d.Map.By != 0 {
		return false
	}
	v := t.At(d.At[0])
	st := &t.Steps[v.Step]
	return st.Prim == program.Input && st.Index() == 1 && v.Shape[d.Map.Other] == 1
}

// mapsOf are the edits that put elements in another order.
func mapsOf(all edit.Edits) []edit.Edit { return all.Maps(nil) }

// valued reports whether an edit has a number, and does not change the primitive.
func valued(x float64) func(*edit.StepIndex, edit.Edit) bool {
	return func(_ *edit.StepIndex, d edit.Edit) bool { return d.Value == x && d.Prim == 0 }
}

// stepLeftOut leaves a step out: the step hands on an operand.
func stepLeftOut(site string, arg int) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := stepsOf(e, site)
		if len(steps) == 0 || arg >= len(e.Program.Steps[steps[0]].Args) {
			return Mistake{}
		}
		at := editPlaces(s, e, steps[:1])
		return saidOf(s, e, edit.Edit{Class: edit.LeftOut, At: at, From: edit.Place{Step: at[0].Step, Arg: arg}})
	}
}

// stepIs exchanges the primitive own for prim in the steps of a name, or in all steps if the name is empty.
func stepIs(site string, own, prim program.Prim) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := edit.StepsOf(e.Program, own)
		if site != "" {
			steps = stepsOf(e, site, own)
		}
		return saidOf(s, e, edit.Edit{Class: edit.Exchanged, At: editPlaces(s, e, steps), Prim: prim})
	}
}

// sampled is a deviation that divides by n−1.
func sampled(s *subject, e *Entry) Mistake {
	return saidOf(s, e, edit.Edit{Class: edit.Count, At: editPlaces(s, e, stepsOf(e, "variance")), Value: -1})
}

// inputMapped puts the elements of an input in another order and, with back, puts the elements of the result back in order.
func inputMapped(input int, back bool, of func(c *order.Config, axes int) edit.Map) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := inputOf(e, input)
		if len(steps) == 0 {
			return Mistake{}
		}
		axes := len(e.Program.Steps[steps[0]].Shape)
		m := of(s.m.List.Config, axes)
		if max(m.Axis, m.Other) >= axes {
			return Mistake{}
		}
		return saidOf(s, e, edit.Edit{Class: edit.Mapped, At: editPlaces(s, e, steps), Map: m, Back: back})
	}
}

// resultMapped puts the elements of the result in another order.
func resultMapped(of func(c *order.Config) edit.Map) usually {
	return func(s *subject, e *Entry) Mistake {
		t, m := e.signed(s.m), of(s.m.List.Config)
		if max(m.Axis, m.Other) >= len(t.Out.Shape) {
			return Mistake{}
		}
		return saidOf(s, e, edit.Edit{Class: edit.Mapped, At: []edit.Place{{Step: t.PlaceOf(t.Out.Step).Step, Arg: edit.Returned}}, Map: m})
	}
}

// nextSlice reads the slice of the next layer, along an axis of the first input. The last layer reads the slice of the first layer.
func nextSlice(axis int) usually {
	return func(s *subject, e *Entry) Mistake {
		own, steps := s.m.List.At(e.Node).Layer, inputOf(e, 0)
		if len(steps) == 0 || own < 0 || axis >= len(e.Program.Steps[steps[0]].Shape) {
			return Mistake{}
		}
		return saidOf(s, e, edit.Edit{Class: edit.Index, At: editPlaces(s, e, steps), Map: edit.Map{Axis: axis, N: own, By: (own + 1) % s.m.List.Config.NumLayers, Other: 1}})
	}
}

// Numbers.

// numberIs has a wrong number in the steps of a name.
func numberIs(site string, to func(c *order.Config, old float64) float64) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := stepsOf(e, site, program.Number)
		if len(steps) == 0 {
			return Mistake{}
		}
		return otherConstant(s, e, steps[0], number{value: to(s.m.List.Config, e.Program.Steps[steps[0]].Number().Value)}, editPlaces(s, e, steps)...)
	}
}

// numberTimes multiplies the number that is added in the steps of a name by a statistic of each row of the operand of the steps of another name.
func numberTimes(added, of, statistic string) usually {
	return func(s *subject, e *Entry) Mistake {
		sums, rows := stepsOf(e, added), stepsOf(e, of)
		if len(sums) == 0 || len(rows) == 0 || len(e.Program.Steps[sums[0]].Args) < 2 {
			return Mistake{}
		}
		t := e.signed(s.m)
		number, operand := t.PlaceOf(sums[0]), t.PlaceOf(rows[0])
		number.Arg, operand.Arg = 1, 0
		step := e.Program.Steps[sums[0]].Args[1].Step
		return Mistake{
			Kind: "number.times-statistic", Place: s.site(e, step), Of: numberTerm(s, e.Program, step), By: s.value(e, e.Program.Steps[rows[0]].Args[0]),
			For: Term{Kind: RowStatistic, Name: statistic}, Edit: placed(number, operand),
		}
	}
}

// just gives the same number for every old number, and ofConfig gives a number of the configuration.
func just(x float64) func(*order.Config, float64) float64 {
	return func(*order.Config, float64) float64 { return x }
}

func ofConfig(of func(c *order.Config) float64) func(*order.Config, float64) float64 {
	return func(c *order.Config, _ float64) float64 { return of(c) }
}

func squared(_ *order.Config, old float64) float64 { return old * old }

// roundedScale is the constant of a scale: rounded to bfloat16 in a float32 model, and not rounded in a model of 16 bits.
func roundedScale(s *subject, e *Entry) Mistake {
	steps := stepsOf(e, "constant", program.Number)
	if len(steps) == 0 {
		return Mistake{}
	}
	n := number{value: e.Program.Steps[steps[0]].Number().Value}
	if e.Call.DType == hooks.F32 {
		n = number{value: floats.Round(hooks.BF16, n.value), rounded: hooks.BF16}
	}
	m := otherConstant(s, e, steps[0], n, editPlaces(s, e, steps)...)
	if n.rounded == 0 {
		m.Kind, m.Called, m.X, m.For, m.DType = "number.not-rounded", "", Number{}, literal(n.value), e.Call.DType
	}
	return m
}

// twoSided has the quantile of both sides in place of the quantile of one side.
func twoSided(s *subject, e *Entry) Mistake {
	steps := stepsOf(e, "multiplier", program.Number)
	if len(steps) == 0 {
		return Mistake{}
	}
	return Mistake{Kind: "number.two-sided-quantile", Place: s.site(e, steps[0]), Of: numberTerm(s, e.Program, steps[0]), Edit: placed(editPlaces(s, e, steps)...)}
}

// insertedIs multiplies the result by a number, or caps the result, if the model does not. It is no mistake if the entry gives no number.
func insertedIs(kind Kind, x func(s *subject, e *Entry) (float64, bool)) usually {
	return func(s *subject, e *Entry) Mistake {
		by, ok := x(s, e)
		if !ok {
			return Mistake{}
		}
		return Mistake{Kind: kind, Of: theResult, X: some(by), Edit: placed(edit.Place{Arg: result})}
	}
}

func byNumber(x float64) func(*subject, *Entry) (float64, bool) {
	return func(*subject, *Entry) (float64, bool) { return x, true }
}

func byRootWidth(s *subject, _ *Entry) (float64, bool) { return rootWidth(s.m.List.Config), true }

// Masks, softmaxes and activations.

// maskIs has a wrong window in the masks that an operation makes.
func maskIs(kind Kind, window func(c *order.Config, old float64) float64) usually {
	return func(s *subject, e *Entry) Mistake {
		all := edit.StepsOf(e.Program, program.Mask)
		if len(all) == 0 {
			return Mistake{}
		}
		old := e.Program.Steps[all[0]].Sight().Window
		x := window(s.m.List.Config, old)
		if kind == "mask.window-added" {
			return Mistake{Kind: kind, Place: maskSite, By: literal(x)}
		}
		return Mistake{Kind: kind, Place: maskSite, X: some(x), Right: some(old)}
	}
}

func wider(by float64) func(*order.Config, float64) float64 {
	return func(_ *order.Config, old float64) float64 { return old + by }
}

// softmaxIs is a mistake of an operation with a softmax, and tanhIs is a mistake of an operation with a tanh. Both have the place of the first step.
func softmaxIs(m Mistake, axis int) usually {
	return atFirst(m, func(p *program.Program) []int { return edit.Softmaxes(p) }, edit.Map{Axis: axis})
}

func tanhIs(kind Kind) usually {
	return atFirst(Mistake{Kind: kind}, func(p *program.Program) []int { return edit.StepsOf(p, program.Tanh) }, edit.Map{})
}

func atFirst(m Mistake, of func(p *program.Program) []int, to edit.Map) usually {
	return func(s *subject, e *Entry) Mistake {
		all := of(e.Program)
		if len(all) == 0 {
			return Mistake{}
		}
		m := m
		m.Place, m.Edit = s.site(e, all[0]), edit.Edit{At: editPlaces(s, e, all[:1]), Map: to}.Text()
		return m
	}
}

// activationIs has a wrong activation, or no activation for "".
func activationIs(name string) usually {
	return func(s *subject, e *Entry) Mistake {
		for _, own := range activationsOf {
			all := pieces(e.Program, own.Kind())
			switch m := (Mistake{Kind: "activation.other", For: function(own.Kind()), By: function(name)}); {
			case len(all) == 0 || own.Kind() == name:
			case name == "":
				return Mistake{Kind: "activation.left-out", Place: s.site(e, all[0].last), For: m.For}
			default:
				m.Place = s.site(e, all[0].last)
				return m
			}
		}
		return Mistake{}
	}
}
