package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// takenTwice applies the operation to its own result.
func takenTwice(s *subject, e *Entry) Mistake {
	own := s.m.List.At(e.Node)
	if !insertable(s, own, e.Node.Pass) {
		return Mistake{}
	}
	return Mistake{Kind: "operation.twice", Place: order.NameOf(own.Name).Role(), Of: operationTerm(own), Source: own.Name, Edit: placed(edit.Place{Arg: result})}
}

// firstHalf leaves the second half of the channels unchanged.
func firstHalf(s *subject, e *Entry) Mistake {
	own, width := s.m.List.At(e.Node), e.Program.Out.Last()
	if width%2 != 0 || width < 4 || len(own.Weights) > 0 || !insertable(s, own, e.Node.Pass) {
		return Mistake{}
	}
	d := edit.Edit{At: []edit.Place{{Arg: result}}, Map: edit.Map{By: 2}}
	return Mistake{Kind: "channels.first-alone", N: width / 2, M: width, Edit: d.Text()}
}

// inputIs reads a wrong tensor of the layer for an input, or adds a wrong tensor to the input. The tensor is the first of the modules that the layer
// has.
func inputIs(kind Kind, input int, modules ...string) usually {
	return func(s *subject, e *Entry) Mistake {
		layer := order.NameOf(s.m.List.At(e.Node).Name)
		steps := inputOf(e, input)
		for _, module := range modules {
			if name := layer.Here(module).String(); layer.Within() && len(steps) > 0 && s.m.List.Index(name) >= 0 {
				own := s.value(e, e.Program.Result(steps[0]))
				return Mistake{Kind: kind, Place: order.NameOf(name).Role(), Of: own, By: tensorTerm(name), For: own, Source: name, Edit: placed(editPlaces(s, e, steps)...)}
			}
		}
		return Mistake{}
	}
}

// streamIs reads stream n of a stack as the first input, in place of the right stream.
func streamIs(n int) usually {
	return func(s *subject, e *Entry) Mistake {
		steps := inputOf(e, 0)
		if len(steps) == 0 || len(e.Items) == 0 || e.Items[0] == nil {
			return Mistake{}
		}
		name := s.m.List.At(e.Inputs[0]).Name
		return Mistake{Kind: "input.stream", Place: order.NameOf(name).Role(), Of: tensorTerm(name), N: n, M: *e.Items[0], Source: name, Edit: placed(editPlaces(s, e, steps)...)}
	}
}

// ofAnotherLayer is a tensor or weight of another layer.
func ofAnotherLayer(of Term, layer int, module string) Mistake {
	return inAll(Mistake{Kind: "instance.of-another-layer", Place: of.Name, Of: of}, order.InLayer(layer, module).String())
}

// keysOfAnother reads the shared keys or values of a wrong layer of the same kind.
func keysOfAnother(s *subject, e *Entry) Mistake {
	own := s.m.List.At(e.Node)
	steps, from := inputOf(e, 0), otherSource(s.m.List.Config, own.Layer)
	if len(steps) == 0 || from < 0 {
		return Mistake{}
	}
	m := ofAnotherLayer(tensorTerm(s.m.List.At(e.Inputs[0]).Name), from, order.NameOf(own.Name).Module())
	m.Edit = placed(editPlaces(s, e, steps)...)
	return m
}

// otherSource is the first layer that computes keys and has the type of the sharing layer, except the layer whose keys are shared. It is −1 without
// such a layer.
func otherSource(c *order.Config, sharing int) int {
	for i := range c.FirstShared() {
		if sharing >= 0 && sharing < c.NumLayers && c.LayerTypes[i] == c.LayerTypes[sharing] && i != c.KVSource(sharing) {
			return i
		}
	}
	return -1
}

// Weights.

// weightHas is a mistake of the operation's first weight.
func weightHas(of func(c *order.Config, e *Entry, w order.Weight) Mistake) usually {
	return func(s *subject, e *Entry) Mistake {
		if len(e.Weights) == 0 {
			return Mistake{}
		}
		w := e.Weights[0]
		m := of(s.m.List.Config, e, w)
		m.Of, m.Place = weightTerm(w.Name), order.NameOf(w.Name).Role()
		return m
	}
}

// weightIs is the given mistake of the operation's first weight.
func weightIs(m Mistake) usually {
	return weightHas(func(*order.Config, *Entry, order.Weight) Mistake { return m })
}

// weightOf reads a weight of the entry's layer, or of no layer, in place of the operation's weight.
func weightOf(module string) usually {
	return func(s *subject, e *Entry) Mistake {
		if len(e.Weights) == 0 {
			return Mistake{}
		}
		own, other := e.Weights[0].Name, order.NameOf(s.m.List.At(e.Node).Name).Here(module+".weight").String()
		return Mistake{Kind: "weight.other", Place: order.NameOf(own).Role(), By: weightTerm(other), For: weightTerm(own), Source: other}
	}
}

// weightOfNextLayer reads the same weight of the next layer. The last layer reads the weight of the first layer.
func weightOfNextLayer(s *subject, e *Entry) Mistake {
	if len(e.Weights) == 0 {
		return Mistake{}
	}
	own := e.Weights[0].Name
	return ofAnotherLayer(weightTerm(own), (s.m.List.At(e.Node).Layer+1)%s.m.List.Config.NumLayers, order.NameOf(own).Module())
}

