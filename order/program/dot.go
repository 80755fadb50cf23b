package program

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tracediff/tracediff/internal/products"
)

// Dot is Σ x·y, its axes in Einstein's notation: "bhtd,bhsd->bhts" sums over d, which both have and the result has not.
// Exactly one axis is summed over.
func (b *Builder) Dot(name, axes string, x, y Var) Var {
	operands, result, _ := strings.Cut(axes, "->")
	of, with, _ := strings.Cut(operands, ",")
	if len(of) != len(x.Shape) || len(with) != len(y.Shape) {
		return b.Fail("%s: %v and %v are not %s", name, x.Shape, y.Shape, axes)
	}
	summed := strings.IndexFunc(of, func(r rune) bool { return !strings.ContainsRune(result, r) })
	if summed < 0 || !strings.Contains(with, of[summed:summed+1]) {
		return b.Fail("%s: %s sums over nothing", name, axes)
	}
	over := result + of[summed:summed+1]
	if strings.Trim(of+with, over) != "" || strings.Trim(result, of+with) != "" {
		return b.Fail("%s: %s has more than one axis that is summed over, or one from nowhere", name, axes)
	}
	sizes := map[rune]int{}
	for i, r := range of + with {
		n := append(slices.Clone(x.Shape), y.Shape...)[i]
		if old, ok := sizes[r]; ok && old != n {
			return b.Fail("%s: %v and %v do not go together in %s", name, x.Shape, y.Shape, axes)
		}
		sizes[r] = n
	}
	var shape []int
	for _, r := range result {
		shape = append(shape, sizes[r])
	}
	return b.Append(Step{Prim: Dot, Name: name, Args: []Var{x.over(of, over), y.over(with, over)}, Shape: shape})
}

// over is a view with the axes named by letters: one that it has not is of size 1, and repeated.
func (v Var) over(own, letters string) Var {
	out := Var{Step: v.Step, Off: v.Off}
	for _, r := range letters {
		n, s := 1, 0
		if a := strings.IndexRune(own, r); a >= 0 {
			n, s = v.Shape[a], v.Stride[a]
		}
		out.Shape, out.Stride = append(out.Shape, n), append(out.Stride, s)
	}
	return out
}

// partial is a sum under way: the value, and the sums over the terms t from which the bound is computed: Σt², Σ|t|
// and the sum of the terms' bounds.
type partial struct{ sum, squares, abs, e float64 }

// total finishes a sum of n terms. In float32 it is off by
//
//	n·u·Σ|t|                        in any order, fused or not, products included (Jeannerod and Rump, Improved error
//	                                bounds for inner products in floating-point arithmetic, 2013), and by
//	λ·√n·u·(‖t‖₂ + |Σt|), λ = 3     in nearly every: roundings are as good as independent and of mean zero, so they add
//	                                as a random walk (Higham and Mary, 2019), and partial sums of terms whose signs vary
//	                                stay near the line from 0 to Σt and within ‖t‖₂ of it.
//
// The second is what is used unless Rigorous. It is no theorem for structured data: of rows of one or few values added one
// after the other the errors were up to ten times as large at n = 16384. That is what [Summation] is for. Both are of normal numbers; see
// [finisher.underflow] for others.
func (f finisher) total(p partial, n int) (float64, float64) {
	return f.totalOf(p, n, f.ofSum(n))
}

// totalOf is total with what ofSum gives.
func (f finisher) totalOf(p partial, n int, ofSum float64) (float64, float64) {
	switch {
	case !f.Bounds, n == 1: // one term is no sum
	case f.Rigorous:
		p.e += float64(n)*f.unit()*p.abs + f.underflow(n, p.abs)
	default:
		size := math.Sqrt(p.squares) + math.Abs(p.sum)
		p.e += ofSum*size + f.underflow(n, size)
	}
	return f.one(p.sum, p.e)
}

// underflow is what n products and the sums of some of them may lose below the normal numbers of float32, where engines take them for zero. Terms
// that are all 0 lose nothing.
func (f finisher) underflow(n int, size float64) float64 {
	if f.round == None || size == 0 {
		return 0
	}
	return float64(2*n) * normal32
}

// unit is the unit roundoff of what a sum is added in.
func (f finisher) unit() float64 {
	if f.round == None {
		return unit64
	}
	return unit32
}

// ofSum is λ·√n·u.
func (f finisher) ofSum(n int) float64 { return lambda * math.Sqrt(float64(n)) * f.unit() }

