package weights

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/tracediff/tracediff/internal/floats"
)

// minScaled is how many elements have to agree on a factor.
const minScaled = 8

// scaled looks for one factor.
func (a *attempt) scaled(ctx context.Context) (bool, error) {
	if !a.local.DType.Float() || !a.original.DType.Float() || a.local.Add != 0 {
		return false, nil
	}
	var both, whole float64
	n, first, varied := 0, 0.0, false
	for _, b := range a.sample {
		for i, x := range b.original {
			if p := x * b.local[i]; x == 0 || p-p != 0 {
				continue
			}
			if n++; n == 1 {
				first = x
			}
			varied = varied || x != first
			both += x * b.local[i]
			whole += x * x
		}
	}
	if n < minScaled || !varied || whole == 0 || both == 0 {
		return false, nil
	}
	factor := a.factorNear(both / whole)
	ok, _, err := a.is(ctx, view{t: a.original}, func(x rounding) rule {
		return rule{scale: factor, round: x}.nearly(a.local, 1)
	})
	if math.Abs(factor-1) <= a.unit() { // codes hide it: what differs is something else
		return false, nil
	}
	if ok && err == nil {
		a.row.wrong(Mistake, Scaled, "%s times the original, in every element", a.factorName(factor))
	}
	return ok && err == nil, err
}

// factorNear is a usual factor where a measured one is as good as that.
func (a *attempt) factorNear(x float64) float64 {
	for _, f := range a.factors() {
		if math.Abs(x-f.value) <= a.unit()*math.Abs(f.value) {
			return f.value
		}
	}
	return x
}

// unit is how far a measured factor may be from the true one, as a part of it.
func (a *attempt) unit() float64 {
	switch {
	case a.moves():
		return 0.06
	case a.local.Coding != nil:
		return 0.02
	}
	return floats.Unit(a.local.DType) / 2
}

type factor struct {
	value float64
	name  string
}

// factors are those that mistakes have: the sizes of the model, and powers of two.
func (a *attempt) factors() []factor {
	var all []factor
	add := func(value float64, name string) { all = append(all, factor{value, number(value) + name}) }
	for _, size := range []struct {
		n    int
		name string
	}{{a.o.Hidden, "hidden_size"}, {a.o.HeadDim, "head_dim"}, {2, "2"}} {
		if size.n < 2 {
			continue
		}
		n := float64(size.n)
		add(math.Sqrt(n), " = sqrt("+size.name+")")
		add(1/math.Sqrt(n), " = 1/sqrt("+size.name+")")
		if size.n > 2 {
			add(n, " = "+size.name)
			add(1/n, " = 1/"+size.name)
		}
	}
	for e := -16; e <= 16; e++ {
		if e != 0 {
			add(math.Ldexp(1, e), "")
		}
	}
	return all
}

// factorName is a factor for people: a number, and what of the model is as large.
func (a *attempt) factorName(x float64) string {
	for _, f := range a.factors() {
		if f.value == x {
			return f.name
		}
	}
	if text := number(x); text != "1" {
		return text
	}
	return strconv.FormatFloat(x, 'g', -1, 64) // so near to 1 that six digits do not tell
}

// exponent says that a factor is a power of two, as when an exponent is wrong.
func exponent(x float64) string {
	f, e := math.Frexp(x)
	switch e--; {
	case f != 0.5:
		return ""
	case e == 1 || e == -1:
		return ": an exponent is off by one"
	}
	return fmt.Sprintf(": an exponent is off by %d", max(e, -e))
}
