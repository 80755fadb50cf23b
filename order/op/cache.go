package op

import "github.com/tracediff/tracediff/order/program"

// Cache appends this pass's keys or values to the earlier passes', along the key axis of [B,h,S,D]. A windowed layer has kept only the last
// Window−1. Inputs: this pass's, the previous pass's (absent in pass 0). With Transpose the first input is [B,T,h,D].
type Cache struct {
	Window    int  `json:"window,omitempty"`
	Transpose bool `json:"transpose,omitempty"`
}

// Kind is "cache".
func (Cache) Kind() string { return "cache" }

// Steps joins what was kept of the pass before and this pass's.
func (o Cache) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	now := in[0]
	if o.Transpose {
		heads, d := b.Shape[1], b.Shape[3]
		now = b.Permute(b.Reshape(now, b.Shape[0], -1, heads, d), 0, 2, 1, 3)
	}
	kept := b.Shape[2] - now.Shape[2]
	if kept == 0 {
		return b.Cat(2, now)
	}
	if len(in) < 2 {
		return b.Fail("%d keys of the previous pass, which is missing", kept)
	}
	before := in[1].Shape[2]
	return b.Cat(2, b.Slice(in[1], 2, before-kept, before), now)
}

// Exact: elements are copied.
func (Cache) Exact() {}

// Keys are appended. With Transpose the cache is of values, which no rotation has transposed before.
func (o Cache) Keys() Keys {
	if o.Transpose {
		return NoKeys
	}
	return AppendKeys
}
