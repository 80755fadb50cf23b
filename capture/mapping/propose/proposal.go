package propose

import (
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/tomlfile"
)

// Proposal is a map that a dump may need.
type Proposal struct {
	Lines   []Line
	Choices []Choice
	Swapped []Line   // of tensors that have each other's names, or are wrong
	Copies  []Copy   // of tensors that have an entry, and are left out
	Others  []string // patterns of tensors that are no entries
	Left    []string // patterns of what fits nothing
	Known   int      // tensors that need no line
	Without []int    // layers without any tensor, if other layers have some

	computed bool // there were weights to compute with
}

// Line is a line of a map, and why it is proposed.
type Line struct {
	From  string
	To    []string
	Axes  string
	Split string
	Join  string
	Ring  string
	Pass  string
	Rows  string
	By    string // what it stands on where no value says that it is right: "name" or "guess"
	Why   string

	at     int  // in the order
	proven bool // the tensors of several layers have the values of the reference
}

// Choice is a tensor with several possible lines. A person takes one.
type Choice struct {
	From  string
	Lines []Line
	More  int // entries that would fit, too
}

// Copy is a pattern whose tensors have, bit for bit, the numbers of tensors with an entry: hooks on all modules see what attn.wo returns and that attn returns the same, and a graph
// of operations has a tensor before and after its axes are taken apart. A copy is left out.
type Copy struct {
	From string
	Of   []string // the patterns of the tensors with an entry
}

// mostListed bounds the copies that are left out by a line, and the names of no entries that are listed: a graph of nodes has thousands.
const mostListed = 40

// why says which tensors a copy has the numbers of.
func (c Copy) why() string {
	return "the same numbers as " + amount.Some(c.Of, maxOffered)
}

// Open is how many patterns a person has to decide on, or that fit nothing.
func (p *Proposal) Open() int { return len(p.Choices) + len(p.Swapped) + len(p.Left) }

// Needless reports whether the dump is to be compared as it is.
func (p *Proposal) Needless() bool { return len(p.Lines)+p.Open() == 0 }

// Write writes a proposal as the file of a map, with a comment for each line. The error is that of w.
func (p *Proposal) Write(w io.Writer, of, reference string) error {
	var b strings.Builder
	by := "names and shapes"
	if reference != "" {
		by += ", and the values of " + comment(reference)
	} else if p.computed {
		by += ", and what the checkpoint computes"
	}
	fmt.Fprintf(&b, "# The map of %s, proposed by %s.\n", comment(of), by)
	switch {
	case p.Known == 1:
		b.WriteString("# 1 tensor needs no line.\n")
	case p.Known > 1:
		fmt.Fprintf(&b, "# %d tensors need no line.\n", p.Known)
	}
	if len(p.Without) > 0 {
		fmt.Fprintf(&b, "# The dump has no tensor of layer %s.\n", capture.RangesOf(p.Without))
	}
	if p.Needless() {
		b.WriteString("# The dump needs no map: compare it as it is.\n")
	}
	b.WriteString("[tensors]\n")
	for _, l := range p.Lines {
		fmt.Fprintf(&b, "%s # %s\n", l.text(), comment(l.Why))
	}
	copies := p.Copies[:min(len(p.Copies), mostListed)]
	if p.Needless() {
		copies = nil
	}
	for _, c := range copies {
		fmt.Fprintf(&b, "%s # %s\n", Line{From: c.From}.text(), comment(c.why()))
	}
	if n := len(p.Copies) - len(copies); n > 0 {
		fmt.Fprintf(&b, "# Copies without a line: %d. They are equal to tensors that have an entry, and are not compared.\n", n)
	}
	p.writeOpen(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOpen writes what a person has to look at, as comments.
func (p *Proposal) writeOpen(b *strings.Builder) {
	for _, c := range p.Choices {
		fmt.Fprintf(b, "\n# A choice: %s fits each of these. Remove the # of one.\n", comment(c.From))
		for _, l := range c.Lines {
			fmt.Fprintf(b, "# %s # %s\n", l.text(), comment(l.Why))
		}
		if c.More > 0 {
			fmt.Fprintf(b, "# %d more fit: tracediff order lists the entries.\n", c.More)
		}
	}
	if len(p.Swapped) > 0 {
		b.WriteString("\n# These tensors have each other's values. If they are dumped under each other's names, remove the # of all.\n")
		b.WriteString("# If not, the port computes these values: compare without these lines.\n")
		for _, l := range p.Swapped {
			fmt.Fprintf(b, "# %s # %s\n", l.text(), comment(l.Why))
		}
	}
	if len(p.Others) > 0 {
		b.WriteString("\n# These tensors match no entry, and are not compared. What the dump computes from each entry without a tensor is right.\n")
		for _, name := range p.Others[:min(len(p.Others), mostListed)] {
			fmt.Fprintf(b, "# %s\n", tomlfile.Quote(name))
		}
		if n := len(p.Others) - mostListed; n > 0 {
			fmt.Fprintf(b, "# ... and %d more\n", n)
		}
	}
	if len(p.Left) > 0 {
		b.WriteString("\n# Left: no entry was found for these. They are not compared.\n")
		for _, name := range p.Left {
			fmt.Fprintf(b, "# %s\n", tomlfile.Quote(name))
		}
	}
}

// text is the line as TOML.
func (l Line) text() string {
	to := "[" + quoted(l.To) + "]"
	if len(l.To) == 1 {
		to = quoted(l.To)
	}
	var fields []string
	for _, f := range [][2]string{{"axes", l.Axes}, {"split", l.Split}, {"join", l.Join}, {"ring", l.Ring}, {"pass", l.Pass}, {"rows", l.Rows}, {"by", l.By}} {
		if f[1] != "" {
			fields = append(fields, f[0]+" = "+tomlfile.Quote(f[1]))
		}
	}
	if len(fields) == 0 && len(l.To) == 1 {
		return tomlfile.Quote(l.From) + " = " + to
	}
	return tomlfile.Quote(l.From) + " = { " + strings.Join(append([]string{"to = " + to}, fields...), ", ") + " }"
}

// quoted is a list of names as TOML.
func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, tomlfile.Quote(name))
	}
	return strings.Join(all, ", ")
}

// comment is a text that stays in its line.
func comment(text string) string {
	quoted := tomlfile.Quote(text)
	return quoted[1 : len(quoted)-1]
}