// notLoaded is a gain that was not loaded. Its memory has the initial numbers, and the factor is 1.
func notLoaded(_ *order.Config, e *Entry, _ order.Weight) Mistake {
	if len(stepsOf(e, "1+w")) > 0 {
		return Mistake{Kind: "weight.zero"}
	}
	return Mistake{Kind: "weight.one"}
}

// halfOfRows and halfOfColumns have 0 in the second half of a weight.
func halfOfRows(_ *order.Config, _ *Entry, w order.Weight) Mistake {
	return Mistake{Kind: "weight.rows-others", Runs: makeRuns(sourceRun{From: w.Shape[0] / 2, To: w.Shape[0], Is: isZero})}
}

func halfOfColumns(_ *order.Config, _ *Entry, w order.Weight) Mistake {
	cols := w.Shape[len(w.Shape)-1]
	return Mistake{Kind: "weight.columns-cut", N: cols - cols/2, M: cols}
}

// inGroups is a weight in 4 bits, with groups of 32 columns if the rows have more than one such group.
func inGroups(_ *order.Config, _ *Entry, w order.Weight) Mistake {
	if cols := w.Shape[len(w.Shape)-1]; cols%32 == 0 && cols > 32 {
		return rounded(Int4, 32)
	}
	return rounded(Int4, ByRow)
}

// headsBySize reads the rows of all heads as [head_dim, heads]. otherPairs reads the rows of each head in the order of the other rotary embedding.
func headsBySize(c *order.Config, _ *Entry, _ order.Weight) Mistake {
	return Mistake{Kind: interleavedKind, N: c.HeadDim * c.NumHeads, M: c.HeadDim, K: c.NumHeads}
}

func otherPairs(c *order.Config, _ *Entry, _ order.Weight) Mistake {
	return Mistake{Kind: "weight.rope-rows", N: c.HeadDim, M: 2, K: c.HeadDim / 2}
}

func timesRootWidth(c *order.Config, _ *Entry, _ order.Weight) Mistake {
	return Mistake{Kind: "weight.multiplied", By: literal(rootWidth(c))}
}

// Frequencies and positions.

// frequencyIs is a mistake of an operation that turns positions by frequencies.
func frequencyIs(of func(c *order.Config, f *frequencies) Mistake) usually {
	return func(s *subject, e *Entry) (m Mistake) {
		if f := frequenciesIn(s, e); f != nil {
			if m = of(s.m.List.Config, f); m != (Mistake{}) {
				m.Place = frequencySite
			}
		}
		return m
	}
}

// thetaIs has a wrong base.
func thetaIs(of func(c *order.Config) float64) usually {
	return frequencyIs(func(c *order.Config, f *frequencies) Mistake {
		x, old := of(c), f.base
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
func unscaledTurns(_ *order.Config, f *frequencies) Mistake {
	switch {
	case !f.pure:
		return Mistake{Kind: "rope.scaling-left-out"}
	case f.scale != 1:
		return Mistake{Kind: "rope.factor-left-out", By: literal(1 / f.scale)}
	}
	return Mistake{}
}

// scaledAsFull are frequencies with the scaling of full layers.
func scaledAsFull(c *order.Config, _ *frequencies) Mistake {
	r := c.Rope[order.Full]
	if r.Type == "llama3" {
		return Mistake{Kind: "rope.llama3", By: literal(r.Factor), For: literal(float64(r.OriginalPositions))}
	}
	return Mistake{Kind: "rope.frequencies-multiplied", X: some(1 / r.Factor)}
}

// allScaled divides all frequencies by the factor of long waves.
func allScaled(_ *order.Config, f *frequencies) Mistake {
	if f.setting("low_freq_factor") == 0 || f.setting("factor") == 0 {
		return Mistake{}
	}
	return Mistake{Kind: "rope.scaling-of-all", X: some(f.setting("factor"))}
}

// attentionFactor is YaRN's factor of cosines and sines for a scaling.
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
		if len(edit.StepsOf(e.Program, program.Angle)) == 0 {
			return Mistake{}
		}
		m := m
		m.Place = positionsSite
		return m
	}
}

// Caches.

// slotsAre is a mistake of a cache. For a mistake of some slots, runs gives the wrong slots of a cache with n slots. The pass writes the last now
// slots.
func slotsAre(m Mistake, runs func(n, now int) (sourceRun, bool)) usually {
	return decoding(func(s *subject, e *Entry) Mistake {
		step, axis, ok := cache(e.Program)
		if !ok || len(e.Program.Steps[step].Args) != 2 {
			return Mistake{}
		}
		m := m
		m.Place, m.Of = cacheSite, cachedTerm(order.NameOf(s.m.List.At(e.Node).Name).Role())
		if runs != nil {
			run, ok := runs(e.Program.Steps[step].Shape[axis], e.Program.Steps[step].Args[1].Shape[axis])
			if !ok {
				return Mistake{}
			}
			m.Runs = makeRuns(run)
		}
		return m
	})
}

// lastStale keeps the token of the pass before in the last slot. firstZero has zeros in the first slot.
func lastStale(n, now int) (sourceRun, bool) { return slotRun(n-1, n-1-now), n > now }
func firstZero(n, _ int) (sourceRun, bool)   { return slotRun(0, isZero), n > 1 }
