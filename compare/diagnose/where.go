package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// where says in which layers and passes an edit is, and in which the same step is right. in is from the unexplained entries, and rightIn from further
// entries of the role. A right entry counts only if the edit would show in the entry. Both texts are empty if no right entry counts. in is also empty
// if the words of the mistake have the places.
func (s *search) where(h survivor) (in, rightIn string, err error) {
	if s.m.Rest == nil {
		return "", "", nil
	}
	rest, err := s.m.Rest()
	if err != nil {
		return "", "", err
	}
	other, placed := h.inOthers()
	h.hypothesis = other
	var without []*Entry
	for _, e := range rest {
		if shows, err := shows(s, h, e); err != nil {
			return "", "", err
		} else if shows {
			without = append(without, e)
		}
	}
	if len(without) == 0 {
		return "", "", nil
	}
	rightIn = rightElsewhere(s, s.entries, without)
	if s.m.Unread > 0 {
		rightIn += unreadWords(s.m.Unread)
	}
	if placed {
		return "", rightIn, nil
	}
	return placesOf(s, s.entries, without), rightIn, nil
}

// rightElsewhere says where a step is right although it is wrong in some entries: in further layers, and in further passes of the same layers.
func rightElsewhere(s *search, wrong, right []*Entry) string {
	layers := layersOf(s, wrong)
	var other, same []*Entry
	for _, e := range right {
		if slices.ContainsFunc(layersOf(s, []*Entry{e}), func(l string) bool { return slices.Contains(layers, l) }) {
			same = append(same, e)
		} else {
			other = append(other, e)
		}
	}
	var all []string
	if len(other) > 0 {
		all = append(all, layerWords(s, other))
	}
	if len(same) > 0 {
		passes := passWords(passesOf(same))
		if len(other) > 0 {
			passes = sameLayersIn(passes)
		}
		all = append(all, passes)
	}
	return strings.Join(all, andWords)
}

// shows reports whether an edit gives a clearly different result than a right entry has.
func shows(s *search, h survivor, e *Entry) (bool, error) {
	e = e.Small()
	if !slices.Equal(windowsOf(e), windowsOf(s.first)) { // masks with different windows are different operations
		return false, nil
	}
	d := s.edited(h.hypothesis, e)
	if d == nil || s.err != nil {
		return false, s.err
	}
	k, err := s.m.values(e)
	if err != nil {
		return false, err
	}
	x, err := k.Eval(d)
	if err != nil {
		return false, outside(err)
	}
	need := shownElements
	if e.exact() {
		need /= 2
	}
	left, err := e.Leaves(x, need)
	return len(left) >= need, err
}

// windowsOf are the windows of an entry's masks.
func windowsOf(e *Entry) []float64 {
	var all []float64
	for _, i := range edit.StepsOf(e.Program, program.Mask) {
		all = append(all, e.Program.Steps[i].Sight().Window)
	}
	return all
}

// placesOf names the layers and passes of the wrong entries. It names only the layers if only the layers tell wrong entries from right entries, only
// the passes if only the passes do, and both otherwise. The text does not depend on the order of the entries.
func placesOf(s *search, wrong, right []*Entry) string {
	layers, passes := layersOf(s, wrong), passesOf(wrong)
	byLayer := !slices.ContainsFunc(layersOf(s, right), func(l string) bool { return slices.Contains(layers, l) })
	byPass := !slices.ContainsFunc(passesOf(right), func(p int) bool { return slices.Contains(passes, p) })
	inLayers := firstOfLayers(layers)
	switch {
	case byLayer && !byPass:
		return inLayers
	case byPass && !byLayer:
		return passWords(passes)
	}
	return listed([]string{inLayers, passWords(passes)})
}

// mostPlaces is the largest number of layers, or passes, that are listed.
const mostPlaces = 4

// layersOf lists the names of entries without a layer, then the layers of the other entries.
func layersOf(s *search, entries []*Entry) []string {
	var all []int
	var named []string
	for _, e := range entries {
		entry := &s.m.List.Entries[e.Node.Entry]
		if name := order.NameOf(entry.Name); !name.Within() {
			named = append(named, entry.Name)
		} else if n := name.Layer(); n >= 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	slices.Sort(named)
	for _, n := range slices.Compact(all) {
		named = append(named, order.LayerPath(n))
	}
	return slices.Compact(named)
}

func passesOf(entries []*Entry) []int {
	var all []int
	for _, e := range entries {
		all = append(all, e.Node.Pass)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
