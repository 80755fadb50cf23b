package weights

import (
	"context"
	"math"

	"github.com/tracediff/tracediff/internal/quant"
)

// coder reads the codes of a tensor, group by group, and the numbers of the original beside them.
type coder struct {
	*sides
	codes *quant.Reader
	piece quant.Codes
	unit  unit
}

// unit is some elements of a row whose steps are one, or multiples of one number, and what the original has there.
type unit struct {
	row, column int
	x           []float64
	codes       *quant.Codes
	from, to    int            // the groups in codes
	groups      []quant.Errors // of each
	all         quant.Errors   // of several groups together
}

// coder returns a reader of a tensor's codes; nil where they do not lie in rows as they are compared.
func (s *sides) coder() *coder {
	g := s.local.Coding
	if g == nil || g.Codes == nil || s.local.Add != 0 || s.view.moves(s.view.t) {
		return nil
	}
	_, columns := s.local.flat()
	if size := g.Codes.Unit; size != groupOf(g) || columns%size != 0 || columns > chunk && chunk%size != 0 || g.First%int64(columns) != 0 {
		return nil
	}
	return &coder{sides: s, codes: g.Codes.Reader()}
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
			if c.local.Coding.Row != nil {
				n = 1
			}
			if err := c.codes.Codes(&c.piece, c.local.Coding.Element(row, columns)+int64(p.c0), n*p.columns()); err != nil {
				return inTensor(c.local, err)
			}
			c.r.done.Add(int64(n * p.columns()))
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
	size := c.local.Coding.Codes.Unit
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
// [rule.run] asks: at once where all codes are the nearest and the error is not larger than that rule allows, else by that rule. It is not
// right where a unit is not, or where the tensor's format has to be judged by other rules.
func (s *sides) quickCodes(ctx context.Context) (t *tally, right bool, err error) {
	coder := s.coder()
	if coder == nil || s.local.Coding.Moves || s.local.Coding.Shared {
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
		run := codeErrors{n: len(u.x), sum: e.Error2, largest: max(-e.Least, e.Most), codes: float64(u.codes.Hi - u.codes.Lo)}
		rounding := run.rounding()
		small := run.sum < 11*worstRun*worstRun*rounding // the bound is 12 times: no root is needed
		if !e.Nearest || !(e.Beyond2 <= lost*e.X2) && e.Error2 > 0 || !small && !(run.times() <= worstRun*math.Sqrt(12)) {
			if one == nil {
				one = &sides{&reader{done: s.r.done}, s.local, s.view}
			}
			if run, err = one.unit(ctx, q, u); err != nil || run.n == 0 {
				right = false
				return false
			}
			rounding = run.rounding()
		}
		t.rounded += rounding
		t.codes.merge(&run)
		t.doubt(s.local.Coding.Codes, u)
		return true
	})
	return t, right && err == nil, err
}

// unit judges a unit by its elements, one by one. The errors have no element where it is wrong.
func (s *sides) unit(ctx context.Context, q rule, u *unit) (codeErrors, error) {
	b, err := s.read(ctx, part{u.row, u.row + 1, u.column, u.column + len(u.x)})
	if err != nil {
		return codeErrors{}, err
	}
	bad := make([]bool, len(u.x))
	if !q.run(&b, bad, 0, len(bad)) {
		return codeErrors{}, nil
	}
	var e codeErrors
	for i, x := range b.original {
		if bad[i] {
			return codeErrors{}, nil
		}
		e.add(&b, i, x, b.Slack[i]+quant.Taken(x))
	}
	return e, nil
}
