package redflag

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
)

// group holds the gradients of one layer or module, over all steps.
type group struct {
	name  string
	first *subject
	norm  []float64 // by step: ‖g‖₂ of all gradients of the group; 0 without gradients
}

var layerPart = regexp.MustCompile(`^(.*?\.)?[0-9]{1,6}(\.|$)`)

// groupOf is the layer or module of a parameter: its name up to the first number, which is the number of the layer, or else its module.
func groupOf(gradient string) string {
	name := strings.TrimPrefix(gradient, capture.Gradient)
	if m := layerPart.FindString(name); m != "" {
		return strings.TrimSuffix(m, ".")
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}

// norms compares the norms of groups of gradients with each other in every step, and with the norms of the first steps. Zeros and values that are not
// finite have flags of their own.
func norms(_ context.Context, v *view, f *found) error {
	steps, names := stepsOf(v)
	var groups []*group
	at := map[string]*group{}
	for _, name := range names {
		g := at[groupOf(name)]
		if g == nil {
			g = &group{name: groupOf(name), norm: make([]float64, len(steps))}
		}
		for i, step := range steps {
			s := v.find(step, name)
			if s == nil || !s.DType.Float() || s.elements() == 0 {
				continue
			}
			if g.first == nil {
				g.first = s
			}
			if m := s.seen.moments.Summary(1); s.seen.bad() {
				g.norm[i] = math.NaN() // NaN stays in the norm of the step
			} else {
				g.norm[i] = hypot(g.norm[i], math.Sqrt(float64(s.elements()))*math.Hypot(m.Mean, m.Std))
			}
		}
		if at[g.name] == nil && g.first != nil {
			at[g.name] = g
			groups = append(groups, g)
			f.look(GradientVanishing, GradientExploding)
		}
	}
	finite := len(steps) // the steps before the first NaN or infinity; later norms mean nothing
	for _, g := range groups {
		if i := slices.IndexFunc(g.norm, func(x float64) bool { return !(x <= math.MaxFloat64) }); i >= 0 {
			finite = min(finite, i)
		}
	}
	for _, g := range groups {
		g.norm = g.norm[:finite]
	}
	spreadApart(v, f, groups, finite)
	growing(v, f, groups, finite)
	return nil
}

// hypot is √(x² + y²), or NaN if x or y is NaN: [math.Hypot] of NaN and an infinity is infinite.
func hypot(x, y float64) float64 {
	if x != x || y != y {
		return math.NaN()
	}
	return math.Hypot(x, y)
}

// spreadApart looks for groups whose norm is far from the largest or the smallest norm in every step with gradients of the group. The product of the
// two norms tells which norm is wrong, since a healthy norm is near 1.
func spreadApart(v *view, f *found, groups []*group, steps int) {
	smallest, largest := make([]float64, steps), make([]float64, steps)
	for i := range steps {
		smallest[i] = math.Inf(1)
		for _, g := range groups {
			if g.norm[i] > 0 {
				smallest[i], largest[i] = min(smallest[i], g.norm[i]), max(largest[i], g.norm[i])
			}
		}
	}
	for _, g := range groups {
		judged, vanishes, explodes, last := 0, true, true, 0
		for i, x := range g.norm {
			if x == 0 {
				continue
			}
			judged++
			last = i
			low := smallest[i]*largest[i] <= 1
			vanishes = vanishes && low && x <= v.limits.gradients.apart*largest[i]
			explodes = explodes && !low && x*v.limits.gradients.apart >= smallest[i]
		}
		if judged == 0 || !vanishes && !explodes {
			continue
		}
		kind, other, which := GradientVanishing, largest[last], "largest"
		if explodes {
			kind, other, which = GradientExploding, smallest[last], "smallest"
		}
		f.raise(kind, g.first, []Number{number("norm", g.norm[last]), number(which, other), number("steps", float64(judged)), number("limit", v.limits.gradients.apart)},
			"the norm of the gradients of %s is %.3g, and the %s of all layers and modules is %.3g; the same holds in each of %d steps", g.name, g.norm[last], which, other, judged)
	}
}

// growing looks for groups whose norm outgrows the norm of all gradients in the first quarter of the steps.
func growing(v *view, f *found, groups []*group, steps int) {
	start := 0.
	for i := range (steps + 3) / 4 {
		total := 0.
		for _, g := range groups {
			total = math.Hypot(total, g.norm[i])
		}
		start = max(start, total)
	}
	if start == 0 {
		return
	}
	for _, g := range groups {
		for i := (steps + 3) / 4; i < steps; i++ {
			if x := g.norm[i]; x > v.limits.gradients.growing*start {
				f.raise(GradientExploding, g.first, []Number{number("norm", x), number("start", start), number("step", float64(i)), number("limit", v.limits.gradients.growing)},
					"the norm of the gradients of %s grows to %.3g at step %d; the norm of all gradients was at most %.3g in the first %d steps", g.name, x, i, start, (steps+3)/4)
				break
			}
		}
	}
}
