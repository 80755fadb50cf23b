package diagnose

import (
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// usually is the mistake of an entry, the zero value where the entry cannot have it.
type usually func(s *subject, e *Entry) Mistake

// here is the list's entry.
func (s *subject) listed(e *Entry) *order.Entry { return s.m.List.At(e.Node) }

// decoding has a mistake in the passes after the first alone.
func decoding(of usually) usually {
	return func(s *subject, e *Entry) Mistake {
		if e.Node.Pass == 0 {
			return Mistake{}
		}
		return of(s, e)
	}
}

// always is one mistake whatever the entry.
func always(m Mistake) usually { return func(*subject, *Entry) Mistake { return m } }

// firstOf is the first mistake of some that an entry may have.
func firstOf(all ...usually) usually {
	return func(s *subject, e *Entry) (m Mistake) {
		for _, of := range all {
			if m = of(s, e); m != (Mistake{}) {
				break
			}
		}
		return m
	}
}

// stepsOf are the entry's steps of a name, and places those of a primitive.
func stepsOf(e *Entry, site string, prims ...program.Prim) (all []int) {
	for i := range e.Program.Steps {
		if st := &e.Program.Steps[i]; st.Site == site && (len(prims) == 0 || slices.Contains(prims, st.Prim)) {
			all = append(all, i)
		}
	}
	return all
}

// at are the places of steps, each once.
func (s *subject) placesAt(e *Entry, steps []int) (all []program.Place) {
	for _, i := range steps {
		if at := e.signed(s.m).Of(i); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// edited is the mistake of an edit of steps; none where there are no steps.
func (s *subject) editAt(e *Entry, kind Kind, steps []int, d program.Edit) Mistake {
	if d.At = s.placesAt(e, steps); len(d.At) == 0 {
		return Mistake{}
	}
	return Mistake{Kind: kind, Place: s.site(e, steps[0]), Of: s.step(e, steps[0]), Edit: d.Text()}
}

// numberIs is another number in the steps of a name.
func numberIs(site string, to func(s *subject, old float64) float64) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := stepsOf(e, site, program.Number)
		if len(steps) == 0 {
			return Mistake{}
		}
		return otherConstant(s, e, steps[0], number{value: to(s, e.Program.Steps[steps[0]].Value)}, s.placesAt(e, steps)...)
	}
}

// just is another number, whatever it was, and ofConfig one that the configuration gives.
func just(x float64) func(*subject, float64) float64 {
	return func(*subject, float64) float64 { return x }
}

func ofConfig(of func(c *order.Config) float64) func(*subject, float64) float64 {
	return func(s *subject, _ float64) float64 { return of(s.m.List.Config) }
}

// roundedScale is the constant of a scale, rounded to bfloat16 in float32, and in 16 bits not rounded.
func roundedScale(s *subject, e *Entry) Mistake {
	steps := stepsOf(e, "constant", program.Number)
	if len(steps) == 0 {
		return Mistake{}
	}
	old := e.Program.Steps[steps[0]].Value
	if e.Call.DType == hooks.F32 {
		return otherConstant(s, e, steps[0], number{value: floats.Round(hooks.BF16, old), rounded: hooks.BF16}, s.placesAt(e, steps)...)
	}
	m := s.editAt(e, "number.not-rounded", steps, program.Edit{Class: program.Constant, Value: old})
	m.Of, m.For, m.DType = s.numberWords(e.Program, steps[0]), literal(old), e.Call.DType
	return m
}

// leftOut is the operation left out: its result is an input.
func leftOut(input int) usually {
	return func(s *subject, e *Entry) Mistake {
		t := e.signed(s.m)
		out := t.Of(t.Source(t.Out))
		for _, d := range t.LeftOut() {
			if from := &t.Steps[t.Source(t.At(d.From))]; d.At[0] == out && from.Prim == program.Input && from.Index == input {
				return Mistake{Kind: "operation.left-out", Place: s.site(e, t.Source(t.Out)), By: s.value(e, t.At(d.From)), Edit: d.Text()}
			}
		}
		return Mistake{}
	}
}

// stepLeftOut is a step that hands an operand on.
func stepLeftOut(site string, arg int) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := stepsOf(e, site)
		if len(steps) == 0 || arg >= len(e.Program.Steps[steps[0]].Args) {
			return Mistake{}
		}
		at := e.signed(s.m).Of(steps[0])
		return s.editAt(e, "step.left-out", steps[:1], program.Edit{Class: program.LeftOut, From: program.Place{Step: at.Step, Arg: arg}})
	}
}

