package weights

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/quant"
)

// A scale that is not the best is no mistake, and costs accuracy. It is held against the one that the usual writer of the format gives the
// same numbers. The null hypothesis is that both err alike; the statistic is the ratio of their root mean square errors over the units with
// other scales, whose standard error over n elements is 0.63/√n where the errors are uniform.
const (
	otherStep   = 0.01 // a step is another one beyond what rounding it to bfloat16 twice changes
	otherOffset = 0.1  // the same of an offset, in steps
	worseError  = 0.02 // the ratio beyond 1 that is said, with three standard errors more
	eachUnit    = 64   // one unit in so many is held to a writer that searches
	farGroup    = 1.5  // so many times the squared error of a step that spans a group's range is worth a look
)

// doubts say whether the scales of a tensor may not be the best, after one pass.
type doubts struct {
	sure      bool    // a step is another one than the usual writer's
	seen      int     // units
	own, best float64 // squared errors of a sample, and those that a writer that searches makes of it
	elements  int     // of the sample
	usual     quant.Codes
	x         []float32
}

// doubt looks at the scales of a unit, whose errors are known.
func (t *tally) doubt(codes *quant.Tensor, u *unit) {
	d := &t.doubts
	d.seen++
	if d.sure {
		return
	}
	if step, known := codes.UsualStep(u.groups[0].Least, u.groups[0].Most); known {
		d.sure = math.Abs(math.Abs(u.codes.Step[u.from])-step) > otherStep*step
		return
	}
	if far := slices.ContainsFunc(u.groups, func(e quant.Errors) bool { return e.Error2 > farGroup*u.spanned(&e) }); !far && d.seen%eachUnit != 1 || !d.usualOf(codes, u) {
		return
	}
	for g, e := range u.groups {
		best := d.usual.Errors(g, u.numbers(g))
		if e.Error2 > farGroup*u.spanned(&e) {
			d.sure = d.sure || worse(e.Error2, best.Error2, u.codes.Group)
		} else if d.seen%eachUnit == 1 {
			d.own, d.best, d.elements = d.own+e.Error2, d.best+best.Error2, d.elements+u.codes.Group
		}
	}
}

// spanned is the squared error that rounding makes with a step for which the codes span the numbers of a group.
func (u *unit) spanned(e *quant.Errors) float64 {
	spread := max(e.Most, 0) - min(e.Least, 0)
	if u.codes.Lo < 0 { // without an offset
		spread = 2 * max(e.Most, -e.Least)
	}
	step := spread / float64(u.codes.Hi-u.codes.Lo)
	return step * step / 12 * float64(u.codes.Group)
}

// usualOf makes the codes of a unit as the usual writer does.
func (d *doubts) usualOf(codes *quant.Tensor, u *unit) bool {
	d.x = d.x[:0]
	for _, v := range u.x {
		d.x = append(d.x, float32(v))
	}
	return codes.Usual(&d.usual, d.x)
}

// any reports whether a look at every unit is worth its time.
func (d *doubts) any() bool { return d.sure || worse(d.own, d.best, d.elements) }

// worse reports that the squared errors of n elements are larger than others by more than chance.
func worse(own, best float64, n int) bool {
	return n > 0 && math.Sqrt(own) > math.Sqrt(best)*(1+worseError+2/math.Sqrt(float64(n)))
}

// cost says in a note what scales that are not the best add to the error of a tensor whose codes are right.
func (s *sides) cost(ctx context.Context, row *Row) error {
	var d doubts
	var all, squares, others, best float64 // squared errors: of all, of groups with other scales, and of these by the usual writer
	groups, other, size := 0, 0, 1
	far, place := 0.0, ""
	err := s.coder().units(ctx, func(u *unit) bool {
		e := u.errors()
		all, squares, size = all+e.Error2, squares+e.X2, u.codes.Group
		groups += len(u.groups)
		if !d.usualOf(s.local.Coding.Codes, u) {
			return false
		}
		for g, e := range u.groups {
			if !d.other(u, g) {
				continue
			}
			b := d.usual.Errors(g, u.numbers(g))
			other++
			others, best = others+e.Error2, best+b.Error2
			if more := e.Error2 - b.Error2; more > far {
				far = more
				from := u.column + g*size
				place = fmt.Sprintf("row %d, columns %d to %d, whose error is %.2g times as large", u.row, from, from+size-1, math.Sqrt(e.Error2/b.Error2))
			}
		}
		return true
	})
	if err != nil || !worse(others, best, other*size) {
		return err
	}
	now, could := math.Sqrt(all/squares), math.Sqrt((all-others+best)/squares)
	row.Added = finite(now - could)
	row.note("%d of %d groups of %d have scales that are not the best, which adds %.2g to the relative L2 distance: it is %.2g, and %.2g with those of the usual writer; most in %s",
		other, groups, size, row.Added, now, could, place)
	return nil
}

// other reports that a group has another step or offset than those of the usual writer.
func (d *doubts) other(u *unit, g int) bool {
	step, usual := math.Abs(u.codes.Step[u.from+g]), math.Abs(d.usual.Step[g])
	return math.Abs(step-usual) > otherStep*usual || math.Abs(u.codes.Offset[u.from+g]-d.usual.Offset[g]) > otherOffset*usual
}
