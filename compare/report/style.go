package report

import "github.com/fatih/color"

// Style colours words that say the same without colour, and says how much the table has. The zero value is plain.
type Style struct {
	good, bad, quiet *color.Color
	power            bool
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
