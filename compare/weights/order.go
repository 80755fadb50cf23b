package weights

import (
	"cmp"
	"context"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// hashes tell which rows, the first, and which columns, the second, of two tensors may be the same.
type hashes [2][]uint64

const odd64 = 0x9E3779B97F4A7C15

// mix puts a number into a hash.
func mix(h uint64, x float64) uint64 {
	b := math.Float64bits(x)
	if x == 0 {
		b = 0
	} else if x != x {
		b = math.MaxUint64
	}
	h = (bits.RotateLeft64(h, 29) ^ b) * odd64
	return h ^ h>>32
}

// hashed reads a tensor whole. made is what becomes of its numbers.
func (r *reader) hashed(ctx context.Context, t *Tensor, made func(float64) float64) (*hashes, error) {
	rows, columns := t.flat()
	h := &hashes{make([]uint64, rows), make([]uint64, columns)}
	err := r.whole(ctx, t, func(p part, values []float64) {
		for i, x := range values {
			x = made(x)
			row, column := p.r0+i/p.columns(), p.c0+i%p.columns()
			h[0][row], h[1][column] = mix(h[0][row], x), mix(h[1][column], x)
		}
	})
	return h, err
}

// whole reads a tensor part by part. The numbers are those of the next part after visit.
func (r *reader) whole(ctx context.Context, t *Tensor, visit func(p part, values []float64)) error {
	for p := range (view{t: t}).parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		values := room(&r.local, p.size())
		if err := r.values(values, t, p); err != nil {
			return inTensor(t, err)
		}
		visit(p, values)
	}
	return nil
}

// ordering is an order of rows or columns that mistakes make: place i has what the original has in from(i). What is of no kind is of another
// order of rows or columns.
type ordering struct {
	what phrase
	from func(i int) int
}

// orderings are those of n rows, which noun calls what they are.
func (h heads) orderings(noun string, n int) []ordering {
	var all []ordering
	for _, d := range h.widths(n) {
		half := d / 2
		of := say("", "in each head of %d", d)
		if d == n {
			of = say("", "of the whole tensor")
		}
		all = append(all,
			ordering{say(Interleaved, "interleaved RoPE %s, and halves in the original: %ss 2i and 2i+1 are %[2]ss i and i+%d of the original", of, noun, half), func(i int) int { return i/d*d + i%d%2*half + i%d/2 }},
			ordering{say(Halves, "RoPE in halves %s, and interleaved in the original: %ss i and i+%d are %[2]ss 2i and 2i+1 of the original", of, noun, half), func(i int) int { return i/d*d + i%d%half*2 + i%d/half }})
	}
	if n%2 == 0 && n > 2 {
		all = append(all, ordering{say("", "the two halves have changed places: %s i is the original's i+%d, and the other way round", noun, n/2), func(i int) int { return (i + n/2) % n }})
	}
	all = append(all, ordering{say("", "the %ss stand in reverse order", noun), func(i int) int { return n - 1 - i }})
	for s := 1; s <= 8 && s < n-1; s++ {
		for _, by := range []int{s, -s} {
			what := say(ShiftedRows, "%s i is the original's i%+d, and the %s %d are its %s", noun, by, either(by > 0, "last", "first"), s, either(by > 0, "first", "last"))
			all = append(all, ordering{what, func(i int) int { return (i + by + n) % n }})
		}
	}
	return all
}

// heads is the width of a head of the model; 0: not known.
type heads int

