package weights

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
)

// minScaled is how many elements have to agree on a factor.
const minScaled = 8

// factors are those that mistakes have: the sizes of the model, and powers of two.
type factors struct {
	list []factor
	unit float64 // how far a measured factor may be from the true one, as a part of it
}

type factor struct {
	value float64
	name  phrase
}

func (a *pair) factors() factors {
	all := factors{unit: floats.Unit(a.local.DType) / 2}
	switch {
	case a.moves():
		all.unit = 0.06
	case a.coded():
		all.unit = 0.02
	}
	add := func(value float64, name string) {
		all.list = append(all.list, factor{value, say("%s%s", number(value), name)})
	}
	for _, size := range []struct {
		n    int
		name string
	}{{a.c.o.Hidden, "hidden_size"}, {a.c.o.HeadDim, "head_dim"}, {2, "2"}} {
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

// near is a usual factor where a measured one is as good as that.
func (all *factors) near(x float64) float64 {
	for _, f := range all.list {
		if math.Abs(x-f.value) <= all.unit*math.Abs(f.value) {
			return f.value
		}
	}
	return x
}

// called is a factor for people: a number, and what of the model is as large.
func (all *factors) called(x float64) phrase {
	for _, f := range all.list {
		if f.value == x {
			return f.name
		}
	}
	if number(x).String() == "1" {
		return say("%v", x) // so near to 1 that six digits do not tell
	}
	return say("%s", number(x))
}

// exponent says that a factor is a power of two, as when an exponent is wrong.
func exponent(x float64) phrase {
	f, e := math.Frexp(x)
	switch e--; {
	case f != 0.5:
		return phrase{}
	case e == 1 || e == -1:
		return say(": an exponent is off by one")
	}
	return say(": an exponent is off by %d", max(e, -e))
}