// streamsUnscaled has the further parts of a stack as they are read.
func streamsUnscaled(s *subject, e *Entry) Mistake {
	t := e.signed(s.m)
	out := &t.Steps[t.Source(t.Out)]
	for _, d := range t.LeftOut() {
		step := t.Copies(d.At[0])[0]
		from := &t.Steps[t.Source(t.At(d.From))]
		if from.Prim == program.Input && from.Index >= 2 && from.Index%2 == 0 && slices.ContainsFunc(out.Args, func(v program.Var) bool { return t.Source(v) == step }) {
			return s.editAt(e, "step.left-out", []int{step}, d)
		}
	}
	return Mistake{}
}

// biasLeftOut is a linear operation without its bias.
func biasLeftOut(s *subject, e *Entry) Mistake {
	for _, i := range e.Program.Of(program.Affine) {
		if len(e.Program.Steps[i].Args) == 3 {
			d := program.Edit{Class: program.LeftOut, At: []program.Place{{Step: e.signed(s.m).Of(i).Step, Arg: 2}}}
			return Mistake{Kind: "bias.left-out", Place: s.site(e, i), Edit: d.Text()}
		}
	}
	return Mistake{}
}

// stepIs is a step of a name, or each of a primitive, as another primitive.
func stepIs(site string, own, prim program.Prim) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := e.Program.Of(own)
		if site != "" {
			steps = stepsOf(e, site, own)
		}
		m := s.editAt(e, "step.exchanged", steps, program.Edit{Class: program.Exchanged, Prim: prim})
		m.By, m.For = Term{Kind: Primitive, Name: prim.String()}, Term{Kind: Primitive, Name: own.String()}
		return m
	}
}

// mistakeOf is the first of some edits of steps that is one.
func editOf(kind Kind, of func(t *program.Parts) []program.Edit, which func(t *program.Parts, d program.Edit) bool) usually {
	return func(s *subject, e *Entry) Mistake {
		t := e.signed(s.m)
		for _, d := range of(t) {
			if which(t, d) {
				step := t.Copies(d.At[0])[0]
				return Mistake{Kind: kind, Place: s.site(e, step), Of: s.step(e, step), Edit: d.Text()}
			}
		}
		return Mistake{}
	}
}

// inputStep is the step of an input.
func inputStep(e *Entry, input int) []int {
	for i := range e.Program.Steps {
		if st := &e.Program.Steps[i]; st.Prim == program.Input && st.Index == input {
			return []int{i}
		}
	}
	return nil
}

// inputMapped has the elements of an input in another order, and those of the result back.
func inputMapped(input int, kind Kind, back bool, of func(c *order.Config, axes int) program.Map) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := inputStep(e, input)
		if len(steps) == 0 {
			return Mistake{}
		}
		m := s.editAt(e, kind, steps, program.Edit{Class: program.Mapped, Map: of(s.m.List.Config, len(e.Program.Steps[steps[0]].Shape)), Back: back})
		m.Of = s.value(e, e.Program.Result(steps[0]))
		return m
	}
}

// resultMapped has the elements of the result in another order.
func resultMapped(kind Kind, of func(c *order.Config) program.Map) usually {
	return func(s *subject, e *Entry) Mistake {
		t := e.signed(s.m)
		d := program.Edit{Class: program.Mapped, At: []program.Place{{Step: t.Of(t.Source(t.Out)).Step, Arg: program.Returned}}, Map: of(s.m.List.Config)}
		return Mistake{Kind: kind, Place: s.site(e, t.Source(t.Out)), Of: theResult, Edit: d.Text()}
	}
}

