package op

import "github.com/tracediff/tracediff/order/program"

// Select takes one index of one axis away. Input: x.
type Select struct {
	Axis  int `json:"axis"`
	Index int `json:"index"`
}

// Kind is "select".
func (Select) Kind() string { return "select" }

// Steps takes the index.
func (o Select) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Permute(b.Take(in[0], o.Axis, o.Index), axes(len(in[0].Shape)-1)...)
}

// axes are 0 to n−1.
func axes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Exact: elements are copied.
func (Select) Exact() {}
