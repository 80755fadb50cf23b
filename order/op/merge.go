package op

import "github.com/tracediff/tracediff/order/program"

// Merge puts heads after tokens: [B,h,T,D] to [B,T,h·D]. Input: x.
type Merge struct{}

// Kind is "merge".
func (Merge) Kind() string { return "merge" }

// Steps transposes.
func (Merge) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Reshape(b.Cat(2, b.Permute(in[0], 0, 2, 1, 3)), b.Shape...)
}

// Exact: elements are copied.
func (Merge) Exact() {}
