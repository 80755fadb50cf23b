package op

import "fmt"

// Rounding is an operation that rounds at another step than transformers' and is otherwise the same.
type Rounding struct {
	Words string // what is different, for a report
	Op    Op
}

// Otherwise lists the roundings that engines are known to have in place of an operation's, the most usual first. They
// are as definite as transformers': a tensor that one of them gives to the last bit was computed so, where a bound that
// allows any rounding would allow small mistakes too. No family of the order has them.
func Otherwise(o Op) []Rounding {
	const before = "rounds before the weight, transformers does not"
	switch o := o.(type) {
	case RMSNorm:
		switch o.Gain {
		case Plain:
			return []Rounding{{before, RMSNorm{o.Eps, After}}}
		case OnePlus:
			return []Rounding{
				{before, RMSNorm{o.Eps, OnePlusAfter}},
				{"rounds before the weight, and 1 + w too, transformers does neither", RMSNorm{o.Eps, OnePlusStored}},
			}
		}
	case SiLU:
		if !o.Product {
			return []Rounding{{"rounds the sigmoid before it multiplies, transformers does not", SiLU{Product: true}}}
		}
	}
	return nil
}

// Mistakes lists operations that ports are known to have in place of o and that are near enough to it for a 16-bit arithmetic
// with a choice of roundings to give both. Like [Otherwise] they are definite.
func Mistakes(o Op) []Rounding {
	switch o := o.(type) {
	case RMSNorm:
		var all []Rounding
		for _, eps := range []float64{1e-3, 1e-5, 1e-6, 1e-8, 1e-12, 0} {
			if eps != o.Eps {
				all = append(all, Rounding{fmt.Sprintf("has an epsilon of %g, not %g", eps, o.Eps), RMSNorm{eps, o.Gain}})
			}
		}
		return all
	case GELUTanh:
		return []Rounding{{"has the GELU of the error function, not that of tanh", GELU{}}}
	case GELU:
		return []Rounding{{"has the GELU of tanh, not that of the error function", GELUTanh{}}}
	}
	return nil
}