// insertedIs is a number that the result has too much; none where the entry gives none.
func insertedIs(kind Kind, x func(s *subject, e *Entry) (float64, bool)) usually {
	return func(s *subject, e *Entry) Mistake {
		by, ok := x(s, e)
		if !ok {
			return Mistake{}
		}
		return Mistake{Kind: kind, Of: theResult, X: some(by), Edit: placed(program.Place{Arg: result})}
	}
}

func byNumber(x float64) func(*subject, *Entry) (float64, bool) {
	return func(*subject, *Entry) (float64, bool) { return x, true }
}

// takenTwice is the operation of its own result.
func takenTwice(s *subject, e *Entry) Mistake {
	own := s.listed(e)
	if !insertable(s, own, e.Node.Pass) {
		return Mistake{}
	}
	return Mistake{Kind: "operation.twice", Place: Role(own.Name), Of: operationTerm(own), Source: own.Name, Edit: placed(program.Place{Arg: result})}
}

// inputIs is another tensor of the layer, which is read in place of an input.
func inputIs(input int, module string) usually {
	return func(s *subject, e *Entry) Mistake {
		layer, ok := layerOf(s.listed(e).Name)
		steps := inputStep(e, input)
		if len(steps) == 0 || !ok {
			return Mistake{}
		}
		name := layer + module
		return Mistake{Kind: "input.other", Place: Role(name), By: tensorTerm(name), For: s.value(e, e.Program.Result(steps[0])), Source: name, Edit: placed(s.placesAt(e, steps)...)}
	}
}

// inputPlus is an input with another tensor of the layer added, the first that the layer has.
func inputPlus(input int, modules ...string) usually {
	return func(s *subject, e *Entry) Mistake {
		layer, ok := layerOf(s.listed(e).Name)
		steps := inputStep(e, input)
		for _, module := range modules {
			if name := layer + module; ok && len(steps) > 0 && s.m.List.Index(name) >= 0 {
				return Mistake{Kind: "tensor.added", Place: Role(name), Of: s.value(e, e.Program.Result(steps[0])), By: tensorTerm(name), Source: name, Edit: placed(s.placesAt(e, steps)...)}
			}
		}
		return Mistake{}
	}
}

// streamIs is another stream of the stack of which the first input is one.
func streamIs(n int) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := inputStep(e, 0)
		if len(steps) == 0 || len(e.Items) == 0 || e.Items[0] == nil {
			return Mistake{}
		}
		name := s.m.List.At(e.Inputs[0]).Name
		return Mistake{Kind: "input.stream", Place: Role(name), Of: tensorTerm(name), N: n, M: *e.Items[0], Source: name, Edit: placed(s.placesAt(e, steps)...)}
	}
}

// keysOfAnother is the keys or values of another layer of the same kind than that with which a layer shares.
func keysOfAnother(s *subject, e *Entry) Mistake {
	steps, from := inputStep(e, 0), otherSource(s.m.List.Config, s.listed(e).Layer)
	if len(steps) == 0 || from < 0 {
		return Mistake{}
	}
	of := tensorTerm(s.m.List.At(e.Inputs[0]).Name)
	m := Mistake{Kind: "instance.of-another-layer", Place: of.String(), Of: of, Edit: placed(s.placesAt(e, steps)...)}
	return inAll(m, "layers."+strconv.Itoa(from)+"."+Module(s.listed(e).Name))
}

// nextLayer is the first input's slice, along an axis, of the layer after the own; of the last it is that of the first.
func nextSlice(axis int) usually {
	return func(s *subject, e *Entry) Mistake {
		own, steps := s.listed(e).Layer, inputStep(e, 0)
		if len(steps) == 0 || own < 0 {
			return Mistake{}
		}
		next := (own + 1) % s.m.List.Config.NumLayers
		m := s.editAt(e, "index.part", steps, program.Edit{Class: program.Index, Map: program.Map{Axis: axis, N: own, By: next, Other: 1}})
		m.Of, m.N, m.M = s.value(e, e.Program.Result(steps[0])), next, own
		return m
	}
}