// split is a sum of n products in parts, each rounded to the model's dtype. Where they are added in it, so is the sum. One product
// has no parts.
func (f finisher) split(way uint8, n int, products func(from, to int) partial) (float64, float64) {
	k, narrow := ofParts(way)
	if k == 0 || n < 2 {
		return f.total(products(0, n), n)
	}
	of, add := f, f
	if of.round = Model; f.round != None {
		add.round = Plain
	}
	if narrow {
		add.round = Model
	}
	size := max((n+k-1)/k, 1)
	var v, e float64
	for from := 0; from < n; from += size {
		to := min(from+size, n)
		pv, pe := of.total(products(from, to), to-from)
		if from == 0 {
			v, e = pv, pe
			continue
		}
		if to == n && !narrow { // what the site itself rounds to comes last
			add.round = f.round
		}
		v, e = add.one(v+pv, e+pe)
	}
	return v, e
}

// products sums the products of the elements [from, to) of two rows.
func (a *Arith) products(x, y operand, from, to int) (p partial) {
	xv, yv := x.v[from:to], y.v[from:to]
	if !a.Bounds {
		p.sum = products.Dot(xv, yv)
		return p
	}
	xe, ye := x.e[from:to], y.e[from:to]
	for i, v := range xv {
		w := yv[i]
		t := float64(v * w)
		p.sum += t
		p.squares += float64(t * t)
		p.abs += math.Abs(t)
		if xe[i] != 0 || ye[i] != 0 {
			p.e += spread(v, xe[i], w, ye[i])
		}
	}
	return p
}

// terms are those of a row from one to another.
func (a *Arith) terms(x operand, from, to int) (p partial) {
	if !a.Bounds {
		for _, v := range x.v[from:to] {
			p.sum += v
		}
		return p
	}
	for i, v := range x.v[from:to] {
		p.sum += v
		p.squares += float64(v * v)
		p.abs += math.Abs(v)
		p.e += x.e[from+i]
	}
	return p
}

// sums computes rows of a Sum.
func (r *run) sums(i int, out, x operand) {
	c := r.choice(i)
	f := r.at(i, c.Round)
	n := len(x.v) / max(len(out.v), 1)
	for k := range out.v {
		row := x.slice(k*n, n)
		v, e := 0.0, 0.0
		if r.a.Sum != nil {
			v, e = f.one(r.a.replay(n, func(i int) (float64, float64, float64, float64) {
				return row.v[i], row.bound(i), 1, 0
			}))
		} else {
			v, e = f.split(c.Way, n, func(from, to int) partial { return r.a.terms(row, from, to) })
		}
		if out.v[k] = v; out.e != nil {
			out.e[k] = e
		}
	}
}

func (o operand) slice(from, n int) operand {
	s := operand{v: o.v[from:][:n]}
	if o.e != nil {
		s.e = o.e[from:][:n]
	}
	return s
}

func (o operand) bound(i int) float64 {
	if o.e == nil {
		return 0
	}
	return o.e[i]
}

// dots computes a Dot: rows of both operands, each a run of numbers, are paired as the result's axes say.
func (r *run) dots(i int, out operand) {
	s := &r.p.Steps[i]
	c := r.choice(i)
	f := r.at(i, c.Round)
	x, y := r.rows(s.Args[0]), r.rows(s.Args[1])
	last := len(s.Shape) - 1
	if x.view.Stride[last] != 0 && y.view.Stride[last] == 0 {
		x, y = y, x
	}
	n, inner := s.Args[0].Last(), s.Shape[last]
	outer := rowCount(s.Shape)
	sx, sy := x.view.Stride[last], y.view.Stride[last]
	together := sx == 0 && r.a.Sum == nil && c.Way == 0 && sharing(s.Shape, y.view) >= fewSharing && (!r.a.Bounds || x.finite() && y.finite())
	rows := make([]dotted, 0, outer)
	index, to := make([]int, last), r.slotsOf(i)
	for o := range outer {
		if r.need.of(i, o) {
			rows = append(rows, dotted{x.at(index), y.at(index), o})
		}
		for a := last - 1; a >= 0; a-- {
			if index[a]++; index[a] < s.Shape[a] {
				break
			}
			index[a] = 0
		}
	}
	if together { // queries with the same keys follow each other, and the keys are laid out once
		slices.SortStableFunc(rows, func(a, b dotted) int { return cmp.Compare(a.y, b.y) })
	}
	outer = len(rows)
	workers, piece := 1, outer
	if outer*inner*n >= manyProducts {
		workers = min(runtime.GOMAXPROCS(0), outer)
		piece = (outer + 2*workers - 1) / (2 * workers)
	}
	var next atomic.Int64
	share(workers, func() {
		var b *batch
		if together {
			b = newBatch(f, n, inner, x.operand, y.operand, sy)
		}
		for from := int(next.Add(int64(piece))) - piece; from < outer && piece > 0; from = int(next.Add(int64(piece))) - piece {
			for _, row := range rows[from:min(from+piece, outer)] {
				if out := out.slice(to.place(row.out*inner), inner); together {
					b.add(x.slice(row.x, n), row.y, out)
				} else {
					r.dotRow(f, c.Way, out, pairs{x.operand, y.operand, row.x, row.y, sx, sy, n})
				}
			}
		}
		if together {
			b.finish()
		}
	})
}

