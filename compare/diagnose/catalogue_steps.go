package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program/edit"
)

// stepRows are mistakes in what a step of a formula does, reads or is given.
func stepRows() []Row {
	return []Row{
		// A step is left out.
		{Kind: "bias.left-out", Words: "the bias is not added", Pages: []Page{{Anchor: "missing-bias"}}},
		{Kind: "share.left-out", Words: "{of} is not divided by its sum"},
		{Kind: "floor.left-out", Words: "{of}, {for}, is left out", Pages: leftOutPages},
		{Kind: "minus.left-out", Words: "the minus is left out: {of} is taken with its own sign", Pages: leftOutPages},
		{Kind: "weight.left-out", Words: "{of} is left out, or is 1", Pages: weightLeftOutPages},
		{Kind: "weight.left-out-plus-one", Words: "{of} is left out, or is 0: 1+w is 1", Pages: slices.Concat([]Page{{Anchor: "one-plus-the-weight", Roles: norms}}, weightLeftOutPages)},
		{Kind: "step.left-out", Words: "{of} is left out", Pages: leftOutPages},
		{Kind: "steps.left-out", Words: "{of} and {by} are left out", Pages: leftOutPages},
		{Kind: "steps.run-left-out", Words: "the steps from {of} to {place} are left out", Pages: leftOutPages},
		{Kind: "addend.left-out", Words: "{of} is not added", Pages: addendLeftOutPages},
		{Kind: "operation.left-out", Words: "the operation is left out: the result is {by}", Pages: slices.Concat(leftOutPages, []Page{{Anchor: "activation", Roles: functions}})},
		{Kind: "product.left-out", Words: "the product with {of} is left out", Pages: leftOutPages},
		{Kind: "division.left-out", Words: "the division by {of} is left out", Pages: slices.Concat([]Page{{Anchor: "attention-scale", Roles: attended}, {Anchor: "attention-scale", Roles: scored}, {Anchor: "laurel", Roles: stream}}, leftOutPages)},

		// A wrong step, or a step that is taken twice.
		{Kind: "root.left-out", Words: "no root is taken of {of}: it is 1/x, not 1/√x", Pages: []Page{{Anchor: "inverted-norm", Roles: norms}}},
		{Kind: "step.exchanged", Words: "{of} is {by}, not {for}", Pages: []Page{{Anchor: "direction-of-rotation", Roles: rotated}, {Anchor: "inverted-norm", Roles: norms, If: of(TheRoot)}, {Anchor: "attention-scale", Roles: attended, If: of(TheFactor, TheDivisor)}, {Anchor: "attention-scale", Roles: scored, If: of(TheFactor, TheDivisor)}}},
		{Kind: "operands.exchanged", Words: "{of} has its operands exchanged", Pages: []Page{{Anchor: "direction-of-rotation", Roles: rotated}, {Anchor: "inverted-norm", Roles: norms, If: of(TheRoot)}, {Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "step.twice", Words: "{of} is applied twice[: {by} in all][ ({called})]", Pages: twicePages},
		{Kind: "step.twice-root", Words: "{of} is applied twice[: {by} in all], as if it were not a root[ ({called})]", Pages: twicePages},
		{Kind: "division.twice", Words: "{of} is applied twice[: by {by} in all][ ({called})]", Pages: twicePages},
		{Kind: "addend.twice", Words: "{of} is applied twice: +{by} in all", Pages: twicePages},

		// A step is done to another part, or over another axis.
		{Kind: "part.other", Words: "{of} is added to the other part", Pages: []Page{{Anchor: "order-of-norm-and-residual", Roles: layernorms}, {Anchor: "per-layer-streams", Roles: outs}, {Anchor: "source-of-the-residual", Roles: stream}}},
		{Kind: "part.all", Words: "{of} is added to all of it, not to a part", Pages: []Page{{Anchor: "order-of-norm-and-residual", Roles: layernorms}, {Anchor: "per-layer-streams", Roles: outs}, {Anchor: "source-of-the-residual", Roles: stream}}},
		{Kind: "part.all-unnamed", Words: "what is done to a part is done to all"},
		{Kind: "axis.parts", Words: "{place step} is taken over each of {n} parts by itself, not over all"},
		{Kind: "axis.read", Words: "{of} is read along the {axis}, not along the {other}: the wrong axis"},
		{Kind: "axis.wrong", Words: "{place step} is taken over the wrong axis[: over its {axis}, not its {other}]", Pages: []Page{{Anchor: "norm-over-all-heads", Roles: norms}}},
		{Kind: "axis.two", Words: "{place step} is taken over two axes[: over its {axis} as well]", Pages: []Page{{Anchor: "norm-over-all-heads", Roles: norms}}},
		{Kind: "axis.two-all", Words: "all sums are taken over two axes[: over its {axis} as well]", Pages: []Page{{Anchor: "norm-over-all-heads", Roles: norms}}},
		{Kind: "heads.tiled-reads", Words: "{of} is tiled, not repeated: of {n}, such as heads, each reads number i mod {m}, not i / {k}", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "operand.transposed", Words: "{of} is read transposed in {by}", Pages: []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}}},

		// A step reads another value.
		{Kind: "operand.other", Words: "{of} reads {by}, not {for}", Pages: readPages},
		{Kind: "operand.other-part", Words: "{of} reads another part of {by} than it should", Pages: slices.Concat([]Page{{Anchor: "per-layer-streams", Roles: outs}}, readPages)},
		{Kind: "index.part", Words: "takes part {n} of {of}, not part {m}"},
		{Kind: "index.one", Words: "[{by} ]reads {axis} {n} of {of}, not {m}", Pages: readPages},
		{Kind: "index.run", Words: "[{by} ]reads {axis} {n} to {n+k-1} of {of}, not {m} to {m+k-1}", Pages: readPages},
		{Kind: "index.oldest", Words: "[{by} ]keeps {axis} {n} to {n+k-1} of {of}, not {m} to {m+k-1}: the cache keeps the oldest, not the newest", Pages: []Page{{Anchor: "evicted-keys", Roles: caches}}},
		{Kind: "count.first-left-out", Words: "the first of {for} terms is left out of {place}", Pages: leftOutPages},
		{Kind: "count.last-left-out", Words: "the last of {for} terms is left out of {place}", Pages: leftOutPages},
		{Kind: "count.divisor", Words: "{place} divides its sum by {x} terms"},

		// Steps come in another order.
		{Kind: "order.earlier", Words: "{of} is taken earlier: of {by}, not of {for}"},
		{Kind: "order.later", Words: "{of} is taken later: of {by}, not of {for}"},
		{Kind: "order.term-alone", Words: "{of} is taken of {by} alone, not of its sum with {for}"},
		{Kind: "epsilon.least-value", Words: "{of} is the least value below the root, and is not added", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},
		{Kind: "epsilon.added", Words: "{of} is added below the root, and is not the least value", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},
		{Kind: "epsilon.after-root", Words: "{of} is added to the root, not below it", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},
		{Kind: "epsilon.after-inverse", Words: "{of} is added behind the inverse of the root, not below the root", Pages: []Page{{Anchor: "place-of-epsilon", Roles: norms}}},

		// Elements come in another order.
		{Kind: "elements.rolled", Words: "{of} is moved by {n} along {its axis}", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}, {Anchor: "active-stream", Roles: predictions}, {Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.rolled-and-back", Words: "{of} is moved by {n} along {its axis}, and the result is moved back", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}, {Anchor: "active-stream", Roles: predictions}, {Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.halves-exchanged", Words: "{of} has the halves of {its axis} exchanged", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "elements.halves-exchanged-and-back", Words: "{of} has the halves of {its axis} exchanged, and the result is put back", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "elements.blocks", Words: "{of} has {its axis} in another order: its blocks of {n}, such as those of heads, are read as \\[{k}, {m}\\] with its axes exchanged", Pages: reorderedPages},
		{Kind: "elements.blocks-and-back", Words: "{of} has {its axis} in another order: its blocks of {n}, such as those of heads, are read as \\[{k}, {m}\\] with its axes exchanged, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.reversed", Words: "{of} is reversed along {its axis}", Pages: []Page{{Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.reversed-and-back", Words: "{of} is reversed along {its axis}, and the result is put back", Pages: []Page{{Anchor: "shifted-logits", Roles: heads, If: alongTokens}}},
		{Kind: "elements.blocks-reversed", Words: "{of} has {its axis} in another order: its blocks of {n}, such as those of heads, are in reverse", Pages: reorderedPages},
		{Kind: "elements.blocks-reversed-and-back", Words: "{of} has {its axis} in another order: its blocks of {n}, such as those of heads, are in reverse, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.axes-exchanged", Words: "{of} is read with {its axis} and {its other} exchanged", Pages: []Page{{Anchor: "per-layer-rows", Roles: perLayer}}},
		{Kind: "memory.parts-first", Words: "{of} is not transposed back: parts of {n} of {its other} come before {its axis} in memory", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}})},
		{Kind: "memory.axes-exchanged", Words: "{of} has {its axis} and {its other} in the wrong order in memory", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}})},
		{Kind: "heads.tiled-operand", Words: "the heads of {of} are tiled, not repeated: query head h reads head h mod n, not h / n", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "heads.tiled-keys", Words: "the heads of {of} are tiled, not repeated: query head h goes with key head h mod n, not h / n", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "heads.one", Words: "every query head reads head {n} of {of}", Pages: []Page{{Anchor: "key-heads-of-a-group", Roles: attendedScores}}},
		{Kind: "elements.one-index", Words: "{of} is read at index {n} of {its axis} for all of them"},
		{Kind: "elements.neighbours-exchanged", Words: "{of} has {its axis} in another order: neighbours are exchanged", Pages: slices.Concat([]Page{{Anchor: "rotary-pairs", Roles: rotated}}, reorderedPages)},
		{Kind: "elements.neighbours-exchanged-and-back", Words: "{of} has {its axis} in another order: neighbours are exchanged, and the result is put back", Pages: slices.Concat([]Page{{Anchor: "rotary-pairs", Roles: rotated}}, reorderedPages)},
		{Kind: "elements.each-block-reversed", Words: "{of} has {its axis} in another order: each block of {n} is in reverse", Pages: reorderedPages},
		{Kind: "elements.each-block-reversed-and-back", Words: "{of} has {its axis} in another order: each block of {n} is in reverse, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.as-halves", Words: "{of} is read as halves, not by turns"},
		{Kind: "elements.as-parts", Words: "{of} is read as {n} parts, not by turns"},
		{Kind: "elements.by-turns-not-halves", Words: "{of} is read by turns, not as halves"},
		{Kind: "elements.by-turns-not-parts", Words: "{of} is read by turns, not as {n} parts"},
		{Kind: "elements.halves-crossed", Words: "the halves of {of} are each read in the other's place: an exchange of halves is left out, or is one too many", Pages: []Page{{Anchor: "direction-of-rotation", Roles: rotated}}},
		{Kind: "elements.parts-crossed", Words: "the {n} parts of {of}, where they are read apart, are each another: by {m}"},
		{Kind: "rope.interleaved", Words: "neighbours are paired, not halves: element 2j goes with 2j+1", Pages: []Page{{Anchor: "rotary-pairs", Roles: rotated}}},
		{Kind: "elements.interleaved-and-back", Words: "{of} is read in the order of {n} interleaved parts along {its axis}, and the result is put back", Pages: reorderedPages},
		{Kind: "elements.blocks-interleaved", Words: "{of} has {its axis} in another order: in each block of {n}, halves are interleaved or neighbours set apart", Pages: slices.Concat([]Page{{Anchor: "rotary-pairs", Roles: rotated}}, reorderedPages)},
		{Kind: "elements.by-turns", Words: "{of} has {its axis} in another order: all read as {n} parts, by turns: \\[{n}, {m}\\] with its axes exchanged", Pages: reorderedPages},
		{Kind: "elements.blocks-by-turns", Words: "{of} has {its axis} in another order: each block of {k} read as {n} parts, by turns: \\[{n}, {m}\\] with its axes exchanged", Pages: reorderedPages},

		// Numbers.
		{Kind: "number.value", Words: "{of} is {x}[ ({called})]", Pages: numberPages, Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.zero", Words: "{of} is 0", Pages: []Page{{Anchor: "branch-of-zeros"}}, Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.rounded", Words: "{of} is {x} (rounded to {dtype})", Pages: slices.Concat([]Page{{Anchor: "rounded-embedding-scale", Roles: embeddings}}, numberPages), Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.machine-epsilon", Words: "{of} is {x} (the distance from 1 to the next number of {dtype})", Pages: numberPages, Apply: otherNumber, Class: edit.Constant, Field: OfItself},
		{Kind: "number.not-rounded", Words: "{of}, {for}, is not rounded to {dtype}", Pages: slices.Concat([]Page{{Anchor: "rounded-embedding-scale", Roles: embeddings}}, numberPages), Apply: otherNumber, Class: edit.Constant},
	}
}
