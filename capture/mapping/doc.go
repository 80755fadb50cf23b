// Package mapping reads maps, which say how the names and layouts of a dump become those of TENSOR_ORDER, and applies them to a trace.
//
// A map is TOML. Each line of its table [tensors] is a pattern of names and what becomes of the tensors that match:
//
//	[tensors]
//	"blk.{L}.attn_norm" = "layers.{L}.input_layernorm"
//	"blk.{L}.attn_q"    = { to = "layers.{L}.self_attn.q_rope", axes = "t (h p r:2) -> 1 h t (r p)" }
//	"blk.{L}.qkv"       = { to = ["layers.{L}.self_attn.q_proj", "layers.{L}.self_attn.k_proj", "layers.{L}.self_attn.v_proj"],
//	                        axes = "t c -> 1 t c", split = "c: h*d | k*d | k*d" }
//	"rank{R}/o.{L}"     = { to = "layers.{L}.self_attn.o_proj", join = "sum" }
//	"step{S}/logits"    = { to = "logits", pass = "S", rows = "last" }
//
// A transform changes where an element stands, never what it is: nothing is scaled or cast. The one sum is that of partial results of
// ranks, as their all-reduce takes it. [Map.Apply] reads nothing but what it compares: the new tensors are views into the old.
package mapping