// ofWeight is a mistake of the operation's first weight.
func ofWeight(m Mistake) usually {
	return ofWeightBy(func(*subject, *Entry, order.Weight) Mistake { return m })
}

// ofWeightBy is ofWeight with a mistake that the weight gives.
func ofWeightBy(of func(s *subject, e *Entry, w order.Weight) Mistake) usually {
	return func(s *subject, e *Entry) Mistake {
		if len(e.Weights) == 0 {
			return Mistake{}
		}
		w := e.Weights[0]
		m := of(s, e, w)
		if m != (Mistake{}) && m.Place == "" {
			m.Of, m.Place = weightTerm(w.Name), Role(w.Name)
		}
		return m
	}
}

// weightIs is a weight of the entry's layer, or one of no layer, in place of the operation's.
func weightIs(module string) usually {
	return ofWeightBy(func(s *subject, e *Entry, w order.Weight) Mistake {
		layer, _ := layerOf(s.listed(e).Name)
		other := layer + module + ".weight"
		return Mistake{Kind: "weight.other", Place: Role(w.Name), By: weightTerm(other), For: weightTerm(w.Name), Source: other}
	})
}

// weightOfNextLayer is the same weight of the next layer, and of the last the first.
func weightOfNextLayer(s *subject, e *Entry, w order.Weight) Mistake {
	next := (s.listed(e).Layer + 1) % s.m.List.Config.NumLayers
	m := Mistake{Kind: "instance.of-another-layer", Place: Role(w.Name), Of: weightTerm(w.Name)}
	return inAll(m, "layers."+strconv.Itoa(next)+"."+Module(w.Name))
}

// notLoaded is a gain that is left as it was made: its product is 1.
func notLoaded(_ *subject, e *Entry, _ order.Weight) Mistake {
	if len(stepsOf(e, "1+w")) > 0 {
		return Mistake{Kind: "weight.zero"}
	}
	return Mistake{Kind: "weight.one"}
}

// halved are the columns, or the rows, of which the second half is 0.
func halfOfRows(_ *subject, _ *Entry, w order.Weight) Mistake {
	return Mistake{Kind: "weight.rows-others", Of: weightTerm(w.Name), Place: Role(w.Name), Runs: makeRuns(Run{From: w.Shape[0] / 2, To: w.Shape[0], Is: isZero})}
}

func halfOfColumns(_ *subject, _ *Entry, w order.Weight) Mistake {
	if len(w.Shape) != 2 {
		return Mistake{}
	}
	return Mistake{Kind: "weight.columns-cut", N: w.Shape[1] - w.Shape[1]/2, M: w.Shape[1]}
}

// inGroups is a weight in 4 bits, with groups of 32 where it has any.
func inGroups(_ *subject, _ *Entry, w order.Weight) Mistake {
	if len(w.Shape) == 2 && w.Shape[1]%32 == 0 && w.Shape[1] > 32 {
		return rounded(Int4, 32)
	}
	return rounded(Int4, ByRow)
}

// headsBySize has the rows of all heads read as [head_dim, heads], and otherPairs the rows of each head in the order of the other rotary embedding.
func headsBySize(s *subject, _ *Entry, _ order.Weight) Mistake {
	c := s.m.List.Config
	return Mistake{Kind: interleavedKind, N: c.HeadDim * c.NumHeads, M: c.HeadDim, K: c.NumHeads}
}

func otherPairs(s *subject, _ *Entry, _ order.Weight) Mistake {
	d := s.m.List.Config.HeadDim
	return Mistake{Kind: "weight.rope-rows", N: d, M: 2, K: d / 2}
}

// maskIs is another window of the masks that an operation makes.
func maskIs(kind Kind, window func(s *subject, old float64) float64) usually {
	return func(s *subject, e *Entry) Mistake {
		all := e.Program.Of(program.Mask)
		if len(all) == 0 {
			return Mistake{}
		}
		old := e.Program.Steps[all[0]].Value
		m := Mistake{Kind: kind, Place: maskSite, X: some(window(s, old)), Right: some(old)}
		if kind == "mask.window-added" {
			m.X, m.Right, m.By = Number{}, Number{}, literal(m.X.Value)
		}
		return m
	}
}

