package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// A Relation is a statement about the port's own tensor: some rows are zeros, or rows of another tensor, or elements are not finite. It is read off
// the tensor and holds to the bit. It predicts no other entry, so it is no [Mistake]. Two relations are the same if they are equal. The row of the
// kind in the catalogue makes the sentence. A field that the row does not use has its zero value.
type Relation struct {
	Kind Kind `json:"kind,omitempty"`
	// Place is the role of the tensor with the rows; "zeros" for rows of zeros.
	Place string `json:"place,omitempty"`
	// Of is the tensor or operation of the statement, and By has the rows that the port's rows are equal to.
	Of Term `json:"of,omitzero"`
	By Term `json:"by,omitzero"`
	// N of M rows are wrong. K is the index of the right row, or the distance in layers.
	N int `json:"n,omitempty"`
	M int `json:"m,omitempty"`
	K int `json:"k,omitempty"`
	// X is a number of the statement that is estimated from the results.
	X Number `json:"x,omitzero"`
	// At are the indexes of the elements or rows, in the first entry. From are the indexes of the rows that these rows are equal to, in the same order. From
	// is empty if the rows are in their own places, or if an axis has no order of its own.
	At   Spots `json:"at,omitempty"`
	From Spots `json:"from,omitempty"`
}

// NotAsDumped is the finding for entries that are right with the right values of a tensor, and wrong with the values that were dumped of it. They have so
// many elements, and for shown of these the dumped values allow no number that the right values allow.
func NotAsDumped(list *order.List, wrong []order.Node, of string, elements, shown int) *Finding {
	r := Relation{Kind: notAsDumpedKind, Place: order.NameOf(of).Role(), Of: tensorTerm(of)}
	f := &Finding{
		Name: r.name(), Class: edit.InputOf.String(), Entries: len(wrong), Elements: elements, Shown: shown,
		Page: r.page(order.NameOf(list.At(wrong[0]).Name).Role()),
	}
	layer := order.NameOf(of).Layer()
	if layer >= 0 && !slices.ContainsFunc(wrong, func(n order.Node) bool { return order.NameOf(list.At(n).Name).Layer() != layer }) {
		f.inLayer(order.LayerPath(layer))
	}
	return f
}

// name returns the relation as a finding has it, in words.
func (r Relation) name() Name { return Name{Relation: r, What: r.String(), Site: r.Place} }

// String is the relation as a sentence.
func (r Relation) String() string { return say(r.Kind, r.field) }

// page is the page that explains the relation for an entry of a role; empty without a page.
func (r Relation) page(role string) string {
	return pageIn(r.Kind, role, func(p Page) bool { return p.Of == nil || p.Of(r) })
}

// field fills a hole of the sentence, and reports whether the relation has a value for the hole. The hole {at} is filled with indexes, or with
// "elements" if the indexes are everywhere, and {from} with the indexes of the equal rows. The other holes are filled as for a mistake.
func (r Relation) field(name string) (words string, has bool) {
	switch name {
	case "at":
		return r.At.String(), r.At != ""
	case "from":
		return r.From.String(), r.From != ""
	}
	return Mistake{Kind: r.Kind, Of: r.Of, By: r.By, X: r.X, N: r.N, M: r.M, K: r.K}.field(name)
}

// Spots are indexes by what their axes count: "tokens=1,3;heads=0". The zero value is everywhere.
type Spots string

// spot is an axis with some of its indexes.
type spot struct {
	axis   int
	counts byte // the letter of what the axis counts
	at     []int
}

// mostIndexes is the largest number of indexes that are listed for an axis.
const mostIndexes = 4

// spotsOf lists, for each axis, the few indexes at which the elements with the given offsets lie. An axis is left out if the elements have all
// indexes of the axis, or more than [mostIndexes]. shape has the first axes of the first entry's result. The result is nil if the meaning of these
// axes is not known.
func spotsOf(s *search, shape, offsets []int) []spot {
	axes := s.m.List.Entries[s.first.Node.Entry].Axes
	if len(axes) != len(s.first.Program.Out.Shape) {
		return nil
	}
	var all []spot
	for a, size := range shape {
		inner := program.Size(shape[a+1:])
		var at []int
		for _, i := range offsets {
			if k := i / inner % size; !slices.Contains(at, k) {
				at = append(at, k)
			}
		}
		if slices.Sort(at); len(at) < size && len(at) <= mostIndexes {
			all = append(all, spot{a, axes[a], at})
		}
	}
	return all
}

// makeSpots writes indexes.
func makeSpots(all ...spot) Spots {
	var parts []string
	for _, s := range all {
		var at []string
		for _, i := range s.at {
			at = append(at, fmt.Sprint(i))
		}
		parts = append(parts, axisWords(s.counts)+"="+strings.Join(at, ","))
	}
	return Spots(strings.Join(parts, ";"))
}
