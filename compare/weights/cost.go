package weights

import (
	"fmt"
	"math"

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
	farUnit     = 1.5  // so many times the squared error of a step that spans a unit's range is worth a look
)

// doubts say whether the scales of a tensor may not be the best, after one pass.
type doubts struct {
	sure      bool // a step is another one than the usual writer's
	seen      int  // units
	own, best quant.Errors
	elements  int // of the sample that was held to a writer that searches
	usual     quant.Codes
	x         []float32
}

// doubt looks at the scales of a unit.
func (t *tally) doubt(codes *quant.Tensor, u *unit, e *quant.Errors) {
	d := &t.doubts
	d.seen++
	if d.sure {
		return
	}
	step, known := codes.UsualStep(e.Least, e.Most)
	if known {
		d.sure = math.Abs(math.Abs(u.codes.Step[u.from])-step) > otherStep*step
		return
	}
	spread := max(e.Most, 0) - min(e.Least, 0)
	if u.codes.Lo < 0 { // without an offset
		spread = 2 * max(e.Most, -e.Least)
	}
	naive := spread / float64(u.codes.Hi-u.codes.Lo)
	far := e.Error2 > farUnit*naive*naive/12*float64(len(u.x))
	if !far && d.seen%eachUnit != 1 || !d.usualOf(codes, u) {
		return
	}
	best := u.errors(&d.usual, 0)
	if far {
		d.sure = e.Error2 > best.Error2*(1+2*worseError)
		return
	}
	d.own.Add(*e)
	d.best.Add(best)
	d.elements += len(u.x)
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
func (d *doubts) any() bool {
	return d.sure || worse(d.own.Error2, d.best.Error2, d.elements)
}

// worse reports that squared errors of n elements are larger than others by more than chance.
func worse(own, best float64, n int) bool {
	return n > 0 && math.Sqrt(own) > math.Sqrt(best)*(1+worseError+2/math.Sqrt(float64(n)))
}

// cost says in a note what scales that are not the best add to the error of a tensor whose codes are right.
func (c *comparison) cost(r *reader, row *Row, local *Tensor, v view) error {
	coder := newCoder(r, local, v)
	var d doubts
	var all, others, best float64 // squared errors: of all, of units with other scales, and of these by the usual writer
	var squares float64
	units, other, elements := 0, 0, 0
	far, place := 0.0, ""
	err := coder.units(func(u *unit) bool {
		e := u.errors(u.codes, u.from)
		units++
		all, squares = all+e.Error2, squares+e.X2
		if !d.usualOf(local.Grid.Codes, u) || !d.other(u) {
			return true
		}
		b := u.errors(&d.usual, 0)
		other++
		elements += len(u.x)
		others, best = others+e.Error2, best+b.Error2
		if more := e.Error2 - b.Error2; more > far {
			far = more
			place = fmt.Sprintf("row %d, columns %d to %d, whose error is %.2g times as large", u.row, u.column, u.column+len(u.x)-1, math.Sqrt(e.Error2/b.Error2))
		}
		return true
	})
	if err != nil || !worse(others, best, elements) {
		return err
	}
	now, could := math.Sqrt(all/squares), math.Sqrt((all-others+best)/squares)
	row.Added = finite(now - could)
	row.note("%d of %d groups of %d have scales that are not the best, which adds %.2g to the relative L2 distance: it is %.2g, and %.2g with those of the usual writer; most in %s",
		other, units, local.Grid.Codes.Unit, row.Added, now, could, place)
	return nil
}

// other reports that a unit has other steps or offsets than those of the usual writer.
func (d *doubts) other(u *unit) bool {
	for g := range u.to - u.from {
		step, usual := math.Abs(u.codes.Step[u.from+g]), math.Abs(d.usual.Step[g])
		if math.Abs(step-usual) > otherStep*usual || math.Abs(u.codes.Offset[u.from+g]-d.usual.Offset[g]) > otherOffset*usual {
			return true
		}
	}
	return false
}
