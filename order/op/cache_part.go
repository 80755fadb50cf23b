package op

import "github.com/tracediff/tracediff/order/program"

// CachePart appends a part of this pass's projection, as [Part] has it with its heads before its tokens, to what the pass before kept: keys or
// values of a product that has queries, keys and values in one. Inputs: the projection [B,T,Heads·n], the pass before's [B,h,S,D] (absent
// in pass 0).
type CachePart struct {
	Heads int `json:"heads"`
	From  int `json:"from"`
}

// Kind is "cache_part".
func (CachePart) Kind() string { return "cache_part" }

// Steps joins what was kept of the pass before and this pass's.
func (o CachePart) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	shape := []int{b.Shape[0], b.Shape[1], b.Shape[2], b.Shape[3]}
	now := in[0].Shape
	shape[2] = now[len(now)-2]
	part := Part{Heads: o.Heads, From: o.From, Transpose: true}.of(b, in[0], shape)
	kept := b.Shape[2] - shape[2]
	if kept == 0 {
		return b.Cat(2, part)
	}
	if len(in) < 2 || kept < 0 {
		return b.Fail("%d keys of the previous pass, which is missing", kept)
	}
	before := in[1].Shape[2]
	return b.Cat(2, b.Slice(in[1], 2, before-kept, before), part)
}

// Exact: elements are copied.
func (CachePart) Exact() {}
