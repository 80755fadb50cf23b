package words

import (
	"fmt"
	"strconv"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/measure"
)

// final says which next token the logits choose: one pass in full, and a count of the agreeing passes.
func final(doc *Document, r *compare.Result) {
	if r.Final == nil {
		return
	}
	f, worst := &r.Final.Passes[r.Final.Shown], &r.Final.Passes[r.Final.Worst]
	doc.blank()
	doc.Line("next token, %s:", ChosenBy(f))
	candidates(doc, r, &f.Last)
	choice(doc, r)
	doc.field("KL", "%s nats of %s from %s here; at worst %s, at %s of %s",
		rough(f.Last.KL), r.Local.Name.Side, r.Reference.Name.Side, rough(worst.WorstKL), placeOf(worst.WorstRow), worst.Key)
	if n := len(r.Final.Passes); n > 1 {
		doc.field("passes", "the greedy token agrees in %d of %d", r.Final.Agree, n)
	}
}

// ChosenBy is where the logits of a choice are.
func ChosenBy(f *compare.Logits) string {
	return fmt.Sprintf("by %s at %s", f.Key, placeOf(f.Last.Row))
}

// Candidates are the tokens of the shown pass with their logits and ranks on both sides; nil without logits.
func Candidates(doc *Document) *Table {
	for _, s := range doc.Show(Final) {
		if s.Table != nil {
			return s.Table
		}
	}
	return nil
}

// candidates are the tokens with their logits and ranks on both sides.
func candidates(doc *Document, r *compare.Result, n *compare.Next) {
	rows := make([][]Cell, len(n.Top))
	for i, t := range n.Top {
		rows[i] = plainCells("", tokenText(n.Top, t.ID), digits(t.Reference), rankOf(t.ReferenceRank), digits(t.Local), rankOf(t.LocalRank))
		rows[i][2].First, rows[i][4].First = t.ID == n.Reference, t.ID == n.Local
	}
	doc.table([]Column{{}, {Title: "token"}, {Title: r.Reference.Name.Label, Right: true}, {Title: "rank", Right: true}, {Title: r.Local.Name.Label, Right: true}, {Title: "rank", Right: true}}, rows)
}

// choice says whether the greedy token agrees and what that is worth.
func choice(doc *Document, r *compare.Result) {
	if r.Final == nil {
		return
	}
	f := &r.Final.Passes[r.Final.Shown]
	n := &f.Last
	unit := func(x measure.Number) string {
		return fmt.Sprintf("%s (%s x the %s, %s)", rough(x), rough(x/n.Noise), n.NoiseFrom, rough(n.Noise))
	}
	if n.Agree {
		doc.field("greedy token", "same top-1 token (%s)", f.Warning)
	} else {
		doc.field("greedy token", "differs: %s %s, %s %s", r.Local.Name.Label, tokenText(n.Top, n.Local), r.Reference.Name.Label, tokenText(n.Top, n.Reference))
		verdict := "beyond"
		if n.Tie {
			verdict = "a tie, within"
		}
		doc.field("gap", "%s between the two in %s: %s the %s that noise allows", unit(n.Gap), r.Reference.Name.Side, verdict, rough(n.Allowed))
	}
	if n.Lead == n.Lead { // NaN where there is no second
		doc.field("lead", "top-1 of %s leads by %s", r.Reference.Name.Side, unit(n.Lead))
	}
}

// tokenText is an id with its text, if that is known.
func tokenText(known []compare.Token, id int) string {
	if id < 0 {
		return "none"
	}
	for _, t := range known {
		if t.ID == id && t.Text != nil {
			return fmt.Sprintf("%d %q", id, *t.Text)
		}
	}
	return strconv.Itoa(id)
}

// rankOf is a rank from 1; "-" for none.
func rankOf(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// placeOf is a row of the logits in words.
func placeOf(at compare.Place) string {
	if at.Position != nil {
		return fmt.Sprintf("position %d", *at.Position)
	}
	return fmt.Sprintf("row %v", at.Index)
}

// nextToken is the choice of the next token in a line.
func nextToken(doc *Document, r *compare.Result) {
	if r.Final == nil {
		return
	}
	f := &r.Final.Passes[r.Final.Shown]
	n := &f.Last
	text := ""
	if n.Agree {
		text = fmt.Sprintf("%s on both sides (weak evidence)", tokenText(n.Top, n.Local))
	} else {
		text = fmt.Sprintf("%s %s, %s %s", r.Local.Name.Label, tokenText(n.Top, n.Local), r.Reference.Name.Label, tokenText(n.Top, n.Reference))
		if n.Tie {
			text += " (a tie: within the noise)"
		}
	}
	if passes := len(r.Final.Passes); passes > 1 {
		text += fmt.Sprintf("; both sides agree in %d of %d passes", r.Final.Agree, passes)
	}
	doc.Line("next token: %s", text)
}
