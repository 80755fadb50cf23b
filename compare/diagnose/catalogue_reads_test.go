package diagnose

import "testing"

// TestReadsSay has a sentence of each kind of mistakes in what is read, and of each relation.
func TestReadsSay(t *testing.T) {
	const keys, probs, qRope, out, actFn = "layers.*.self_attn.keys", "layers.*.self_attn.probs", "layers.*.self_attn.q_rope", "layers.*.out", "layers.*.mlp.act_fn"
	in, gate, up := tensorTerm("layers.2.in"), tensorTerm("layers.2.mlp.gate_proj"), tensorTerm("layers.2.mlp.up_proj")
	before, streams, second := tensorTerm("layers.2.self_attn.q_rope"), tensorTerm("layers.2.altup.predict"), tensorTerm("layers.2.altup.predict")
	before.Before, second.Item = true, some(2)
	norm, silu := Term{Kind: Operation, Name: "rms_norm"}, Term{Kind: Operation, Name: "silu"}
	zeros := Term{Kind: Zeros}
	holds(t, readRows(), []sentence{
		{mistake: Mistake{Kind: "input.other", By: gate, For: up}, says: "reads layers.*.mlp.gate_proj, not layers.*.mlp.up_proj", role: actFn, page: "gate-and-up"},
		{mistake: Mistake{Kind: "input.other", By: gate, For: in}, says: "reads layers.*.mlp.gate_proj, not layers.*.in", role: out, page: "source-of-the-residual"},
		{mistake: Mistake{Kind: "input.other", By: second, For: in}, says: "reads stream 2 of layers.*.altup.predict, not layers.*.in", role: "layers.*.input_layernorm", page: "active-stream"},
		{mistake: Mistake{Kind: "input.other", By: tensorTerm("mask.full"), For: tensorTerm("mask.sliding")}, says: "reads mask.full, not mask.sliding", role: probs, page: "window-on-the-wrong-layers"},
		{
			mistake: Mistake{Kind: "input.other-kept", By: tensorTerm("layers.2.self_attn.k_norm"), For: tensorTerm("layers.2.self_attn.k_rope")},
			says:    "for earlier passes, reads layers.*.self_attn.k_norm, not layers.*.self_attn.k_rope", role: keys, page: "keys-cached-before-rotation",
		},
		{mistake: Mistake{Kind: "input.stream", Of: streams, N: 1, M: 0}, says: "reads stream 1 of layers.*.altup.predict, not 0", role: "layers.*.input_layernorm", page: "active-stream"},
		{mistake: Mistake{Kind: "input.pass-before", By: before}, says: "reads layers.*.self_attn.q_rope of the previous pass", role: qRope, page: "stale-cache-slot"},
		{
			mistake: Mistake{Kind: "input.layer-before", By: tensorTerm("layers.1.self_attn.keys"), For: tensorTerm("layers.2.self_attn.keys")},
			says:    "reads layers.*.self_attn.keys of the layer before, not layers.*.self_attn.keys", role: "layers.*.self_attn.context", page: "crossed-projections",
		},
		{
			mistake: Mistake{Kind: "input.overwritten", Of: stepTerm("rope.cat"), By: tensorTerm("layers.1.self_attn.k_proj")},
			says:    "step rope.cat reads layers.*.self_attn.k_proj after the operation has overwritten it with its result: the operation is done in place", role: "layers.*.self_attn.k_rope",
		},
		{
			mistake: Mistake{Kind: "input.chained", By: tensorTerm("altup_projections.1"), For: tensorTerm("embed_tokens")},
			says:    "each reads the result of the one before, altup_projections.*, not embed_tokens", role: "altup_projections.*",
		},
		{mistake: Mistake{Kind: "input.own-stream", By: streams, For: in, N: 1}, says: "stream k reads stream k +1 of layers.*.altup.predict, not layers.*.in", role: out, page: "source-of-the-residual"},
		{mistake: Mistake{Kind: "input.own-stream", By: streams, For: in, N: -1}, says: "stream k reads stream k -1 of layers.*.altup.predict, not layers.*.in", role: "altup_projections.*"},
		{mistake: Mistake{Kind: "input.own-stream", By: streams, For: in}, says: "stream k reads stream k of layers.*.altup.predict, not layers.*.in", role: "altup_projections.*"},
		{
			mistake: Mistake{Kind: "input.apart", Of: stepTerm("add.sum"), By: gate, For: up},
			says:    "step add.sum reads layers.*.mlp.gate_proj, not layers.*.mlp.up_proj; all other readers are right", role: out, page: "source-of-the-residual",
		},
		{
			mistake: Mistake{Kind: "input.apart", Of: Term{Kind: TheDivisor, X: 2}, By: second, For: in},
			says:    "the division by 2 reads stream 2 of layers.*.altup.predict, not layers.*.in; all other readers are right", role: "layers.*.attn_laurel", page: "laurel",
		},
		{mistake: Mistake{Kind: "inputs.exchanged", Of: gate, By: up}, says: "layers.*.mlp.gate_proj and layers.*.mlp.up_proj are exchanged", role: "layers.*.mlp.gated"},
		{
			mistake: Mistake{Kind: "instance.of-another-layer", Of: weightTerm("layers.0.input_layernorm.weight"), By: listTerm(Others, []string{"layers.0.input_layernorm.weight=layers.1.input_layernorm.weight", "layers.2.input_layernorm.weight=layers.3.input_layernorm.weight"})},
			says:    "layers.*.input_layernorm.weight comes from the wrong layer: layers.0.input_layernorm.weight has that of layers.1.input_layernorm.weight; layers.2.input_layernorm.weight has that of layers.3.input_layernorm.weight",
			role:    "layers.*.input_layernorm", page: "another-layers-weight",
		},
		{
			mistake: Mistake{Kind: "instance.of-another-layer", Of: Term{Kind: TheKept, Name: "layers.*.self_attn.v_proj"}, By: listTerm(Others, []string{"layers.0.self_attn.values=layers.1.self_attn.v_proj"})},
			says:    "layers.*.self_attn.v_proj of earlier passes comes from the wrong layer: layers.0.self_attn.values has that of layers.1.self_attn.v_proj", role: "layers.*.self_attn.values", page: "shared-keys-and-values",
		},
		{
			mistake: Mistake{Kind: "instance.another", Of: weightTerm("altup_projections.0.weight"), By: listTerm(Others, []string{"altup_projections.0=altup_projections.1"})},
			says:    "altup_projections.*.weight is the wrong instance: altup_projections.0 has that of altup_projections.1", role: "altup_projections.*", page: "crossed-projections",
		},
		{mistake: Mistake{Kind: "ids.limited", N: 127}, says: "ids above 127 have the row of 127: ids are limited to the first 128 rows", role: "embed_tokens.lookup", page: "embedding-rows"},
		{mistake: Mistake{Kind: "ids.shifted", N: 100, K: -1}, says: "ids from 100 on are off by -1 in the table: rows before them are missing, or are there twice", role: "embed_tokens", page: "embedding-rows"},
		{mistake: Mistake{Kind: "ids.modulo", N: 128}, says: "ids from 128 on have the row of their remainder by 128", role: "embed_tokens_per_layer", page: "per-layer-rows"},
		{
			mistake: Mistake{Kind: "lookup.other-rows", Runs: makeRuns(sourceRun{From: 3, To: 4, Is: isZero}, sourceRun{From: 5, To: 6, Is: 7})},
			says:    "the row of id 3 is 0; id 5 has the row of id 7", role: "embed_tokens.lookup", page: "embedding-rows",
		},
		{mistake: Mistake{Kind: "lookup.other-rows", Runs: makeRuns(sourceRun{From: 3, To: 4, Is: isZero})}, says: "the row of id 3 is 0", role: "embed_tokens.lookup", page: "branch-of-zeros"},
		{
			mistake: Mistake{Kind: "weight.other", By: weightTerm("layers.2.self_attn.k_proj.weight"), For: weightTerm("layers.2.self_attn.v_proj.weight")},
			says:    "layers.*.self_attn.k_proj.weight is used, not layers.*.self_attn.v_proj.weight", role: "layers.*.self_attn.v_proj", page: "crossed-projections",
		},
		{
			mistake: Mistake{Kind: "weight.other", By: Term{Kind: Weight, Name: "embed_tokens.weight"}, For: Term{Kind: Weight, Name: "lm_head.weight"}},
			says:    "embed_tokens.weight is used, not lm_head.weight", role: "lm_head", page: "tied-head",
		},
		{
			mistake: Mistake{Kind: "weight.other-transposed", By: weightTerm("layers.2.mlp.down_proj.weight"), For: weightTerm("layers.2.mlp.up_proj.weight")},
			says:    "layers.*.mlp.down_proj.weight, transposed, is used, not layers.*.mlp.up_proj.weight", role: "layers.*.mlp.up_proj", page: "another-layers-weight",
		},
		{mistake: Mistake{Kind: "operation.taken-first", Of: norm, By: in, For: tensorTerm("layers.2.input_layernorm")}, says: "rms_norm is applied to layers.*.in first, as in layers.*.input_layernorm", role: out},
		{mistake: Mistake{Kind: "operation.taken-of-result", Of: silu, For: tensorTerm("layers.2.mlp.act_fn")}, says: "silu is applied to the result, as in layers.*.mlp.act_fn", role: "layers.*.mlp.gated", page: "activation"},
		{mistake: Mistake{Kind: "operation.twice", Of: norm}, says: "rms_norm is applied twice", role: "layers.*.input_layernorm", page: "missing-norm"},
		{
			mistake: Mistake{Kind: "operand.overwritten", Of: in, By: norm, For: tensorTerm("layers.2.input_layernorm")},
			says:    "layers.*.in is overwritten in place by rms_norm: the value before its last step is read, as in layers.*.input_layernorm", role: out, page: "source-of-the-residual",
		},
		{
			mistake: Mistake{Kind: "operand.overwritten-earlier", Of: in, By: norm, For: tensorTerm("layers.2.input_layernorm"), N: 2},
			says:    "layers.*.in is overwritten in place by rms_norm: the value before its last 2 steps is read, as in layers.*.input_layernorm", role: out, page: "source-of-the-residual",
		},
		{mistake: Mistake{Kind: "channels.first-alone", N: 8, M: 32}, says: "only the first 8 channels are used; channels 8 to 31 pass through unchanged", role: qRope, page: "partial-rotation"},
		{
			mistake: Mistake{Kind: "layer.other-kind", Of: tensorTerm("layers.0.mlp.gated"), By: Term{Kind: ALayer, Name: "layers.3"}, For: listTerm(Modules, []string{"mlp.std", "mlp.sparse"})},
			says:    "the layer has the wrong type: layers.*.mlp.gated is computed as in layers.3, from mlp.std, mlp.sparse", role: actFn, page: "activation-sparsity",
		},
		{mistake: Mistake{Kind: "result.log-softmax"}, says: "the result is a log softmax: log probabilities, each row shifted by a constant", role: "logits"},

		{
			relation: Relation{Kind: "rows.of-another", N: 3, M: 12, Of: Term{Kind: Tensor, Name: "layers.2.out"}, By: Term{Kind: RowsOf, Name: "layers.*.in", Before: true}, At: makeSpots(spot{counts: 't', at: []int{1, 3}}, spot{counts: 'h', at: []int{0}})},
			says:     "3 of 12 rows are rows of layers.*.in of the previous pass (in layers.2.out: tokens 1, 3, heads 0)", role: out,
		},
		{relation: Relation{Kind: "rows.of-another", N: 3, M: 3, By: Term{Kind: OtherRowsOf, Name: "layers.*.self_attn.q_rope"}}, says: "3 of 3 rows are other rows of layers.*.self_attn.q_rope", role: keys, page: "shared-keys-and-values"},
		{relation: Relation{Kind: "rows.of-itself", N: 1, M: 3, By: Term{Kind: OwnRows}}, says: "1 of 3 rows are other rows of the same tensor", role: "embed_tokens.lookup", page: "embedding-rows"},
		{relation: Relation{Kind: "rows.zeros", N: 4, M: 4, By: zeros}, says: "4 of 4 rows are zeros", role: out},
		{
			relation: Relation{Kind: "rows.zeros", N: 1, M: 4, By: zeros, Of: Term{Kind: Tensor, Name: "layers.2.self_attn.keys"}, At: "keys=3"},
			says:     "1 of 4 rows are zeros (in layers.2.self_attn.keys: keys 3)", role: keys, page: "stale-cache-slot",
		},
		{
			relation: Relation{Kind: notAsDumpedKind, Of: tensorTerm("layers.2.self_attn.context")}, role: "layers.*.self_attn.o_proj", page: "hooks-at-another-point",
			says: "with the right layers.*.self_attn.context, every element is right: layers.*.self_attn.context was not dumped as it was read, or two mistakes cancel",
		},
		{relation: Relation{Kind: "rows.stale-keys", Of: tensorTerm("layers.2.self_attn.keys"), K: 2, At: "keys=3"}, says: "keys 3 of layers.*.self_attn.keys are keys 2 again: stale", role: keys, page: "stale-cache-slot"},
		{
			relation: Relation{Kind: "rows.left-as-they-are", By: tensorTerm("layers.2.self_attn.q_norm"), At: "tokens=0"},
			says:     "tokens 0 are unchanged from layers.*.self_attn.q_norm: the operation was not applied to them", role: qRope,
		},
		{
			relation: Relation{Kind: "rows.operations-left-out", Of: listTerm(Operations, []string{"rms_norm", "rope"}), N: 2, M: 8, By: Term{Kind: RowsOf, Name: "layers.*.self_attn.k_proj"}},
			says:     "rms_norm and rope was not applied to 2 of 8 rows: they are rows of layers.*.self_attn.k_proj", role: keys, page: "keys-cached-before-rotation",
		},
		{
			relation: Relation{Kind: "rows.overwritten", Of: tensorTerm("layers.2.self_attn.keys"), By: Term{Kind: RowsOf, Name: "layers.*.self_attn.q_rope"}, At: "keys=5"},
			says:     "keys 5 of layers.*.self_attn.keys are overwritten by rows of layers.*.self_attn.q_rope", role: keys, page: "shared-keys-and-values",
		},
		{relation: Relation{Kind: "elements.nan", At: "tokens=1"}, says: "tokens 1 are NaN: uninitialised memory, or an undefined operation such as 0/0", role: out, page: "not-finite"},
		{relation: Relation{Kind: "elements.nan-or-infinite"}, says: "elements are NaN or infinite: overflow of the dtype", role: out, page: "not-finite"},
		{relation: Relation{Kind: "error.of-low-rank", Of: weightTerm("layers.0.self_attn.q_proj.weight"), N: 2}, says: "the result has a product of two matrices of rank 2 added, as where a LoRA adapter is merged into layers.*.self_attn.q_proj.weight, or missing from it", role: out},
		{relation: Relation{Kind: "weight.random", Of: weightTerm("layers.0.self_attn.q_proj.weight"), X: some(0.02)}, says: "layers.*.self_attn.q_proj.weight is not the checkpoint's and has no relation to it: its elements are random numbers of standard deviation 0.02, as in a weight that was not loaded", role: out, page: "weight-not-loaded"},
		{relation: Relation{Kind: "slots.foreign", Of: Term{Kind: TheCache}, At: "keys=0,1"}, says: "keys 0, 1 of the cache hold values that this run has not computed, such as another request's cache or overwritten memory", role: out, page: "stale-cache-slot"},
		{relation: Relation{Kind: "elements.infinite", At: "channels=3;tokens=1,2"}, says: "channels 3, tokens 1, 2 are infinite: overflow of the dtype", role: "logits", page: "not-finite"},
		{relation: Relation{Kind: "elements.minus-infinity", At: "vocabulary=7"}, says: "vocabulary 7 are -infinity: masked or suppressed, or overflow of the dtype", role: "logits"},
	})
}