// ofSoftmax is a mistake of an operation that has a softmax.
func ofSoftmax(m Mistake) usually {
	return func(s *subject, e *Entry) Mistake {
		all := e.Program.Softmaxes()
		if len(all) == 0 {
			return Mistake{}
		}
		m := m
		if m.Place = s.site(e, all[0]); m.Kind == "softmax.axis" {
			m.Edit = program.Edit{At: s.placesAt(e, all[:1]), Map: program.Map{Axis: 1}}.Text()
		}
		return m
	}
}

// clippedTanh is a cap that cuts off.
func clippedTanh(s *subject, e *Entry) Mistake {
	all := e.Program.Of(program.Tanh)
	if len(all) == 0 {
		return Mistake{}
	}
	return Mistake{Kind: "tanh.clip", Place: s.site(e, all[0]), Edit: placed(s.placesAt(e, all[:1])...)}
}

// activationIs is another activation, or none for "".
func activationIs(name string) usually {
	return func(s *subject, e *Entry) Mistake {
		for _, own := range activationsOf {
			all := pieces(e.Program, own.Kind())
			if len(all) == 0 || own.Kind() == name {
				continue
			}
			m := Mistake{Kind: "activation.other", Place: s.site(e, all[0].last), For: function(own.Kind()), By: function(name)}
			if name == "" {
				m.Kind, m.By = "activation.left-out", Term{}
			}
			return m
		}
		return Mistake{}
	}
}

// twoSided is the quantile of both sides in place of that of one, and sampled a deviation that divides by n−1.
func twoSided(s *subject, e *Entry) Mistake {
	return s.editAt(e, "number.two-sided-quantile", stepsOf(e, "multiplier", program.Number), program.Edit{})
}

func sampled(s *subject, e *Entry) Mistake {
	return s.editAt(e, "count.divisor", stepsOf(e, "variance"), program.Edit{Class: program.Count, Value: -1})
}

// firstHalf is an operation that the first half of the channels takes part in alone.
func firstHalf(s *subject, e *Entry) Mistake {
	own, width := s.listed(e), e.Program.Out.Last()
	d := program.Edit{At: []program.Place{{Arg: result}}, Map: program.Map{By: 2}}
	if width%2 != 0 || width < 4 || len(own.Weights) > 0 || !insertable(s, own, e.Node.Pass) {
		return Mistake{}
	}
	return Mistake{Kind: "channels.first-alone", N: width / 2, M: width, Edit: d.Text()}
}

// Frequencies.

// frequencyIs is a mistake of an operation that turns positions by frequencies.
func frequencyIs(of func(s *subject, f *frequencies) Mistake) usually {
	return func(s *subject, e *Entry) Mistake {
		f := frequenciesIn(s, e)
		if f == nil {
			return Mistake{}
		}
		m := of(s, f)
		if m != (Mistake{}) {
			m.Place = frequencySite
		}
		return m
	}
}

// thetaIs is another base.
func thetaIs(of func(c *order.Config) float64) usually {
	return frequencyIs(func(s *subject, f *frequencies) Mistake {
		x := of(s.m.List.Config)
		old := f.base
		if !f.pure {
			old = f.setting("theta")
		}
		switch {
		case old == 0 || math.Abs(old/x-1) < 1e-4:
			return Mistake{}
		case f.pure:
			return Mistake{Kind: "rope.theta", X: some(x), Right: some(old)}
		}
		return Mistake{Kind: "rope.setting", Of: Term{Kind: AName, Name: "theta"}, X: some(x), Right: some(old)}
	})
}

// unscaledTurns are frequencies without their scaling.
func unscaledTurns(_ *subject, f *frequencies) Mistake {
	switch {
	case !f.pure:
		return Mistake{Kind: "rope.scaling-left-out"}
	case f.scale != 1:
		return Mistake{Kind: "rope.factor-left-out", By: literal(1 / f.scale)}
	}
	return Mistake{}
}

