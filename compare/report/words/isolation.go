package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
)

// isolation sums up the recomputed operations, or says why no operation was recomputed.
func isolation(doc *Document, r *compare.Result) {
	s := r.Isolation
	if s == nil {
		if r.NotIsolated != "" {
			doc.blank()
			doc.Line("not certified: %s", r.NotIsolated)
		}
		return
	}
	doc.blank()
	text := fmt.Sprintf("recomputed %s on their own inputs: %d EXACT, %d ROUNDING, %d BUG", count(s.Certified, "entry", "entries"), s.Exact, s.Rounding, s.Bugs)
	text += counts(", ", number{int64(s.Layout), "LAYOUT"}, number{int64(s.Unidentified), "UNIDENTIFIED"}, number{int64(s.Unverified), "UNVERIFIED"},
		number{int64(s.NotIsolated), "not isolated"}, number{int64(s.Drift), "over their limit by drift only"})
	doc.Line("%s", text)
	askedFor(doc, s)
	reasons(doc, s)
	if s.Weakest != "" && s.WeakestPower > 0 {
		doc.Line("sensitivity: a %s scale error would have been detected in each (weakest: %s)", percent(s.WeakestPower), s.Weakest)
	}
	if s.Sampled > 0 {
		doc.Line("sampled: the sensitivity of %s is measured on some of their elements", count(s.Sampled, "large product", "large products"))
	}
	findings(doc, s.Findings)
}

// findings says once for each kind of operation what an engine does in its own way.
func findings(doc *Document, all []compare.Finding) {
	for _, f := range joined(all) {
		if f.Kind == compare.LayoutFound { // said among the notes
			continue
		}
		if f.Bug != nil {
			bug(doc, &f)
			continue
		}
		doc.Line("%s: %s: %s (%s, first %s)", f.Kind, wayOf(f), f.What, count(f.Rows, "entry", "entries"), f.First)
	}
}

// joined merges findings without a bug that have the same kind, text and place. The merged finding has the sum of the rows.
func joined(all []compare.Finding) []compare.Finding {
	var out []compare.Finding
	for _, f := range all {
		at := slices.IndexFunc(out, func(g compare.Finding) bool {
			return f.Bug == nil && g.Kind == f.Kind && g.What == f.What && wayOf(g) == wayOf(f)
		})
		if at < 0 {
			out = append(out, f)
			continue
		}
		out[at].Rows += f.Rows
	}
	return out
}

// wayOf is where an engine has its own way: the module, for what it does on the way to an entry; else the operation.
func wayOf(f compare.Finding) string { return cmp.Or(f.Place, operation(f.Form)) }

// bug writes a finding of what is wrong, and where it is explained.
func bug(doc *Document, f *compare.Finding) {
	doc.Line("%s: %s: %s (%s, first %s)%s", compare.NamedBug, f.Where(), f.What, count(f.Rows, "entry", "entries"), f.First, see(f.Bug))
}

// see points to the page of a mistake.
func see(f *diagnose.Finding) string {
	if f.Page == "" {
		return ""
	}
	return "; see " + f.Page
}

// operation is a form without its constants: rms_norm for rms_norm(eps, gain=plain).
func operation(form string) string {
	name, _, _ := strings.Cut(form, "(")
	return name
}

// uncertified says that a comparison rests on limits only, and why; empty where it does not.
func uncertified(r *compare.Result) string {
	if r.Uncertified == "" {
		return ""
	}
	return "nothing was certified: " + r.Uncertified
}

// reasons lists why entries are neither right nor wrong by themselves: those that are UNIDENTIFIED by their operation.
func reasons(doc *Document, s *compare.Isolation) {
	for i, r := range s.Reasons {
		if i == maxListed {
			doc.Line("not certified for %s more", count(len(s.Reasons)-i, "reason", "reasons"))
			return
		}
		what := cmp.Or(string(r.Outcome), "not isolated") + ": "
		if r.Form != "" {
			what = string(isolate.Unidentified) + ": " + operation(r.Form) + ": "
		}
		which := ""
		if r.Rows > 1 && len(r.Roles) > 0 {
			which = ": " + kinds(r)
		}
		doc.Line("%s%s: %s (the first is %s)%s", what, count(r.Rows, "entry", "entries"), r.Why, r.First, which)
	}
}

// certificate writes the outcome of the first divergence's operation on its own inputs.
func certificate(doc *Document, r *compare.Row) {
	switch c := r.Isolated; {
	case c == nil && r.NotIsolated != "":
		doc.field("isolated", "%s", r.NotIsolated)
	case c == nil:
	case c.Outcome == isolate.Bug:
		size := "relative L2 " + rough(c.RelL2)
		if c.RelL2 == 0 { // which leaves out what is masked or not finite
			size = "masked differently or not finite; the others are equal"
		}
		doc.field("isolated", "%s: %d of %d elements outside the rounding bound, %s%s", c.Outcome, c.Outside, c.Elements, size, power(c.Certificate))
	case c.Outcome == isolate.Unidentified:
		doc.field("isolated", "%s, relative L2 %s: %s", c.Outcome, rough(c.RelL2), r.NotIsolated)
	default:
		doc.field("isolated", "%s, relative L2 %s%s", c.Outcome, rough(c.RelL2), power(c.Certificate))
	}
}