// fewSharing is how many rows have to be multiplied with the same rows before these are laid out for them.
const fewSharing = products.Tile / 2

// sharing is how many rows of a result of some shape are computed from each row of a view: those that differ in axes along which the view is repeated.
func sharing(shape []int, y Var) int {
	n := 1
	for a, size := range shape[:len(shape)-1] {
		if y.Stride[a] == 0 {
			n *= size
		}
	}
	return n
}

// laid is about how many elements are laid out for the rows of a Dot, however few of its rows are computed: those that several rows multiply.
func laid(p *Program, i int) int {
	s := &p.Steps[i]
	x, y := s.Args[0], s.Args[1]
	last := len(s.Shape) - 1
	if x.Stride[last] != 0 && y.Stride[last] == 0 {
		y = x
	}
	n := sharing(s.Shape, y)
	if n < fewSharing {
		return 0
	}
	return rowCount(s.Shape) / n * s.Shape[last] * y.Last()
}

// dotted is where a row of products has its operands and its result.
type dotted struct{ x, y, out int }

// rowsOf are the rows of a view, each a run of numbers.
type rowsOf struct {
	operand
	view Var
	has  *slots
}

// at is where a row begins that is computed.
func (o rowsOf) at(index []int) int {
	at := o.view.Off
	for a, k := range index {
		at += k * o.view.Stride[a]
	}
	return o.has.place(at)
}

// rows lays the last axis of a view side by side, where it is not.
func (r *run) rows(v Var) rowsOf {
	o := r.whole(v.Step)
	if v.Stride[len(v.Stride)-1] == 1 || v.Last() == 1 {
		return rowsOf{o, v, r.slotsOf(v.Step)}
	}
	packed := Var{Step: v.Step, Off: v.Off, Shape: slices.Clone(v.Shape), Stride: v.Stride}
	last := len(v.Shape) - 1
	for a, s := range v.Stride {
		if s == 0 && a != last { // repeated: one copy is enough
			packed.Shape[a] = 1
		}
	}
	count := Size(packed.Shape)
	p := operand{v: make([]float64, count)}
	if o.e != nil {
		p.e = make([]float64, count)
	}
	r.gather(p, packed, 0, count/max(v.Last(), 1))
	stride := Contiguous(packed.Shape)
	for a, s := range v.Stride {
		if s == 0 && a != last {
			stride[a] = 0
		}
	}
	return rowsOf{p, Var{v.Step, 0, v.Shape, stride}, nil}
}

// pairs are the rows from which a row of results is computed.
type pairs struct {
	x, y   operand
	ax, ay int // of the first
	sx, sy int // from one to the next
	n      int
}

func (r *run) dotRow(f finisher, way uint8, out operand, p pairs) {
	for k := r.fours(f, out, p); k < len(out.v); k++ {
		x, y := p.x.slice(p.ax+k*p.sx, p.n), p.y.slice(p.ay+k*p.sy, p.n)
		v, e := 0.0, 0.0
		switch {
		case r.a.Sum != nil && zero(x.e) && zero(y.e):
			v, e = f.one(r.a.Sum.dot(x.v, y.v), 0)
		case r.a.Sum != nil:
			v, e = f.one(r.a.replay(p.n, func(i int) (float64, float64, float64, float64) {
				return x.v[i], x.bound(i), y.v[i], y.bound(i)
			}))
		default:
			v, e = f.split(way, p.n, func(from, to int) partial { return r.a.products(x, y, from, to) })
		}
		if out.v[k] = v; out.e != nil {
			out.e[k] = e
		}
	}
}

// fours takes the first of a row's results in the order of a summation, four at a time, and returns how many: where one row is multiplied with
// many, and none has a bound.
func (r *run) fours(f finisher, out operand, p pairs) int {
	if r.a.Sum == nil || p.sx != 0 || !zero(p.x.slice(p.ax, p.n).e) {
		return 0
	}
	for k := 0; k+4 <= len(out.v); k += 4 {
		var y [4][]float64
		for i := range y {
			row := p.y.slice(p.ay+(k+i)*p.sy, p.n)
			if y[i] = row.v; !zero(row.e) {
				return k
			}
		}
		for i, v := range r.a.Sum.four(p.x.v[p.ax:][:p.n], y) {
			v, e := f.one(v, 0)
			if out.v[k+i] = v; out.e != nil {
				out.e[k+i] = e
			}
		}
	}
	return len(out.v) &^ 3
}

func zero(e []float64) bool { return !slices.ContainsFunc(e, func(x float64) bool { return x != 0 }) }
