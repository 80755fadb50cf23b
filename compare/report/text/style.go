package text

import (
	"github.com/fatih/color"

	"github.com/tracediff/tracediff/compare/report/words"
)

// View is how much of a result a text has. Every view ends with the same line: the verdict with counts.
type View int

// The views.
const (
	Short       View = iota // a line a layer, the entries around the first divergence, what is wrong and what to do next
	Evidence                // the short one with every number that the verdict rests on
	Everything              // the evidence with a line an entry
	VerdictOnly             // only the last line
)

// Style colours words that say the same without colour, and says how much a text has. The zero value is plain and short.
type Style struct {
	good, bad, quiet *color.Color
	power            bool
	view             View
	since            string
}

// NewStyle returns a style for one writer. Whether that is a terminal, and what NO_COLOR and the user say, is for the
// caller to know: the package does not look at the environment.
func NewStyle(coloured bool) Style {
	s := Style{good: color.New(color.FgGreen), bad: color.New(color.FgRed, color.Bold), quiet: color.New(color.Faint)}
	for _, c := range []*color.Color{s.good, s.bad, s.quiet} {
		if coloured {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
	return s
}

// color is how a tone is painted; nil: not at all.
func (s Style) color(t words.Tone) *color.Color {
	return [...]*color.Color{words.Good: s.good, words.Bad: s.bad, words.Quiet: s.quiet}[t]
}

func paint(c *color.Color, s string) string {
	if c == nil {
		return s
	}
	return c.Sprint(s)
}

// WithPower adds to each certified entry how small an error of scale would have shown in it, and the scale that fits it.
func (s Style) WithPower() Style {
	s.power = true
	return s
}

// WithView chooses how much of a result is written.
func (s Style) WithView(v View) Style {
	s.view = v
	return s
}

// WithSince adds a line before the verdict: how the first divergence moved since the last comparison. Empty: no line.
func (s Style) WithSince(text string) Style {
	s.since = text
	return s
}

// length is how much of a document the view has.
func (s Style) length() words.Length {
	return words.Either(s.view == Evidence || s.view == Everything, words.Whole, words.Brief)
}

// Terse reports whether the text is only the verdict.
func (s Style) Terse() bool { return s.view == VerdictOnly }
