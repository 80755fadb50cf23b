package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program/edit"
)

// stepRows are mistakes in the steps of a formula: in a step's operation, operands, numbers and order.
func stepRows() []Row {
	return []Row{
		// A step is left out.
		{Kind: "bias.left-out", Words: "the bias is not added", Pages: []Page{{Anchor: "missing-bias"}}},
		{Kind: "share.left-out", Words: "{of} is not divided by its sum"},
		{Kind: "floor.left-out", Words: "{of}, {for}, is missing", Pages: leftOutPages},
		{Kind: "minus.left-out", Words: "the minus sign of {of} is missing", Pages: leftOutPages},
		{Kind: "weight.left-out", Words: "{of} is missing, or is 1", Pages: weightLeftOutPages},
		{Kind: "weight.left-out-plus-one", Words: "{of} is missing, or is 0: 1+w is 1", Pages: slices.Concat([]Page{{Anchor: "one-plus-the-weight", Roles: norms}}, weightLeftOutPages)},
		{Kind: "step.left-out", Words: "{of} is missing", Pages: leftOutPages},
		{Kind: "steps.left-out", Words: "{of} and {by} are missing", Pages: leftOutPages},
		{Kind: "steps.run-left-out", Words: "the steps from {of} to {place} are missing", Pages: leftOutPages},
		{Kind: "addend.left-out", Words: "{of} is not added", Pages: addendLeftOutPages},
		{Kind: "operation.left-out", Words: "the operation is missing: the result is {by}", Pages: slices.Concat(leftOutPages, []Page{{Anchor: "activation", Roles: functions}})},
		{Kind: "product.left-out", Words: "the product with {of} is missing", Pages: leftOutPages},
		{Kind: "division.left-out", Words: "the division by {of} is missing", Pages: slices.Concat([]Page{{Anchor: "attention-scale", Roles: attended}, {Anchor: "attention-scale", Roles: scored}, {Anchor: "laurel", Roles: stream}}, leftOutPages)},

		// A wrong step, or a step that is taken twice.
		{Kind: "root.left-out", Words: "{of} lacks its square root: it is 1/x, not 1/√x", Pages: []Page{{Anchor: "inverted-norm", Roles: norms}}},
		{Kind: "step.exchanged", Words: "{of} is {by}, not {for}", Pages: []Page{{Anchor: "direction-of-rotation", Roles: rotated}, {Anchor: "inverted-norm", Roles: norms, If: of(TheRoot)}, {Anchor: "attention-scale", Roles: attended, If: of(TheFactor, TheDivisor)}, {Anchor: "attention-scale", Roles: scored, If: of(TheFactor, TheDivisor)}}},
		{Kind: "operands.exchanged", Words: "the operands of {of} are exchanged", Pages: []Page{{Anchor: "direction-of-rotation", Roles: rotated}, {Anchor: "inverted-norm", Roles: norms, If: of(TheRoot)}, {Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "step.twice", Words: "{of} is applied twice[: {by} in all][ ({called})]", Pages: twicePages},
		{Kind: "step.twice-root", Words: "{of} is applied twice[: {by} in all], without its root[ ({called})]", Pages: twicePages},
		{Kind: "division.twice", Words: "{of} is applied twice[: by {by} in all][ ({called})]", Pages: twicePages},
		{Kind: "addend.twice", Words: "{of} is applied twice: +{by} in all", Pages: twicePages},

		// A step is done to another part, or over another axis.
		{Kind: "part.other", Words: "{of} is added to the wrong part", Pages: []Page{{Anchor: "order-of-norm-and-residual", Roles: layernorms}, {Anchor: "per-layer-streams", Roles: outs}, {Anchor: "source-of-the-residual", Roles: stream}}},
		{Kind: "part.all", Words: "{of} is added to all parts, not to one", Pages: []Page{{Anchor: "order-of-norm-and-residual", Roles: layernorms}, {Anchor: "per-layer-streams", Roles: outs}, {Anchor: "source-of-the-residual", Roles: stream}}},
		{Kind: "part.all-unnamed", Words: "an operation on one part is applied to all"},
		{Kind: "axis.parts", Words: "{place step} runs over each of {n} parts separately, not over all"},
		{Kind: "axis.read", Words: "{of} is read along the {axis}, not along the {other}: wrong axis"},
		{Kind: "axis.wrong", Words: "{place step} runs over the wrong axis[: its {axis}, not its {other}]", Pages: []Page{{Anchor: "norm-over-all-heads", Roles: norms}}},
		{Kind: "axis.two", Words: "{place step} runs over two axes[: also over its {axis}]", Pages: []Page{{Anchor: "norm-over-all-heads", Roles: norms}}},
		{Kind: "axis.two-all", Words: "all sums run over two axes[: also over its {axis}]", Pages: []Page{{Anchor: "norm-over-all-heads", Roles: norms}}},
		{Kind: "heads.tiled-reads", Words: "{of} is tiled, not repeated: reader i of {n}, such as a head, reads number i mod {m}, not i / {k}", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "operand.transposed", Words: "{of} is read transposed in {by}", Pages: []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}}},

		// A step reads another value.
		{Kind: "operand.other", Words: "{of} reads {by}, not {for}", Pages: readPages},
		{Kind: "operand.other-part", Words: "{of} reads the wrong part of {by}", Pages: slices.Concat([]Page{{Anchor: "per-layer-streams", Roles: outs}}, readPages)},
		{Kind: "operand.at-other-indexes", Words: "{of} reaches the wrong {axis}: {each}", Each: "also {at}", Zero: "not {at}", Between: ", ", Pages: []Page{{Anchor: "per-layer-streams", Roles: outs}}, Apply: atOtherIndexes, Class: edit.Whole},
		{Kind: "index.part", Words: "takes part {n} of {of}, not part {m}"},
		{Kind: "index.one", Words: "[{by} ]reads {axis} {n} of {of}, not {m}", Pages: readPages},
		{Kind: "index.run", Words: "[{by} ]reads {axis} {n} to {n+k-1} of {of}, not {m} to {m+k-1}", Pages: readPages},
		{Kind: "index.oldest", Words: "[{by} ]keeps {axis} {n} to {n+k-1} of {of}, not {m} to {m+k-1}: the oldest, not the newest", Pages: []Page{{Anchor: "evicted-keys", Roles: caches}}},
		{Kind: "count.first-left-out", Words: "off by one: {place} skips the first of {for} terms", Pages: leftOutPages},
		{Kind: "count.last-left-out", Words: "off by one: {place} skips the last of {for} terms", Pages: leftOutPages},
		{Kind: "count.divisor", Words: "{place} divides its sum by {x} terms"},

		// Steps come in another order.
		{Kind: "order.earlier", Words: "{of} is applied too early: to {by}, not to {for}"},
		{Kind: "order.later", Words: "{of} is applied too late: to {by}, not to {for}"},
		{Kind: "order.term-alone", Words: "{of} is applied only to {by}, not to its sum with {for}"},
		{Kind: "epsilon.least-value", Words: "{of} is a minimum under the root (max), and should be added", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},
		{Kind: "epsilon.added", Words: "{of} is added under the root, and should be a minimum (max)", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},
		{Kind: "epsilon.after-root", Words: "{of} is added after the root, not under it", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},
		{Kind: "epsilon.after-inverse", Words: "{of} is added after the inverse root, not under the root", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},

		// Elements come in another order.
		{Kind: "elements.rolled", Words: "{of} is shifted by {n} along {its axis}", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}, {Anchor: "active-stream", Roles: predictions}, {Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.rolled-and-back", Words: "{of} is shifted by {n} along {its axis}, and the result is shifted back", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}, {Anchor: "active-stream", Roles: predictions}, {Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.halves-exchanged", Words: "the halves of {of} along {its axis} are swapped", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "elements.halves-exchanged-and-back", Words: "the halves of {of} along {its axis} are swapped, and the result is swapped back", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "elements.blocks", Words: "{of} has {its axis} in the wrong order: blocks of {n}, such as heads, are read as \\[{k}, {m}\\] with the axes exchanged", Pages: reorderedPages},
		{Kind: "elements.blocks-and-back", Words: "{of} has {its axis} in the wrong order: blocks of {n}, such as heads, are read as \\[{k}, {m}\\] with the axes exchanged, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.reversed", Words: "{of} is reversed along {its axis}", Pages: []Page{{Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.reversed-and-back", Words: "{of} is reversed along {its axis}, and the result is reversed back", Pages: []Page{{Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.blocks-reversed", Words: "{of} has {its axis} in the wrong order: its blocks of {n}, such as heads, are in reverse order", Pages: reorderedPages},
		{Kind: "elements.blocks-reversed-and-back", Words: "{of} has {its axis} in the wrong order: its blocks of {n}, such as heads, are in reverse order, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.axes-exchanged", Words: "{of} is read with {its axis} and {its other} exchanged", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "memory.parts-first", Words: "{of} is not transposed back: in memory, parts of {n} of {its other} come before {its axis}", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}})},
		{Kind: "memory.axes-exchanged", Words: "{of} has {its axis} and {its other} in the wrong order in memory", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}})},
		{Kind: "heads.tiled-operand", Words: "the heads of {of} are tiled, not repeated: query head h reads KV head h mod n, not h / n", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "heads.tiled-keys", Words: "the heads of {of} are tiled, not repeated: query head h reads KV head h mod n, not h / n", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "heads.one", Words: "every query head reads head {n} of {of}", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "elements.one-index", Words: "{of} is read at index {n} of {its axis} everywhere"},
		{Kind: "elements.neighbours-exchanged", Words: "{of} has {its axis} in the wrong order: elements 2j and 2j+1 are swapped", Pages: slices.Concat([]Page{{Anchor: "rotary-pairs", Roles: rotated}}, reorderedPages)},
		{Kind: "elements.neighbours-exchanged-and-back", Words: "{of} has {its axis} in the wrong order: elements 2j and 2j+1 are swapped, and the result is put back", Pages: slices.Concat([]Page{{Anchor: "rotary-pairs", Roles: rotated}}, reorderedPages)},
		{Kind: "elements.each-block-reversed", Words: "{of} has {its axis} in the wrong order: each block of {n} is reversed", Pages: reorderedPages},
		{Kind: "elements.each-block-reversed-and-back", Words: "{of} has {its axis} in the wrong order: each block of {n} is reversed, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.as-halves", Words: "{of} is read as two halves; it is interleaved"},
		{Kind: "elements.as-parts", Words: "{of} is read as {n} contiguous parts; it is interleaved"},
		{Kind: "elements.by-turns-not-halves", Words: "{of} is read as interleaved; it is two halves"},
		{Kind: "elements.by-turns-not-parts", Words: "{of} is read as interleaved; it is {n} contiguous parts"},
		{Kind: "elements.halves-crossed", Words: "the halves of {of} are swapped: a swap of halves is missing, or is one too many", Pages: []Page{{Anchor: "direction-of-rotation", Roles: rotated}}},
		{Kind: "elements.parts-crossed", Words: "the {n} parts of {of} are read in the wrong order: shifted by {m}"},
		{Kind: "rope.interleaved", Words: "interleaved RoPE: pairs (2j, 2j+1) instead of (j, j + d/2)", Pages: []Page{{Anchor: "rotary-pairs", Roles: rotated}}},
		{Kind: "elements.interleaved-and-back", Words: "{of} is read as {n} interleaved parts along {its axis}, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.blocks-interleaved", Words: "{of} has {its axis} in the wrong order: each block of {n} is interleaved where it should be halves, or the reverse", Pages: slices.Concat([]Page{{Anchor: "rotary-pairs", Roles: rotated}}, reorderedPages)},
		{Kind: "elements.by-turns", Words: "{of} has {its axis} in the wrong order: read as {n} interleaved parts, \\[{n}, {m}\\] with the axes exchanged", Pages: reorderedPages},
		{Kind: "elements.blocks-by-turns", Words: "{of} has {its axis} in the wrong order: each block of {k} is read as {n} interleaved parts, \\[{n}, {m}\\] with the axes exchanged", Pages: reorderedPages},

		// Numbers.
		{Kind: "number.value", Words: "{of} is {x}[ ({called})]", Pages: numberPages, Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.zero", Words: "{of} is 0", Pages: []Page{{Anchor: "branch-of-zeros"}}, Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.rounded", Words: "{of} is {x} (rounded to {dtype})", Pages: slices.Concat([]Page{{Anchor: "rounded-embedding-scale", Roles: embeddings}}, numberPages), Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.machine-epsilon", Words: "{of} is {x} (machine epsilon of {dtype})", Pages: numberPages, Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.not-rounded", Words: "{of}, {for}, is not rounded to {dtype}", Pages: slices.Concat([]Page{{Anchor: "rounded-embedding-scale", Roles: embeddings}}, numberPages), Apply: otherNumber, Class: edit.Constant},
	}
}
