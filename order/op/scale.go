package op

import "github.com/tracediff/tracediff/order/program"

// Scale is R(x · By). Input: x.
type Scale struct {
	By Const `json:"by"`
}

// Kind is "scale".
func (Scale) Kind() string { return "scale" }

// Steps multiplies.
func (o Scale) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Mul("product", in[0], o.By.in(b, "constant"))
}
