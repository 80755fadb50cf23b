package foreign

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
)

// idNames are names of the token ids: the name in the order, and names in other tools.
var idNames = spelling.Endings(spelling.Activation, spelling.Words, order.InputIDs)

// ids gives the token ids their name and their two axes.
func (f *fitter) ids() {
	if !slices.ContainsFunc(f.sources, func(s capture.Source) bool { return s.Name == order.InputIDs }) {
		found := f.named(isIDs)
		if len(found) == 0 && f.list != nil {
			found = f.named(isBatch)
		}
		if len(found) != 1 {
			return
		}
		for i := range f.sources {
			if f.sources[i].Name == found[0] {
				f.sources[i].Name = order.InputIDs
			}
		}
		f.note("%s is taken for %s", found[0], order.InputIDs)
	}
	for _, s := range f.sources {
		if s.Name == order.InputIDs && s.DType.Float() {
			f.note("%s", noIntegers(s))
			break
		}
	}
	flat := 0
	passes := map[int]int{}
	for i := range f.sources {
		s := &f.sources[i]
		if s.Name != order.InputIDs || s.Firing > 0 || !isIDs(*s) {
			continue
		}
		if len(s.Shape) < 2 {
			s.Shape = append([]int{1}, append(slices.Clone(s.Shape), 1)[:1]...)
			flat++
		}
		passes[s.Pass] = s.Shape[1]
	}
	if flat > 0 {
		f.note("%s without a batch axis: read as [1, tokens]", order.InputIDs)
	}
	for pass := 0; passes[pass] > 0; pass++ {
		f.tokens = append(f.tokens, passes[pass])
	}
}

// named lists the names of token ids, other than the name in the order, that belong to a tensor accepted by like.
func (f *fitter) named(like func(capture.Source) bool) []string {
	var found []string
	for _, s := range f.sources {
		if slices.Contains(idNames, s.Name) && like(s) && !slices.Contains(found, s.Name) && !f.known(s.Name) {
			found = append(found, s.Name)
		}
	}
	return found
}

// isIDs reports whether a tensor can be the ids of a pass of one sequence: integers of any width and of shape [1, T] or [T], or one token as
// a scalar.
func isIDs(s capture.Source) bool {
	return s.DType.Integer() && (len(s.Shape) < 2 || len(s.Shape) == 2 && s.Shape[0] == 1)
}

// isBatch reports whether a tensor can be the ids of several sequences: integers [B, T].
func isBatch(s capture.Source) bool {
	return s.DType.Integer() && len(s.Shape) == 2 && s.Shape[0] > 1
}

// element is the place of a tensor in a list: the number of the element, and the name in the element.
type element struct {
	at   int
	name string
}

// fedElements counts the elements of a list that have token ids, and reports whether the elements are passes: the first element has any number of
// tokens, and every later element one token for each sequence. The shape is [1] or [1, 1], or [B] or [B, 1] for a batch of B. The count is 0 if the
// first element has no ids; why is set if the ids are not integers.
func fedElements(sources []capture.Source, found []element, first int) (of int, steps bool, why string) {
	sequences, fed := 1, map[int]bool{}
	named := func(i int) bool { return slices.Contains(idNames, found[i].name) }
	is := func(i int) bool { return named(i) && (isIDs(sources[i]) || isBatch(sources[i])) }
	for i, s := range sources {
		if named(i) && s.DType.Float() {
			why = noIntegers(s)
		}
		if is(i) && found[i].at == first && isBatch(s) {
			sequences = s.Shape[0]
		}
	}
	steps = true
	for i, s := range sources {
		if !is(i) {
			continue
		}
		tokens, _ := hooks.Elements(s.Shape)
		one := tokens == sequences && (len(s.Shape) < 2 || s.Shape[0] == sequences)
		fed[found[i].at], steps = true, steps && (found[i].at == first || one)
	}
	if !fed[first] {
		return 0, steps, why
	}
	return len(fed), steps, why
}

// noIntegers is the note on token ids of a float dtype.
func noIntegers(s capture.Source) string {
	return fmt.Sprintf("%s is %s: token ids are integers, of any width; save them as int64", s.Name, s.DType)
}
