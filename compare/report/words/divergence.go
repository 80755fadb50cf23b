package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/order"
)

// divergence writes the block about the first row that does not match. What the reader acts on comes first: the place, the mistake, its proof and
// the next step; then the size of the error, the rows before and the effect downstream. Without a name the size comes before the description.
func divergence(doc *Document, r *compare.Result) {
	d := r.Divergence
	if d == nil {
		return
	}
	row := &d.Row
	doc.blank()
	doc.say(Bad, FirstDivergence, "%s (%s)", row.Key(), row.Class)
	f, _ := d.Bug()
	named := f != nil && !unnamed(d)
	if named {
		name(doc, d, false)
		next(doc, r, d)
	}
	doc.field("what", "%s", row.Detail)
	both(doc, r, row)
	if row.Name == order.InputIDs {
		script(doc, r, row.Pass)
	}
	if unnamed(d) {
		worstSlices(doc, row)
	}
	size(doc, r, row)
	if !named { // what is known comes before what is not
		name(doc, d, false)
	}
	shortGap(doc, row)
	if !named {
		next(doc, r, d)
	}
	came(doc, d)
	code(doc, d.Code)
	downstream(doc, d)
}

// next says what to do now.
func next(doc *Document, r *compare.Result, d *compare.Divergence) {
	doc.block("next", d.Hints[:min(len(d.Hints), maxShort)]...)
	if f, _ := d.Bug(); len(d.Hints) == 0 && f != nil {
		what := Either(unnamed(d), "check this operation in your port", "correct this in your port")
		doc.field("next", "%s, %s", what, Either(r.Given, "dump its tensors and compare again", "then run the same command again"))
	}
}

// size says how large the difference is, and where in the tensor it is largest.
func size(doc *Document, r *compare.Result, row *compare.Row) {
	m := row.Metrics
	if m == nil || row.Name == order.InputIDs {
		return
	}
	failed, limit := ErrorOf(row)
	both := row.Decided == compare.ByBoth && row.Facts.Seen != compare.SeenPast // else the sentence above has the error
	if (row.Decided == compare.ByIsolation || both) && m.Pattern == nil && failed != "-" && limit != "-" {
		doc.field("error", "%s, limit %s", failed, limit)
	}
	if m.Worst != nil && row.Facts.Seen != compare.SeenKeys {
		doc.field("largest at", "%s: %s %s, %s %s", m.Spell(m.Worst), r.Local.Name.Label, digits(m.LocalAt), r.Reference.Name.Label, digits(m.ReferenceAt))
	}
}

// shortGap says why an error past its limit is no drift.
func shortGap(doc *Document, row *compare.Row) {
	switch {
	case row.Gap == "":
	case row.Facts.Standing == compare.StandingNone:
		doc.field("not drift", "this operation was not verified: %s", row.Gap)
	default:
		doc.field("not drift", "this operation is correct, but not every operation before it was verified: %s", row.Gap)
	}
}

// came says which of its inputs match.
func came(doc *Document, d *compare.Divergence) {
	switch parts := parentsOf(d, maxShort, ""); {
	case parts != nil:
		doc.field("computed from", "%s", strings.Join(parts, ", "))
	case d.LastMatch != "":
		doc.field("last match", "%s", d.LastMatch)
	}
	if len(d.Between) > 0 {
		doc.field("not compared", "%s", amount.Some(d.Between, maxShort))
	}
}

// parentsOf are the first of the nearest compared inputs with their verdicts, and how many more there are.
func parentsOf(d *compare.Divergence, most int, and string) (parts []string) {
	for i, a := range d.Parents {
		if i == most {
			return append(parts, and+More(len(d.Parents)-i))
		}
		parts = append(parts, fmt.Sprintf("%s %s", a.Key, a.Verdict))
	}
	return parts
}
