package compare

import "github.com/tracediff/tracediff/capture"

// printed is what is known of a pair of which one side is a text of rounded numbers, see [capture.Printed]; nil where both are tensors.
// Whoever opens such a text makes it the nearest tensor to the other side's that would be printed like it. A mismatch of that is one of
// whatever was printed, and nothing else is known: [Judge] never lets such a row match.
func (p *pair) printed() *capture.Printed {
	for _, v := range []capture.Record{p.l.Rec, p.r.Rec} {
		if v.Printed != nil {
			return v.Printed
		}
	}
	return nil
}

// notePrinted says how much of a tensor a text has.
func (p *pair) notePrinted() {
	if t := p.printed(); t != nil {
		p.remark(NotePrinted, "the text has %d of %d elements, rounded to %g: the error is at least this", t.Elements, t.All, 2*t.Half)
	}
}
