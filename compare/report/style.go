package report

import "github.com/fatih/color"

// Style colours words that say the same without colour. The zero value is plain.
type Style struct{ good, bad, quiet *color.Color }

// NewStyle returns a style for one writer. Whether that is a terminal, and what NO_COLOR and the user say, is for the
// caller to know: the package does not look at the environment.
func NewStyle(coloured bool) Style {
	s := Style{color.New(color.FgGreen), color.New(color.FgRed, color.Bold), color.New(color.Faint)}
	for _, c := range []*color.Color{s.good, s.bad, s.quiet} {
		if coloured {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
	return s
}

func paint(c *color.Color, s string) string {
	if c == nil {
		return s
	}
	return c.Sprint(s)
}