// name writes the mistake at a divergence with its proof. Where the mistake has no name, it writes the nearest one, and if searched is set what was tried.
func name(doc *Document, d *compare.Divergence, searched bool) {
	f, _ := d.Bug()
	if f == nil {
		return
	}
	doc.field("bug", "%s", bugText(d))
	doc.block("", d.Unproven...)
	if !f.Named() {
		if d := f.Description; d != nil {
			doc.field("differs", "%s", Described(d))
		}
		if f.Nearest != "" {
			doc.field("nearest", "%s: %s", f.Nearest, Leaves(f))
		}
		if text := f.Searched(); text != "" && searched {
			doc.field("tried", "%s", text)
			if len(f.NotReached) > 0 {
				doc.field("not tried", "in whole: %s", strings.Join(f.NotReached, "; "))
			}
		}
		if f.Likely != "" {
			doc.field("see", "%s", f.Page)
		}
		return
	}
	for _, a := range f.Aliases {
		doc.field("", "the same here: %s", a.Text())
	}
	if text := SourceOf(f); text != "" {
		doc.field("at", "%s", text)
	}
	doc.field("proof", "%s", Proof(f))
	if f.Page != "" {
		doc.field("see", "%s", f.Page)
	}
}

// Described is how a tensor without a name for its mistake differs.
func Described(d *diagnose.Description) string {
	if d.Explained == d.Elements || d.Numbers == 0 {
		return d.String()
	}
	return fmt.Sprintf("%s (in %d of %s)", d, d.Explained, count(d.Elements, "element", "elements"))
}

// Leaves says what the nearest mistake leaves. It is no name.
func Leaves(f *diagnose.Finding) string {
	l := f.Left
	if l == nil {
		return "it does not give every element"
	}
	text := fmt.Sprintf("it gives %d of %s", l.Gives, count(l.Of, "entry", "entries"))
	if l.Gives == 0 {
		text = "it gives no entry in full"
	}
	if l.First != "" {
		text += fmt.Sprintf(", and leaves %d of %s of %s", l.Elements, count(l.OfElements, "element", "elements"), l.First)
	}
	if l.Right > 0 {
		text += fmt.Sprintf(", a relative L2 of %.2g; the correct operation leaves %.2g", l.RelL2, l.Right)
	}
	return text
}

// unnamed reports whether something is wrong at a divergence for which neither a mistake nor a class of mistakes is known.
func unnamed(d *compare.Divergence) bool {
	f, _ := d.Bug()
	return f != nil && !f.Explains() && f.Likely == ""
}

// bugText names the error at a divergence, and the faulty entry if the fault lies in a different entry. It is empty for an unknown error.
func bugText(d *compare.Divergence) string {
	f, in := d.Bug()
	text := ""
	switch {
	case f == nil:
		return ""
	case in != "":
		text = "in " + in + ": "
	}
	if len(d.Unproven) > 0 {
		text = "if the map is right, " + text
	}
	return text + f.Text()
}

// SourceOf is the place of a mistake in the source of the recorded model. It is empty where the sentence has it, and for a model that was not recorded.
func SourceOf(f *diagnose.Finding) string {
	if text := f.Mistake.Code.String(); !strings.Contains(f.Text(), text) {
		return text
	}
	return ""
}

// Proof is why a name is believed, and where the same step is right. Elements that the mistake gives, too, but for which its rounding leaves more than one number, are no
// Proof and are not counted.
func Proof(f *diagnose.Finding) string {
	shown := "cannot give " + strconv.Itoa(f.Shown) + " of them"
	if f.Shown == f.Elements {
		shown = "can give none of them"
	}
	text := fmt.Sprintf("this mistake reproduces all %s of %s; correct code %s",
		count(f.Elements, "element", "elements"), count(f.Entries, "entry", "entries"), shown)
	if f.RightIn != "" {
		text += "; right elsewhere: " + f.RightIn
	}
	return text
}

// gap says why an entry with a correct operation is a mismatch.
func gap(doc *Document, r *compare.Row) {
	if r.Gap != "" {
		text := "the operation is correct on its own inputs, but not every operation before it was verified, so the error does not count as drift"
		if r.Facts.Standing == compare.StandingNone {
			text = "this operation was not verified, so the error does not count as drift"
		}
		doc.field("chain", "%s", text)
		doc.field("", "%s", r.Gap)
	}
}

// power says how small an error of scale would show, where there is a scale to be seen: not in a mask.
func power(c *isolate.Certificate) string {
	switch {
	case math.IsNaN(float64(c.Power)):
		return ""
	case c.Power <= 0:
		return "; any scale error might be detected here: an element lies between two numbers of its dtype"
	}
	return fmt.Sprintf("; a %s scale error would be detected here", percent(c.Power))
}

// percent is a relative error with two digits.
func percent(x measure.Number) string { return fmt.Sprintf("%.2g %%", 100*float64(x)) }

// blame writes whose fault it is and how the error grew.
func blame(doc *Document, r *compare.Row) {
	if r.Blame == "" {
		return
	}
	text := map[compare.Blame]string{
		compare.Root:      "its own operation, or one before it that was not captured",
		compare.Inherited: "an ancestor's fault",
		compare.Unknown:   "its inputs were not captured",
	}[r.Blame]
	if r.Blame == compare.Inherited && r.Isolated == nil && r.Growth > 0 {
		text = "an ancestor's fault, or accumulated rounding"
	}
	if r.Needs != "" {
		text += "; " + r.Needs
	}
	if r.Growth > 0 {
		text += fmt.Sprintf("; the error is %s times the error of its inputs", rough(r.Growth))
	}
	doc.field("blame", "%s, %s", r.Blame, text)
}

// roots lists the mismatches that are nobody else's fault, if there are several.
func roots(doc *Document, r *compare.Result) {
	if len(r.Roots) < 2 {
		return
	}
	doc.blank()
	doc.Line("ROOT: %d of %s: %s", len(r.Roots), count(r.Mismatches, "mismatch", "mismatches"), some(r.Roots))
}
