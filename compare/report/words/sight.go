package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/report"
)

// sightOf counts the usual mistakes that a run would have shown.
func sightOf(doc *Document, r *compare.Result) { sight(doc, r.Sight) }

// SightOf is which of the usual mistakes several runs would have shown together; nothing for nil.
func SightOf(s *detectable.Sight) *Document {
	doc := &Document{}
	sight(doc, s)
	return doc
}

// sight counts the usual mistakes that a run would have shown, and says what would show the others; each of these by name where
// everything is said.
func sight(doc *Document, s *detectable.Sight) {
	if s == nil || s.Known == 0 {
		return
	}
	tried, of := s.Known-len(s.Skipped), ""
	if tried < s.Known {
		of = " that were tried"
	}
	doc.Line("usual mistakes: %d of %d%s would have been seen here", len(s.Seen), tried, of)
	var by groups[string]
	for _, u := range s.Unseen {
		by.add(u.ShownBy, u.Mistake)
	}
	untried(doc, s)
	doc.only(Whole, func() {
		for _, what := range by.keys {
			doc.sub("needs %s: %s", what, strings.Join(by.of[what], "; "))
		}
	})
	doc.only(Brief, func() { needs(doc, s) })
}

// needs says what would show most of the others.
func needs(doc *Document, s *detectable.Sight) {
	by := oneCapture(s)
	slices.SortStableFunc(by.keys, func(a, b string) int { return len(by.of[b]) - len(by.of[a]) })
	var parts []string
	rest := 0
	for i, what := range by.keys {
		if i >= maxNeeds {
			rest += len(by.of[what])
			continue
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", what, len(by.of[what])))
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("something else (%d): --verbose lists them", rest))
	}
	if len(parts) > 0 {
		doc.sub("the others need %s", strings.Join(parts, "; "))
	}
}

// untried says what was not tried, why, and how to try it: some mistakes by name, where everything is said all. No verdict rests on it, which has to be said where
// most is not tried.
func untried(doc *Document, s *detectable.Sight) {
	var by groups[string]
	for _, u := range s.Untried {
		by.add(u.Why, u.Mistake)
	}
	for _, why := range by.keys {
		list, rest := by.of[why], why
		if more := s.More(); why == detectable.UntriedWork && more != "" {
			rest += ", --search-work " + more + " goes on"
		}
		say := func(l Length, such string, named []string) {
			doc.only(l, func() { doc.sub("%s (%s%s): %s", notTried(len(list)), such, strings.Join(named, "; "), rest) })
		}
		if len(list) <= maxNamed {
			say(Any, "", list)
			continue
		}
		say(Brief, "such as ", list[:maxNamed])
		say(Whole, "", list)
	}
	if len(s.Skipped) > len(s.Untried) { // of a report that has no reasons
		doc.sub("%s", notTried(len(s.Skipped)-len(s.Untried)))
	}
	if len(s.Skipped) > 0 {
		doc.sub("no verdict depends on these mistakes: verdicts depend on the entries that were compared and recomputed")
	}
}

func notTried(n int) string { return count(n, "was", "were") + " not tried" }

// maxNamed is how many mistakes are named where not everything is said.
const maxNamed = 2

// oneCapture are the unseen mistakes by what would show them. Further tensors are one capture, which names each tensor once, sorted by the
// number of mistakes.
func oneCapture(s *detectable.Sight) (all groups[string]) {
	var mistakes []string
	var by groups[string] // by tensors
	how := "a capture of "
	for _, u := range s.Unseen {
		if len(u.Capture) == 0 {
			all.add(u.ShownBy, u.Mistake)
			continue
		}
		mistakes = append(mistakes, u.Mistake)
		if strings.HasPrefix(u.ShownBy, aDump) {
			how = aDump
		}
		for _, name := range u.Capture {
			by.add(name, u.Mistake)
		}
	}
	slices.SortStableFunc(by.keys, func(a, b string) int { return len(by.of[b]) - len(by.of[a]) })
	for _, m := range mistakes {
		all.add(how+isolate.Some(by.keys), m)
	}
	return all
}

const aDump = "a dump of "

// maxNeeds is how many ways to show mistakes are said where not everything is.
const maxNeeds = 3

// Prompts are prompts as the commands that capture them. model is the value of --model; empty for the embedded checkpoint.
func Prompts(r *report.Prompts, model string) *Document {
	doc := &Document{}
	doc.Line("%s, %s: %s of %d that were tried", r.Model, r.DType, count(len(r.Prompts), "prompt", "prompts"), r.Tried)
	for _, one := range r.Prompts {
		doc.blank()
		doc.Line("tracediff capture%s --dtype %s --level 3 --tokens '%s'", Either(model == "", "", " --model "+model), r.DType, one.Tokens)
		text := fmt.Sprintf("  %s and %s show %d mistakes", count(one.Length, "token", "tokens"), count(one.Steps, "step", "steps"), one.Seen)
		if len(r.Prompts) > 1 {
			text += fmt.Sprintf(", %d of them shown by no other prompt", len(one.Alone))
		}
		doc.Line("%s", text)
	}
	doc.blank()
	sight(doc, r.Sight)
	return doc
}
