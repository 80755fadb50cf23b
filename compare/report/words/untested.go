package words

import "github.com/tracediff/tracediff/compare"

// untested says all that a comparison did not look at.
func untested(doc *Document, r *compare.Result) {
	doc.Line("%s", covered(r))
	notCompared(doc, r)
	incomplete(doc, r)
	expected(doc, r)
	missing(doc, r)
	if n := len(r.Untested); n > 0 {
		doc.field("untested", "constant, zero or empty: %s", Some(r.Untested))
	}
	if n := len(r.Unverified); n > 0 {
		doc.field("not judged", "%s", Some(r.Unverified))
	}
	if r.Isolation != nil {
		reasons(doc, r.Isolation)
	}
	if r.Sight == nil {
		return
	}
	sight(doc, r.Sight)
}
