package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/internal/plain"

	"github.com/tracediff/tracediff/compare"
)

// maxTokens is how many ids of one pass are written, half of them from each end.
const maxTokens = 32

// tokens writes the ids that the local side was given, decode steps on one line.
func tokens(doc *Document, r *compare.Result) {
	var steps compare.Input
	for _, in := range r.Inputs {
		if in.Pass == 0 {
			doc.head("tokens", "%s", ids(in.Local, in.Texts, maxTokens))
			continue
		}
		steps.Local, steps.Texts = append(steps.Local, in.Local...), append(steps.Texts, in.Texts...)
	}
	if len(steps.Local) > 0 {
		doc.head("decoded", "%s", ids(steps.Local, steps.Texts, maxTokens))
	}
}

// ids are token ids with their texts, as far as these are known.
func ids(tokens []int64, texts []string, most int) string {
	words := make([]string, 0, len(tokens))
	for i, id := range tokens {
		if len(tokens) > most && i == most/2 {
			words = append(words, fmt.Sprintf("... %d more ...", len(tokens)-most))
		}
		if len(tokens) > most && i >= most/2 && i < len(tokens)-most/2 {
			continue
		}
		word := fmt.Sprint(id)
		if i < len(texts) {
			word += fmt.Sprintf(" %q", texts[i])
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// script writes how the token ids of a pass differ.
func script(doc *Document, r *compare.Result, pass int) {
	for _, in := range r.Inputs {
		if in.Pass != pass {
			continue
		}
		for _, e := range in.Edits {
			label, most := "both have", maxListed
			switch e.Op {
			case compare.Delete:
				label, most = "- "+r.Reference.Name.Label, maxTokens
			case compare.Insert:
				label, most = "+ "+r.Local.Name.Label, maxTokens
			}
			doc.field(label, "%s", ids(e.IDs, e.Texts, most))
		}
	}
}

// firstTokens writes the ids of the first pass, as many as fit a line, and how many steps were decoded.
func firstTokens(doc *Document, r *compare.Result) {
	steps, passes := 0, 0
	for _, in := range r.Inputs {
		if in.Pass > 0 {
			steps, passes = steps+len(in.Local), passes+1
			continue
		}
		most := 32
		text := ids(in.Local, in.Texts, most)
		for most > 2 && len([]rune(text)) > plain.Columns-len("tokens:    ") {
			most -= 2
			text = ids(in.Local, in.Texts, most)
		}
		doc.head("tokens", "%s", text)
	}
	if steps > passes { // refinement steps, or a prompt in parts
		doc.head("further", "%s, %s in all", count(passes, "pass", "passes"), count(steps, "token", "tokens"))
	} else if steps > 0 {
		doc.head("decoded", "%s, one a pass", count(steps, "token", "tokens"))
	}
}
