package propose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// inList reports whether all tensors of a dump are in elements of a list, of several. Nothing says then whether an element is a pass or
// a layer.
func inList(t *capture.Trace) bool {
	elements := map[string]bool{}
	for _, r := range t.Records() {
		m := names.ListText.FindStringSubmatch(r.Name)
		if m == nil || r.Pass > 0 {
			return false
		}
		elements[m[1]] = true
	}
	return len(elements) > 1
}

// provenLayers reports whether the elements of a list are layers: two of them have the values that the reference has in two layers.
func (p *Proposal) provenLayers() bool {
	return slices.ContainsFunc(p.Lines, func(l Line) bool { return l.proven && strings.HasPrefix(l.From, "{L}.") })
}

// provenPasses reports whether the elements of a list are passes: the token ids of each element are those of the reference's pass, and
// they differ between passes.
func (p *Proposal) provenPasses(t, ref *capture.Trace) (bool, error) {
	i := slices.IndexFunc(p.Lines, func(l Line) bool {
		return slices.Equal(l.To, []string{order.InputIDs}) && strings.HasPrefix(l.From, "{S}.")
	})
	if i < 0 || ref == nil {
		return false, nil
	}
	var first []int64
	passes, differ := 0, false
	for _, r := range t.Records() {
		m := names.ListText.FindStringSubmatch(r.Name)
		if m == nil || names.Escape(m[2]) != elementOf(p.Lines[i].From) {
			continue
		}
		pass, err := strconv.Atoi(m[1])
		if err != nil {
			return false, nil
		}
		far, ok := ref.Lookup(pass, order.InputIDs)
		if !ok {
			return false, nil
		}
		mine, err := tensors.OfTrace(t, r).Integers()
		if err != nil {
			return false, err
		}
		theirs, err := tensors.OfTrace(ref, far).Integers()
		if err != nil || mine == nil || !slices.Equal(mine, theirs) {
			return false, err
		}
		if passes++; first == nil {
			first = mine
		}
		differ = differ || !slices.Equal(mine, first)
	}
	return passes > 1 && differ, nil
}

// orPasses merges two readings of a list into choices: p reads the elements as layers, other reads the elements as passes.
func (p *Proposal) orPasses(other *Proposal) *Proposal {
	out := &Proposal{Known: p.Known, Swapped: p.Swapped}
	at := map[string]int{}
	add := func(from string, lines []Line, more int, why string) {
		key := elementOf(from)
		if _, ok := at[key]; !ok {
			at[key] = len(out.Choices)
			out.Choices = append(out.Choices, Choice{From: "*." + key})
		}
		c := &out.Choices[at[key]]
		for _, l := range lines {
			l.Why += why
			c.Lines = append(c.Lines, l)
		}
		c.More += more
	}
	for _, reading := range []struct {
		of  *Proposal
		why string
	}{{p, ""}, {other, "; if the elements are passes"}} {
		for _, l := range reading.of.Lines {
			add(l.From, []Line{l}, 0, reading.why)
		}
		for _, c := range reading.of.Choices {
			add(c.From, c.Lines, c.More, reading.why)
		}
	}
	for _, c := range other.Copies {
		if _, ok := at[elementOf(c.From)]; !ok {
			out.Copies = append(out.Copies, c)
		}
	}
	for _, name := range other.Left {
		if _, ok := at[elementOf(name)]; !ok && !slices.Contains(out.Left, name) {
			out.Left = append(out.Left, name)
		}
	}
	return out
}

// elementOf is a name without the number of the element.
func elementOf(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}
