package edit

import (
	"fmt"
	"math"
	"strings"
)

// Text is the edit as a text without blanks that [ParseEdit] reads. Equal edits have equal texts.
func (d Edit) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d;%d;%x;%d,%d,%d,%d,%d;%t;", d.Class, d.Prim, math.Float64bits(d.Value), d.Map.Kind, d.Map.Axis, d.Map.Other, d.Map.By, d.Map.N, d.Back)
	for _, at := range append([]Place{d.From}, d.At...) {
		fmt.Fprintf(&b, "%x:%d,", at.Step, at.Arg)
	}
	return b.String()
}

// ParseEdit reads the text of an edit. The error says what is wrong with a text that [Edit.Text] has not written.
func ParseEdit(text string) (d Edit, err error) {
	head, places := text, ""
	if k := strings.LastIndexByte(text, ';'); k >= 0 {
		head, places = text[:k+1], text[k+1:]
	}
	var bits uint64
	if _, err := fmt.Sscanf(head, "%d;%d;%x;%d,%d,%d,%d,%d;%t;", &d.Class, &d.Prim, &bits, &d.Map.Kind, &d.Map.Axis, &d.Map.Other, &d.Map.By, &d.Map.N, &d.Back); err != nil {
		return Edit{}, fmt.Errorf("%q is not an edit: %w", text, err)
	}
	d.Value = math.Float64frombits(bits)
	for n, part := range strings.Split(strings.TrimSuffix(places, ","), ",") {
		var at Place
		if _, err := fmt.Sscanf(part, "%x:%d", &at.Step, &at.Arg); err != nil {
			return Edit{}, fmt.Errorf("%q is not an edit: place %d: %w", text, n, err)
		}
		if n == 0 {
			d.From = at
		} else {
			d.At = append(d.At, at)
		}
	}
	if d.Class > Inserted || len(d.At) == 0 {
		return Edit{}, fmt.Errorf("%q is not an edit: class %d, %d places", text, d.Class, len(d.At))
	}
	return d, nil
}
