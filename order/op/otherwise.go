package op

// Rounding is an operation that rounds at another step than transformers' and is otherwise the same.
type Rounding struct {
	Words string // what is different, for a report
	Op    Op
}

// Otherwise lists the roundings that engines are known to have in place of an operation's, the most usual first. They
// are as definite as transformers': a tensor that one of them gives to the last bit was computed so, where a bound that
// allows any rounding would allow small mistakes too. No family of the order has them.
func Otherwise(o Op) []Rounding {
	if o, ok := o.(Varying); ok {
		return o.Otherwise()
	}
	return nil
}

// Mistakes lists operations that ports are known to have in place of o and that are near enough to it for a 16-bit arithmetic
// with a choice of roundings to give both. Like [Otherwise] they are definite.
func Mistakes(o Op) []Rounding {
	if o, ok := o.(Mistakable); ok {
		return o.Mistakes()
	}
	return nil
}
