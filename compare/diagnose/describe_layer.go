package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// mostOtherLayers is how many other layers are taken.
const mostOtherLayers = 8

// otherLayersWeights describes entries of one layer that all weights of another layer give, the bias and the matrix at once.
func otherLayersWeights(x *difference) *Description {
	s := x.search
	own, in := layerOf(s.m.List.Entries[s.first.Node.Entry].Name)
	if !in || len(s.first.Weights) < 2 || len(layersOf(s, s.entries)) > 1 {
		return nil
	}
	var others []string
	for k := range s.m.List.Entries {
		name := s.m.List.Entries[k].Name
		layer, ok := layerOf(name)
		if ok && layer != own && Role(name) == Role(s.m.List.Entries[s.first.Node.Entry].Name) && !slices.Contains(others, layer) {
			others = append(others, layer)
		}
	}
	for _, layer := range others[:min(len(others), mostOtherLayers)] {
		d, err := givenBy(s, func(e *Entry) *program.Edited { return s.weightsOf(e, layer) })
		if s.failed(err) {
			return nil
		}
		if d != nil {
			d.Kind, d.Of, d.Like = "described.layer", theResult, Term{Kind: ALayer, Name: strings.TrimSuffix(layer, ".")}
			return d
		}
	}
	return nil
}

// weightsOf is an entry's program with the weights of another layer; nil where it has not all of them.
func (s *subject) weightsOf(e *Entry, layer string) *program.Edited {
	ed := e.Program.Edit()
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		if st.Prim != program.Weight && st.Prim != program.Matrix && st.Prim != program.Dense {
			continue
		}
		w, ok := s.weightOf(beside(e.Weights[st.Index].Name, layer+"x"))
		if !ok || w.Name == e.Weights[st.Index].Name {
			return nil
		}
		rows, err := s.m.Weights(w)
		if s.failed(err) {
			return nil
		}
		a, b := rows.Size()
		if c, d := e.Call.W[st.Index].Size(); a != c || b != d {
			return nil
		}
		ed.OtherWeight(i, rows)
	}
	return ended(ed)
}