// scaledAsFull are frequencies with the scaling of full layers.
func scaledAsFull(s *subject, _ *frequencies) Mistake {
	r := s.m.List.Config.Rope[order.Full]
	if r.Type == "llama3" {
		return Mistake{Kind: "rope.llama3", By: literal(r.Factor), For: literal(float64(r.OriginalPositions))}
	}
	return Mistake{Kind: "rope.frequencies-multiplied", X: some(1 / r.Factor)}
}

// allScaled are frequencies that are all divided by the factor, not those of long waves alone.
func allScaled(_ *subject, f *frequencies) Mistake {
	if f.setting("low_freq_factor") == 0 || f.setting("factor") == 0 {
		return Mistake{}
	}
	return Mistake{Kind: "rope.scaling-of-all", X: some(f.setting("factor"))}
}

// attentionFactor is YaRN's factor of cosines and sines, of a scaling.
func attentionFactor(s *subject, e *Entry) (float64, bool) {
	f := frequenciesIn(s, e)
	if f == nil || f.setting("factor") <= 1 {
		return 0, false
	}
	return 0.1*math.Log(f.setting("factor")) + 1, true
}

// positionIs is a mistake of positions.
func positionIs(m Mistake) usually {
	return func(_ *subject, e *Entry) Mistake {
		if len(e.Program.Of(program.Angle)) == 0 {
			return Mistake{}
		}
		m := m
		m.Place = positionsSite
		return m
	}
}

// Caches.

// slotsAre are other slots of a cache: runs gives them of so many slots, of which so many are the pass's.
func slotsAre(kind Kind, runs func(n, now int) []Run) usually {
	return decoding(func(s *subject, e *Entry) Mistake {
		step, axis, ok := cache(e.Program)
		if !ok || len(e.Program.Steps[step].Args) != 2 {
			return Mistake{}
		}
		n, now := e.Program.Steps[step].Shape[axis], e.Program.Steps[step].Args[1].Shape()[axis]
		m := Mistake{Kind: kind, Place: cacheSite, Of: cachedTerm(Role(s.listed(e).Name))}
		if runs == nil {
			return m
		}
		if all := runs(n, now); len(all) > 0 {
			m.Runs = makeRuns(all...)
			return m
		}
		return Mistake{}
	})
}

// lastStale has the last slot of the pass before in the last slot, and firstZero zeros in the first.
func lastStale(n, now int) []Run {
	if n <= now {
		return nil
	}
	return []Run{slotRun(n-1, n-1-now)}
}

func firstZero(n, _ int) []Run {
	if n < 2 {
		return nil
	}
	return []Run{slotRun(0, isZero)}
}

// in8Bits is a cache of whole numbers, with a scale for each token and head.
func in8Bits(s *subject, e *Entry) Mistake {
	m := slotsAre("cache.rounded", nil)(s, e)
	if m != (Mistake{}) {
		m.N, m.By = 8, Term{Kind: ScalesOfTokensAndHeads}
	}
	return m
}

// otherSource is a layer that has keys of its own, of the type of a sharing layer, and is not the one that it shares with; −1 for none.
func otherSource(c *order.Config, sharing int) int {
	for i := range c.FirstShared() {
		if sharing >= 0 && sharing < c.NumLayers && c.LayerTypes[i] == c.LayerTypes[sharing] && i != c.KVSource(sharing) {
			return i
		}
	}
	return -1
}

// ofRepeated reports whether an edit reads by turns what is repeated along the next axis, such as the heads of keys for those of a group: an operand that is the second input.
func ofRepeated(t *program.Parts, d program.Edit) bool {
	if d.At[0].Arg < 0 || d.Map.Kind != program.Reread || d.Map.Other != d.Map.Axis+1 || d.Map.By != 0 {
		return false
	}
	v := t.At(d.At[0])
	st := &t.Steps[t.Source(v)]
	return st.Prim == program.Input && st.Index == 1 && v.Shape()[d.Map.Other] == 1
}
