// Package mapping reads maps and applies maps to a trace. A map translates the names and layouts of a dump into the names and layouts
// of TENSOR_ORDER.
//
// A map is TOML. Each line of its table [tensors] has a pattern of names, and the new name and layout of the tensors that match:
//
//	[tensors]
//	"blk.{L}.attn_norm" = "layers.{L}.input_layernorm"
//	"blk.{L}.attn_q"    = { to = "layers.{L}.self_attn.q_rope", axes = "t (h p r:2) -> 1 h t (r p)" }
//	"blk.{L}.qkv"       = { to = ["layers.{L}.self_attn.q_proj", "layers.{L}.self_attn.k_proj", "layers.{L}.self_attn.v_proj"],
//	                        axes = "t c -> 1 t c", split = "c: h*d | k*d | k*d" }
//	"rank{R}/o.{L}"     = { to = "layers.{L}.self_attn.o_proj", join = "sum" }
//	"step{S}/logits"    = { to = "logits", pass = "S", rows = "last" }
//
// A map moves elements and never changes their values: nothing is scaled or cast. The only exception is join = "sum", which adds the
// partial results of ranks as their all-reduce does. [Map.Apply] reads only tensors that it compares: the new tensors are views of the
// old tensors.
package mapping
