package op

import "github.com/tracediff/tracediff/order/program"

// LatentKeys are the keys of multi-head latent attention: each head's own channels from the product with the compressed keys, then the Dims
// channels shared by all heads, rotated as in [RoPEPart]. Inputs: the product of all tokens [B,S,h·n], the projection of each pass, the
// earliest first, whose last Dims channels are shared, and cos and sin of each pass.
type LatentKeys struct {
	Dims  int   `json:"dims"`
	Pairs Pairs `json:"pairs"`
	Out   Pairs `json:"out"`
	Half  bool  `json:"half,omitempty"`
}

// Kind is "latent_keys".
func (LatentKeys) Kind() string { return "latent_keys" }

// Steps turns what is shared, and joins.
func (o LatentKeys) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	if len(in)%3 != 1 || len(b.Shape) != 4 {
		return b.Fail("%d inputs", len(in))
	}
	passes := (len(in) - 1) / 3
	of := func(k int) program.Var { return joined(b, in[1+k*passes:1+(k+1)*passes]) }
	batch, heads, seen, own := b.Shape[0], b.Shape[1], b.Shape[2], b.Shape[3]-o.Dims
	x := of(0)
	if own < 1 || len(x.Shape) != 3 || x.Last() < o.Dims {
		return b.Fail("%d channels of %v", o.Dims, x.Shape)
	}
	shared := b.Permute(b.Slice(x, 2, x.Last()-o.Dims, x.Last()), 0, -1, 1, 2)
	turned := RoPEPart{Dims: o.Dims, Pairs: o.Pairs, Out: o.Out, Half: o.Half}.turn(b, shared, of(1), of(2))
	product := b.Split(b.Reshape(in[0], batch, seen, -1), 2, heads)
	keys := b.Permute(b.Slice(product, 3, 0, own), 0, 2, 1, 3)
	return b.Cat(3, keys, b.Expand(b.R(turned), []int{batch, heads, seen, o.Dims}))
}
