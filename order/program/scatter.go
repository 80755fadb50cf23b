package program

import (
	"fmt"
	"math"
	"slices"
)

// Scatter is x with elements of y written by index along an axis: that which is x[… index[… i …] …] is y[… i …], the last that is
// written there. The index has y's shape, and x has it but for that axis; an index outside of it is an error of the evaluation.
func (b *Builder) Scatter(axis int, x, index, y Var) Var {
	return b.scattered(Scatter, "", axis, x, index, y)
}

// Collect is [Builder.Scatter] with the elements of y added to those of x, one after the other, each sum rounded.
func (b *Builder) Collect(name string, axis int, x, index, y Var) Var {
	return b.scattered(Collect, name, axis, x, index, y)
}

func (b *Builder) scattered(p Prim, name string, axis int, x, index, y Var) Var {
	if b.err != nil {
		return x
	}
	ok := axis >= 0 && axis < len(x.Shape) && len(x.Shape) == len(index.Shape) && slices.Equal(index.Shape, y.Shape)
	for a := range x.Shape {
		ok = ok && (a == axis || x.Shape[a] == index.Shape[a])
	}
	if !ok {
		return b.Fail("%s: %v by indexes of %v along axis %d of %v", p, y.Shape, index.Shape, axis, x.Shape)
	}
	return b.Append(Step{Prim: p, Name: name, Args: []Var{x, index, y}, Shape: x.Shape, Payload: Axis(axis)})
}

// scatter writes elements, or adds them.
func (r *run) scatter(i int, out operand) error {
	s := &r.p.Steps[i]
	x, index, y := r.packed(s.Args[0]), r.packed(s.Args[1]), r.packed(s.Args[2])
	copy(out.v, x.v)
	copy(out.e, x.e)
	f := r.at(i, r.choice(i).Round)
	inner, own, n := Size(s.Shape[s.Axis()+1:]), s.Args[1].Shape[s.Axis()], s.Shape[s.Axis()]
	var others *alternatives
	for i, at := range index.v {
		k := int(at)
		if !(at >= 0 && at < float64(n)) || at != float64(k) {
			return fmt.Errorf("scattering: %w: %v at %d is outside [0, %d)", ErrIndex, at, i, n)
		}
		place := func(k int) int { return (i/(own*inner)*n+k)*inner + i%inner }
		to, e := place(k), 0.0
		if out.e != nil {
			e = y.e[i]
		}
		v := y.v[i]
		if s.Prim == Collect {
			if out.e != nil {
				e += out.e[to]
			}
			v, e = f.one(out.v[to]+v, e)
		}
		if out.e == nil || index.e[i] == 0 {
			if out.v[to] = v; out.e != nil {
				out.e[to] = e
			}
			continue
		}
		// It may have been written elsewhere: each place has what it had, or this.
		if others == nil {
			others = r.alternatives(s.Args[1], n)
		}
		for _, k := range others.of(i) {
			if p := place(k); p != to {
				there, te := y.v[i], y.e[i]
				if s.Prim == Collect {
					there, te = f.one(out.v[p]+y.v[i], te+out.e[p])
				}
				out.e[p] = either(out.v[p], out.e[p], there, te)
			}
		}
		out.v[to], out.e[to] = v, either(v, e, out.v[to], out.e[to])
	}
	return nil
}

// either is the bound of v where the other number may be the right one.
func either(v, e, other, oe float64) float64 {
	if v == other || v != v && other != other {
		return known(max(e, oe))
	}
	return known(max(e, math.Abs(other-v)+oe))
}
