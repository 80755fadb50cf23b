package text

import (
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/compare/weights"
)

// maxWeightFindings is the largest number of findings in the text. The other formats have every finding.
const maxWeightFindings = 20

// Weights writes a comparison of weights for people: what is wrong, the worst first, and how the others are. The last line has the
// counts. The error is that of w.
func Weights(w io.Writer, r *weights.Result, s Style) error {
	p := &printer{style: s}
	if s.Terse() {
		p.write(words.WeightsVerdict(r))
		return p.writeTo(w)
	}
	p.line("original: %s", words.WeightsPlace(r.Original))
	p.line("port:     %s", words.WeightsPlace(r.Local))
	for i := range r.Findings {
		if i == maxWeightFindings {
			p.blank()
			p.line("%s more; --format json has all", words.Count(len(r.Findings)-i, "finding", "findings"))
			break
		}
		p.weightFinding(&r.Findings[i])
	}
	p.blank()
	for _, line := range words.WeightsRight(r) {
		p.line("%s", line)
	}
	for _, n := range words.WeightNotes(r) {
		p.line("note: %s", n)
	}
	p.write(words.WeightsVerdict(r))
	return p.writeTo(w)
}

// weightFinding writes one thing that is wrong as a block.
func (p *printer) weightFinding(f *weights.Finding) {
	p.blank()
	p.WriteString(paint(p.style.bad, string(f.Class)) + " ")
	p.line("%s", f.Name())
	p.line("  found  %s", f.What)
	if a := f.At; a != nil {
		p.line("  first  %s", words.WeightAt(a))
		if a.File != nil && a.File.Row != a.Row && strings.Contains(f.What, "row") {
			p.line("  note   %s", words.RowsOfOriginal)
		}
	}
	for i, step := range f.Steps() {
		label := "try "
		if i > 0 {
			label = "    "
		}
		p.line("  %s   %s", label, step)
	}
}
