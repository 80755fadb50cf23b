package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/internal/amount"
)

// maxAlso is how many further tensors of a flag the text names.
const maxAlso = 4

// Check writes the red flags of a trace for people. The last line has how many there are. The error is that of w.
func Check(w io.Writer, r *redflag.Result, s Style) error {
	p := &printer{style: s, width: pageWidth}
	p.line("trace:  %s, %s of %s", r.Trace, words.Count(r.Tensors, "tensor", "tensors"), words.Count(r.Passes, "pass", "passes"))
	for i := range r.Flags {
		p.flag(&r.Flags[i])
	}
	p.blank()
	for _, n := range r.Notes {
		p.line("note: %s", n)
	}
	verdict, skipped, without := words.CheckVerdict(r)
	if len(skipped) > 0 {
		p.line("skipped: %s", strings.Join(skipped, ", "))
	}
	if len(without) > 0 {
		p.line("nothing to look at for %s", strings.Join(without, ", "))
	}
	p.write(verdict)
	return p.writeTo(w)
}

// flag writes one flag as a block.
func (p *printer) flag(f *redflag.Flag) {
	p.blank()
	p.WriteString(paint(p.style.bad, "RED FLAG") + words.Clean(fmt.Sprintf(" %s: %s, pass %d", f.Kind, f.Entry, f.Pass)) + "\n")
	part := func(label, text string) {
		p.WriteString(p.wrapped(9, words.Clean(fmt.Sprintf("  %-6s %s", label, text))))
	}
	part("found", f.What)
	if n := len(f.Also); n > 0 {
		part("also", amount.Some(f.Also, maxAlso))
	}
	part("means", f.Means)
	part("try", f.Try)
}
