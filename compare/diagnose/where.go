package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// where says in which layers and passes an edit is: in those of the entries that are left, and not in others of the role. An entry
// that is right tells it only where the edit would show. It is empty where no entry does.
func (s *search) where(h survivor) (string, error) {
	if s.m.Rest == nil {
		return "", nil
	}
	rest, err := s.m.Rest()
	if err != nil {
		return "", err
	}
	var without []*Entry
	for _, e := range rest {
		if shows, err := s.shows(h, e); err != nil {
			return "", err
		} else if shows {
			without = append(without, e)
		}
	}
	if len(without) == 0 {
		return "", nil
	}
	return s.placesOf(s.entries, without), nil
}

// shows reports whether an edit gives another result than a right entry has.
func (s *search) shows(h survivor, e *Entry) (bool, error) {
	e = e.Small()
	if !slices.Equal(windowsOf(e), windowsOf(s.first)) { // a mask without a window is another operation
		return false, nil
	}
	d := h.make(e)
	if d == nil || s.err != nil {
		return false, s.err
	}
	k, err := e.values()
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
	for _, i := range e.Program.Of(program.Mask) {
		all = append(all, e.Program.Steps[i].Value)
	}
	return all
}

// placesOf are the layers and passes of some entries, where others are right: as little as tells them apart, and all of both where neither
// does alone. It depends on the entries, and not on their order.
func (s *search) placesOf(wrong, right []*Entry) string {
	layers, passes := s.layersOf(wrong), passesOf(wrong)
	byLayer := !slices.ContainsFunc(s.layersOf(right), func(l string) bool { return slices.Contains(layers, l) })
	byPass := !slices.ContainsFunc(passesOf(right), func(p int) bool { return slices.Contains(passes, p) })
	inLayers := strings.Join(layers[:min(len(layers), mostPlaces)], ", ")
	if n := len(layers) - mostPlaces; n > 0 {
		inLayers += fmt.Sprintf(" and %d more", n)
	}
	switch {
	case byLayer && !byPass:
		return inLayers
	case byPass && !byLayer:
		return passWords(passes)
	}
	return inLayers + ", " + passWords(passes)
}

// mostPlaces is how many layers, or passes, are listed.
const mostPlaces = 4

// layersOf are the layers of entries, those without one by their name.
func (s *search) layersOf(entries []*Entry) []string {
	var all []int
	var named []string
	for _, e := range entries {
		entry := &s.m.List.Entries[e.Node.Entry]
		if layer, ok := layerOf(entry.Name); !ok {
			named = append(named, entry.Name)
		} else if n, err := strconv.Atoi(strings.Trim(strings.TrimPrefix(layer, "layers"), ".")); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	slices.Sort(named)
	for _, n := range slices.Compact(all) {
		named = append(named, fmt.Sprintf("layers.%d", n))
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

// passWords say "pass 1", "passes 1 and 2", "passes 1 to 9", or "the prompt".
func passWords(passes []int) string {
	n := len(passes)
	switch {
	case n == 1 && passes[0] == 0:
		return "pass 0 (the prompt)"
	case n == 1:
		return fmt.Sprintf("pass %d", passes[0])
	case passes[n-1]-passes[0] == n-1:
		return fmt.Sprintf("passes %d to %d", passes[0], passes[n-1])
	}
	return "passes " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(passes)), ", "), "[]")
}
