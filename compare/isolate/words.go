package isolate

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/compare/measure"
)

// clearFit is how many standard errors a fitted scale has to be from 1 to be called the error itself, and not only what
// another error comes to on average. A wrong gain or a noisy weight scatter far more about their best factor than that.
const clearFit = 50

// Factor reports whether all elements of the entry are wrong by a common factor, Scale: a factor clearly different
// from 1 and 0, with a larger effect on the elements than their remaining error. The standard error of a scale is
// the error of one element, per unit of its size, divided by the root of the number of elements.
func (c *Certificate) Factor() bool {
	scale, e := float64(c.Scale), float64(c.ScaleError)
	off := math.Abs(scale - 1)
	everywhere := c.Outside == c.Elements
	return c.Outcome == Bug && everywhere && off > 0 && min(off, math.Abs(scale)) >= clearFit*e && off > math.Sqrt(float64(cmp.Or(c.Sampled, c.Elements)))*e
}

// Detail puts a BUG into words.
func (c *Certificate) Detail() string {
	scaled := fmt.Sprintf("scaled by %.9g ± %.1g", float64(c.Scale), float64(c.ScaleError))
	text := fmt.Sprintf("wrong on its own inputs: %d of %d elements differ by more than rounding", c.Outside, c.Elements)
	if c.Nearer != nil {
		text = c.Nearer.words()
	} else if measure.Finite(float64(c.Worst)) && c.Worst > 0 {
		text += fmt.Sprintf(", up to %.2g times the rounding bound", float64(c.Worst))
	}
	if len(c.Set) > 0 {
		text += " (" + strings.Join(c.Set, ", ") + ")"
	}
	if c.Factor() {
		text += "; all of it is " + scaled
	}
	return text
}
