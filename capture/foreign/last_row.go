package foreign

import (
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// logits adds missing axes of size 1 in front of the logits of a recorded run, and marks logits that have only the row of the last token. Axes that
// the manifest gives are not changed.
func (f *fitter) logits(t *capture.Trace) {
	ids, err := t.IDs()
	if f.list == nil || err != nil || len(t.Manifest().Scope.Positions) > 0 {
		return
	}
	for _, pass := range ids {
		f.tokens = append(f.tokens, len(pass))
	}
	var last []*capture.Source
	batch := 0
	for i := range f.sources {
		s := &f.sources[i]
		e, ok := f.list.Lookup(s.Name)
		if _, own := t.Manifest().Axes[s.Name]; !ok || own && len(s.Shape) != 3 || s.LastRow || !ofLogits(e) {
			continue
		}
		if shape, one := f.lastRow(e, s); one {
			s.Shape, s.LastRow = shape, true
			last = append(last, s)
		} else if with := f.leading(e, s); s.Pass < len(f.tokens) && f.tokens[s.Pass] == 1 && f.fits(e, s.Pass, with) {
			s.Shape = with
			batch++
		}
	}
	if batch > 0 {
		f.note("%s without leading axes of size 1: read with them", tensors(batch))
	}
	f.lastRows(last)
}

// ofLogits reports whether an entry has a row of logits for each token.
func ofLogits(e *order.Entry) bool { return strings.ReplaceAll(e.Axes, " ", "") == "btv" }

// lastRow is the shape in the order of logits of only the last token: [1, 1, V].
func (f *fitter) lastRow(e *order.Entry, s *capture.Source) ([]int, bool) {
	if !ofLogits(e) || s.Pass >= len(f.tokens) || f.tokens[s.Pass] < 2 {
		return nil, false
	}
	vocabulary := int(e.Shape[2])
	if len(s.Shape) == 0 || len(s.Shape) > 3 || s.Shape[len(s.Shape)-1] != vocabulary {
		return nil, false
	}
	for _, d := range s.Shape[:len(s.Shape)-1] {
		if d != 1 {
			return nil, false
		}
	}
	return []int{1, 1, vocabulary}, true
}

// lastRows notes the tensors that have only the row of the last token, and the number of rows that are compared.
func (f *fitter) lastRows(last []*capture.Source) {
	rows, logits := 0, true
	for _, s := range last {
		rows += f.tokens[s.Pass]
		logits = logits && s.Name == "logits"
	}
	switch {
	case len(last) == 0:
	case logits:
		f.note("logits of only the last token in %s: %d of %d rows compared there", passesOf(len(last)), len(last), rows)
	default:
		f.note("%s with only the row of the last token: %d of %d rows compared there", tensors(len(last)), len(last), rows)
	}
}