// widths are those that a head can have in a tensor of n rows: the model's first.
func (h heads) widths(n int) []int {
	var list []int
	if d := int(h); d > 2 && d%2 == 0 && n%d == 0 {
		list = append(list, d)
	}
	for d := 4; d <= n; d += 2 {
		if n%d == 0 && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// ordered is the search for another order of rows or columns.
type ordered struct {
	*pair
	heads heads
}

func newOrdered(of *pair) ordered { return ordered{of, heads(of.c.o.HeadDim)} }

// orders yields the orders of rows, then of columns, in which both sides have the same numbers.
func orders(ctx context.Context, of *pair) iter.Seq2[reading, error] {
	a := newOrdered(of)
	return func(yield func(reading, error) bool) {
		mine, err := a.r.hashed(ctx, a.local, func(x float64) float64 { return x })
		for _, x := range roundingsOf(a.local, a.original) {
			var theirs *hashes
			if err == nil {
				theirs, err = a.r.hashed(ctx, a.original, plainRule(a.local.Add, x).rounds)
			}
			if err != nil {
				yield(reading{}, err)
				return
			}
			for by := range mine {
				if x := a.order(by, mine[by], theirs[by]); x != nil && !yield(*x, nil) {
					return
				}
			}
		}
	}
}

// ordersOfCodes yields the usual orders: hashes do not match codes with the original's numbers.
func ordersOfCodes(_ context.Context, of *pair) iter.Seq2[reading, error] {
	a := newOrdered(of)
	rows, columns := a.local.flat()
	return func(yield func(reading, error) bool) {
		for by, n := range []int{rows, columns} {
			for _, x := range a.heads.orderings(a.noun(by), n) {
				order := make([]int32, n)
				for i := range n {
					order[i] = int32(x.from(i))
				}
				if !yield(a.inOrder(by, order, x.what), nil) {
					return
				}
			}
		}
	}
}

// minPrint is how many numbers the print of a row or column has at least.
const minPrint = 8

// ordersByPrints yields the order of rows, then of columns, that the prints of codes show.
func ordersByPrints(ctx context.Context, of *pair) iter.Seq2[reading, error] {
	a := newOrdered(of)
	return func(yield func(reading, error) bool) {
		for by, look := range []func(context.Context) ([]int32, error){a.rowsFrom, a.columnsFrom} {
			from, err := look(ctx)
			var h *hashes
			if err == nil && from != nil {
				h, err = a.r.hashed(ctx, a.original, func(x float64) float64 { return x })
			}
			if err != nil {
				yield(reading{}, err)
				return
			}
			if from == nil {
				continue
			}
			theirs := h[by]
			mine := make([]uint64, len(from))
			for i, at := range from {
				mine[i] = theirs[at]
			}
			if x := a.order(by, mine, theirs); x != nil && !yield(*x, nil) {
				return
			}
		}
	}
}

// order returns the reading in which the hashes of both sides agree; nil if no order does that.
func (a ordered) order(by int, mine, theirs []uint64) *reading {
	order, what := a.heads.find(a.noun(by), mine, theirs)
	if order == nil {
		return nil
	}
	x := a.inOrder(by, order, what)
	return &x
}

// noun is what an order is of. A vector has columns only, called elements in reports.
func (a ordered) noun(by int) string {
	if by == 1 && len(a.local.Shape) < 2 {
		return "element"
	}
	return []string{"row", "column"}[by]
}

// inOrder returns a reading of the original with its rows or columns in an order.
func (a ordered) inOrder(by int, order []int32, what phrase) reading {
	v, kind := view{t: a.original, rows: order}, cmp.Or(what.kind, RowOrder)
	if by == 1 {
		v, kind = view{t: a.original, columns: order}, cmp.Or(what.kind, ColumnOrder)
	}
	if a.noun(by) == "column" {
		if kind == ShiftedRows {
			kind = Shifted
		}
		what = say("", "in its columns, %s", what)
	}
	what.kind = kind
	return reading{view: v, rule: plainRule(a.local.Add, rounding{}), said: what.always}
}

// rowsFrom finds the row of the original for each row: its own where its codes are right there. It returns nil if a row has no match or
// several.
func (a ordered) rowsFrom(ctx context.Context) ([]int32, error) {
	rows, columns := a.local.flat()
	from := identity(rows)
	for _, r := range a.t.badRows() {
		b, err := a.read(ctx, part{r, r + 1, 0, columns})
		if err != nil {
			return nil, err
		}
		at, err := parts{a.pair}.rowElsewhere(ctx, &b)
		if at < 0 || err != nil {
			return nil, err
		}
		from[r] = int32(at)
	}
	return from, nil
}

// columnsFrom finds the column of the original with the nearest print for each column, its own first; nil if no column moved.
func (a ordered) columnsFrom(ctx context.Context) ([]int32, error) {
	theirs, err := a.r.prints(ctx, a.original, true)
	if err != nil {
		return nil, err
	}
	mine, err := a.r.prints(ctx, a.local, true)
	if err != nil {
		return nil, err
	}
	c := newCatalogue(theirs)
	from, moved := identity(len(mine)), false
	for i := range mine {
		if near := c.near(&mine[i]); !slices.Contains(near, int32(i)) {
			from[i], moved = near[0], true
		}
	}
	if !moved {
		return nil, nil
	}
	return from, nil
}

// find returns an order with l[i] = o[order[i]] for the hashes of both sides, and what to say of it; nil without such an order.
func (h heads) find(noun string, l, o []uint64) (order []int32, what phrase) {
	n := len(l)
	if n < 2 || slices.Equal(l, o) {
		return nil, phrase{}
	}
	alone := blockOrder(l, o, 1)
	if alone == nil {
		return nil, phrase{}
	}
	take := func(from func(int) int) []int32 {
		order := make([]int32, n)
		for i := range n {
			at := from(i)
			if l[i] != o[at] {
				return nil
			}
			order[i] = int32(at)
		}
		return order
	}
	for _, x := range h.orderings(noun, n) {
		if order := take(x.from); order != nil {
			return order, x.what
		}
	}
	for _, d := range h.blocks(n) {
		if at := blockOrder(l, o, d); at != nil {
			first, _ := moved(at)
			return take(func(i int) int { return int(at[i/d])*d + i%d }),
				say(HeadOrder, "blocks of %d %ss stand in another order: block %d is the original's %d", d, noun, first, at[first])
		}
	}
	first, others := moved(alone)
	if others == 2 {
		return alone, say("", "%ss %s have changed places", noun, both{first, int(alone[first])})
	}
	return alone, say("", "%d of %d %ss stand in another order: the first is %d, which is the original's %d", others, n, noun, first, alone[first])
}

// blocks are the sizes of blocks that are looked for: a head first.
func (h heads) blocks(n int) []int {
	var list []int
	for d := n / 2; d >= 2; d-- {
		if n%d == 0 && (d == int(h) || n/d <= 256) {
			list = append(list, d)
		}
	}
	if at := slices.Index(list, int(h)); at > 0 {
		list = slices.Insert(slices.Delete(list, at, at+1), 0, int(h))
	}
	return list
}

// blockOrder matches each block of d with a block of o: of several equal ones the one in its own place, else the first unused.
// It returns nil if a block has no match.
func blockOrder(l, o []uint64, d int) []int32 {
	n := len(l) / d
	sum := func(list []uint64, i int) uint64 {
		h := uint64(0)
		for _, x := range list[i*d : (i+1)*d] {
			h = (bits.RotateLeft64(h, 17) ^ x) * odd64
		}
		return h
	}
	of := map[uint64][]int32{}
	theirs := make([]uint64, n)
	for i := range n {
		theirs[i] = sum(o, i)
		of[theirs[i]] = append(of[theirs[i]], int32(i))
	}
	order := identity(n)
	for i := range n {
		if h := sum(l, i); theirs[i] == h {
			of[h] = slices.DeleteFunc(of[h], func(x int32) bool { return int(x) == i })
		}
	}
	for i := range n {
		h := sum(l, i)
		if theirs[i] == h {
			continue
		}
		if len(of[h]) == 0 {
			return nil
		}
		order[i], of[h] = of[h][0], of[h][1:]
	}
	return order
}
