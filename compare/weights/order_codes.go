package weights

import (
	"context"
	"slices"
)

// orderedCodes tries the orders that mistakes make on a tensor of codes, whose numbers are not the original's.
func (a *attempt) orderedCodes(ctx context.Context) (bool, error) {
	rows, columns := a.local.flat()
	q := plainRule(a.local.Add, rounding{})
	try := func(x ordering, n int, word string) (bool, error) {
		order := make([]int32, n)
		for i := range n {
			order[i] = int32(x.from(i))
		}
		v := view{t: a.original, rows: order}
		if word == "column" {
			v = view{t: a.original, columns: order}
		}
		ok, err := a.explains(ctx, a.r, a.local, v, q)
		if ok {
			a.permuted(word, x.kind, x.what)
		}
		return ok, err
	}
	for _, side := range []struct {
		n    int
		word string
	}{{rows, "row"}, {columns, "column"}} {
		for _, x := range a.orderings(side.n) {
			if ok, err := try(x, side.n, side.word); ok || err != nil {
				return ok, err
			}
		}
	}
	return a.searched(ctx)
}

// minPrint is how many numbers the print of a row or column has at least.
const minPrint = 8

// searched looks for an order of the rows, and then of the columns, of codes by their prints.
func (a *attempt) searched(ctx context.Context) (bool, error) {
	rows, columns := a.local.flat()
	if rows < minPrint || columns < minPrint {
		return false, nil
	}
	from, err := a.rowsFrom(ctx)
	if err != nil {
		return false, err
	}
	if from != nil {
		if ok, err := a.orderFrom(ctx, from, "row"); ok || err != nil {
			return ok, err
		}
	}
	if from, err = a.columnsFrom(ctx); from == nil || err != nil {
		return false, err
	}
	return a.orderFrom(ctx, from, "column")
}

// rowsFrom says for each row which one of the original it is: its own place where its codes are right there. nil where one is none, or
// may be several.
func (a *attempt) rowsFrom(ctx context.Context) ([]int32, error) {
	rows, columns := a.local.flat()
	from := make([]int32, rows)
	for i := range from {
		from[i] = int32(i)
	}
	for _, r := range a.t.badRows() {
		b, err := a.r.read(ctx, a.local, view{t: a.original}, part{r, r + 1, 0, columns})
		if err != nil {
			return nil, err
		}
		at, err := a.rowElsewhere(ctx, &b)
		if at < 0 || err != nil {
			return nil, err
		}
		from[r] = int32(at)
	}
	return from, nil
}

// columnsFrom says for each column which one of the original its print is nearest to, its own place first; nil where no other is.
func (a *attempt) columnsFrom(ctx context.Context) ([]int32, error) {
	theirs, err := a.r.prints(ctx, a.original, true)
	if err != nil {
		return nil, err
	}
	mine, err := a.r.prints(ctx, a.local, true)
	if err != nil {
		return nil, err
	}
	c := newCatalogue(theirs)
	from := make([]int32, len(mine))
	moved := false
	for i := range mine {
		near := c.near(&mine[i])
		if from[i] = int32(i); !slices.Contains(near, int32(i)) {
			from[i], moved = near[0], true
		}
	}
	if !moved {
		return nil, nil
	}
	return from, nil
}

// orderFrom names an order of rows or columns where it is one, and gives every code.
func (a *attempt) orderFrom(ctx context.Context, from []int32, word string) (bool, error) {
	h, err := a.r.hashed(ctx, a.original, func(x float64) float64 { return x })
	if err != nil {
		return false, err
	}
	theirs := h.rows
	if word == "column" {
		theirs = h.columns
	}
	mine := make([]uint64, len(from))
	for i, at := range from {
		mine[i] = theirs[at]
	}
	order, kind, what := a.order(mine, theirs)
	if order == nil {
		return false, nil
	}
	v := view{t: a.original, rows: order}
	if word == "column" {
		v = view{t: a.original, columns: order}
	}
	ok, err := a.explains(ctx, a.r, a.local, v, plainRule(a.local.Add, rounding{}))
	if ok && err == nil {
		a.permuted(word, kind, what)
	}
	return ok && err == nil, err
}
