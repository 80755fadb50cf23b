package weights

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/quant"
)

// coder reads the codes of a tensor group by group, with the original's numbers for each code.
type coder struct {
	*sides
	grid  *quant.Grid
	codes *quant.Reader
	piece quant.Codes
	unit  unit
}

// unit is elements of a row whose steps are equal or multiples of one number, with the original's numbers.
type unit struct {
	row, column int
	x           []float64
	codes       *quant.Codes
	from, to    int            // the groups in codes
	groups      []quant.Errors // of each
	all         quant.Errors   // of several groups together
}

// coder returns a reader of a tensor's codes; nil where they need not be the nearest, or do not lie in rows as they are compared.
func (s *sides) coder() *coder {
	if s.local.Coding == nil || s.local.Coding.Nearest() == nil || s.local.Add != 0 || s.view.moves(s.view.t) {
		return nil
	}
	g := s.local.Coding.Data()
	_, columns := s.local.flat()
	if size := g.Codes.Unit; size != g.Group || columns%size != 0 || columns > chunk && chunk%size != 0 || g.First%int64(columns) != 0 {
		return nil
	}
	return &coder{sides: s, grid: g, codes: g.Codes.Reader()}
}

// units hands out the units of a tensor, each row from its first to its last.
func (c *coder) units(ctx context.Context, visit func(u *unit) bool) error {
	_, columns := c.local.flat()
	for p := range c.view.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := room(&c.r.original, p.size())
		if err := c.r.view(x, c.view, p); err != nil {
			return inTensor(c.view.t, err)
		}
		for row := p.r0; row < p.r1; {
			n := p.r1 - row // rows that are read at once
			if c.grid.Row != nil {
				n = 1
			}
			if err := c.codes.Codes(&c.piece, c.grid.Element(row, columns)+int64(p.c0), n*p.columns()); err != nil {
				return inTensor(c.local, err)
			}
			if !c.each(p, row, x[(row-p.r0)*p.columns():][:n*p.columns()], visit) {
				return nil
			}
			row += n
		}
	}
	return nil
}

// each hands out the units of what was read: whole rows of a part, from one on.
func (c *coder) each(p part, row int, x []float64, visit func(u *unit) bool) bool {
	size := c.grid.Codes.Unit
	groups := size / c.piece.Group
	u := &c.unit
	u.codes = &c.piece
	for at := 0; at < len(x); at += size {
		u.row, u.column = row+at/p.columns(), p.c0+at%p.columns()
		u.x, u.from, u.to = x[at:at+size], at/size*groups, at/size*groups+groups
		if !visit(u) {
			return false
		}
	}
	return true
}

// errors are those of a unit's groups, and of all together. They are kept in the unit until the next are.
func (u *unit) errors() *quant.Errors {
	u.groups = room(&u.groups, u.to-u.from)
	for g := range u.groups {
		u.groups[g] = u.codes.Errors(u.from+g, u.numbers(g))
	}
	if len(u.groups) == 1 {
		return &u.groups[0]
	}
	u.all = quant.Errors{Nearest: true, Least: u.x[0], Most: u.x[0]}
	for g := range u.groups {
		u.all.Add(&u.groups[g])
	}
	return &u.all
}

// numbers are the original's for a group, counted from the unit's first.
func (u *unit) numbers(g int) []float64 {
	n := u.codes.Group
	return u.x[g*n : (g+1)*n]
}

// quickCodes is pass for codes, as far as nearly all are the nearest to the original's numbers. Every unit is held to what
// [quant.Coding] asks of a run: at once where all codes are the nearest and the error is not larger than that rule allows, else by that rule. It is not
// right where a unit is not, or where the codes need not be the nearest.
func (s *sides) quickCodes(ctx context.Context) (t *tally, right bool, err error) {
	coder := s.coder()
	if coder == nil {
		return nil, false, nil
	}
	t = &tally{}
	q := plainRule(0, rounding{})
	right = true
	var one *sides
	err = coder.units(ctx, func(u *unit) bool {
		e := u.errors()
		t.elements += len(u.x)
		t.wrong, t.whole = t.wrong+e.Error2, t.whole+e.X2
		run, near := e.Sums(len(u.x), u.codes.Lo, u.codes.Hi)
		if !near {
			if one == nil {
				one = &sides{&reader{}, s.local, s.view}
			}
			if run, err = one.unit(ctx, q, u); err != nil || run.N == 0 {
				right = false
				return false
			}
		}
		t.rounded += run.Rounding()
		t.codes.Add(&run)
		t.doubt(coder.grid.Codes, u)
		return true
	})
	return t, right && err == nil, err
}

// unit judges a unit element by element. It returns no errors (n = 0) for a wrong unit.
func (s *sides) unit(ctx context.Context, q rule, u *unit) (e quant.Sums, err error) {
	b, err := s.read(ctx, part{u.row, u.row + 1, u.column, u.column + len(u.x)})
	if err != nil {
		return e, err
	}
	var r quant.Run
	b.run(&r, &q, 0, len(u.x))
	bad := make([]bool, len(u.x))
	if b.coding.Judge(&r, bad) && !slices.Contains(bad, true) {
		e = r.Sums()
	}
	return e, nil
}

// A scale that is not the best is no mistake, and costs accuracy. It is held against the one that the usual writer of the format gives the
// same numbers. The null hypothesis is that both err alike; the statistic is the ratio of their root mean square errors over the units with
// other scales, whose standard error over n elements is 0.63/√n where the errors are uniform.
const (
	otherStep   = 0.01 // a step differs if it differs by more than two roundings to bfloat16
	otherOffset = 0.1  // the same of an offset, in steps
	worseError  = 0.02 // the ratio beyond 1 that is said, with three standard errors more
	eachUnit    = 64   // one unit in so many is held to a writer that searches
	farGroup    = 1.5  // so many times the squared error of a step that spans a group's range is worth a look
)

// doubts say whether the scales of a tensor may not be the best, after one pass.
type doubts struct {
	sure      bool    // a step differs from the usual writer's step
	seen      int     // units
	own, best float64 // squared errors of a sample, and the errors of a searching writer on the same sample
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
	var all, squares, others, best float64 // squared errors: all groups; groups with other scales; these by the usual writer
	groups, other, size := 0, 0, 1
	far, place := 0.0, ""
	coder := s.coder()
	err := coder.units(ctx, func(u *unit) bool {
		e := u.errors()
		all, squares, size = all+e.Error2, squares+e.X2, u.codes.Group
		groups += len(u.groups)
		if !d.usualOf(coder.grid.Codes, u) {
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
	row.note("%d of %d groups of %d have scales that are not the best, which adds %.2g to the relative L2 distance: it is %.2g, and %.2g with the usual writer's scales; most in %s",
		other, groups, size, row.Added, now, could, place)
	return nil
}

// other reports whether the step or offset of a group differs from that of the usual writer.
func (d *doubts) other(u *unit, g int) bool {
	step, usual := math.Abs(u.codes.Step[u.from+g]), math.Abs(d.usual.Step[g])
	return math.Abs(step-usual) > otherStep*usual || math.Abs(u.codes.Offset[u.from+g]-d.usual.Offset[g]) > otherOffset*usual
}
