package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostOtherLayers is how many other layers are tried.
const mostOtherLayers = 8

// otherLayersWeights describes entries of a layer with all weights, such as the matrix and the bias, taken from a second layer.
func otherLayersWeights(x *difference) *Description {
	s := x.search
	own := order.NameOf(s.m.List.Entries[s.first.Node.Entry].Name)
	if !own.Within() || len(s.first.Weights) < 2 || len(layersOf(s, s.entries)) > 1 {
		return nil
	}
	var others []string
	for k := range s.m.List.Entries {
		name := order.NameOf(s.m.List.Entries[k].Name)
		if name.Within() && !name.SameLayer(own) && name.Role() == own.Role() && !slices.Contains(others, name.Path()) {
			others = append(others, name.Path())
		}
	}
	for _, layer := range others[:min(len(others), mostOtherLayers)] {
		d, err := givenBy(s, func(e *Entry) *program.Edited { return layerWeights(s.subject, e, layer) })
		if s.failed(err) {
			return nil
		}
		if d != nil {
			d.Kind, d.Of, d.Like = "described.layer", theResult, Term{Kind: ALayer, Name: layer}
			s.draft(d).proposes = []Mistake{{Kind: "weights.of-another-layer", By: d.Like}}
			return d
		}
	}
	return nil
}

// layerWeights gives an entry's program the weights of the layer at a path. The result is nil if the layer is the entry's own, lacks a
// weight, or has a weight of a different size.
func layerWeights(s *subject, e *Entry, layer string) *program.Edited {
	ed := edit.NewEditor(e.Program)
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		if st.Prim != program.Weight && st.Prim != program.Matrix && st.Prim != program.Dense {
			continue
		}
		w, ok := s.weightOf(order.NameOf(e.Weights[st.Index()].Name).Beside(order.NameOf(layer).Here("")).String())
		if !ok || w.Name == e.Weights[st.Index()].Name {
			return nil
		}
		rows, err := s.m.Weights(w)
		if s.failed(err) {
			return nil
		}
		a, b := rows.Size()
		if c, d := e.Call.W[st.Index()].Size(); a != c || b != d {
			return nil
		}
		ed.OtherWeight(i, rows)
	}
	return ended(ed)
}
