package report

import (
	"fmt"
	"strconv"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/measure"
)

// final writes what the logits say about the next token: one pass whole, and the others in a line.
func (p *printer) final(r *compare.Result) error {
	if r.Final == nil {
		return nil
	}
	f, worst := &r.Final.Passes[r.Final.Shown], &r.Final.Passes[r.Final.Worst]
	p.blank()
	p.line("next token, by %s at %s:", f.Key, place(f.Last.Row))
	if err := p.candidates(r, &f.Last); err != nil {
		return fmt.Errorf("writing the candidates: %w", err)
	}
	p.choice(r, f)
	p.field("KL", "%s nats of %s from %s here; at worst %s, at %s of %s",
		number(f.Last.KL), r.Local.Name.Side, r.Reference.Name.Side, number(worst.WorstKL), place(worst.WorstRow), worst.Key)
	if n := len(r.Final.Passes); n > 1 {
		p.field("passes", "the greedy token agrees in %d of %d", r.Final.Agree, n)
	}
	return nil
}

// candidates are the tokens with their logits and ranks on both sides.
func (p *printer) candidates(r *compare.Result, n *compare.Next) error {
	const right, left = tw.AlignRight, tw.AlignLeft
	rows := make([][]string, len(n.Top))
	for i, t := range n.Top {
		rows[i] = []string{
			"", clean(token(n.Top, t.ID)), digits(t.Reference), rankOf(t.ReferenceRank), digits(t.Local), rankOf(t.LocalRank),
		}
	}
	return Table(&p.Builder, []tw.Align{left, left, right, right, right, right},
		[]string{"", "token", r.Reference.Name.Label, "rank", r.Local.Name.Label, "rank"}, rows)
}

// choice says whether the greedy token agrees and what that is worth.
func (p *printer) choice(r *compare.Result, f *compare.Logits) {
	n := &f.Last
	unit := func(x measure.Number) string {
		return fmt.Sprintf("%s (%s x the %s, %s)", number(x), number(x/n.Noise), n.NoiseFrom, number(n.Noise))
	}
	if n.Agree {
		p.field("greedy token", "same top-1 token (%s)", f.Warning)
	} else {
		p.field("greedy token", "differs: %s %s, %s %s", r.Local.Name.Label, token(n.Top, n.Local), r.Reference.Name.Label, token(n.Top, n.Reference))
		verdict := "beyond"
		if n.Tie {
			verdict = "a tie, within"
		}
		p.field("gap", "%s between the two in %s: %s the %s that noise allows", unit(n.Gap), r.Reference.Name.Side, verdict, number(n.Allowed))
	}
	if n.Lead == n.Lead { // NaN where there is no second
		p.field("lead", "top-1 of %s leads by %s", r.Reference.Name.Side, unit(n.Lead))
	}
}

// token is an id with its text, if that is known.
func token(known []compare.Token, id int) string {
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

func rankOf(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// place is a row of the logits in words.
func place(at compare.Place) string {
	if at.Position != nil {
		return fmt.Sprintf("position %d", *at.Position)
	}
	return fmt.Sprintf("row %v", at.Index)
}
