package report

import (
	"strings"

	"github.com/tracediff/tracediff/compare"
)

// Verdict is the last line of every view, without its end.
func Verdict(r *compare.Result, s Style) string {
	p := &printer{style: s}
	p.verdictLine(r, true)
	return strings.TrimSuffix(p.String(), "\n")
}

// Screen are the lines about what is to be mended, most important first, for a terminal of some columns: the first divergence, what
// was accepted or no longer is, and what was not compared.
func Screen(r *compare.Result, s Style, columns int) []string {
	p := &printer{style: s, width: min(pageWidth, columns), label: 13}
	p.shortDivergence(r)
	p.missing(r)
	p.blank()
	p.others(r)
	p.incomplete(r)
	p.sides(r)
	p.nextToken(r)
	return strings.Split(strings.Trim(p.String(), "\n"), "\n")
}
