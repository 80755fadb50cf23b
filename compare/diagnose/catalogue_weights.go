package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program/edit"
)

// oneSolved and eachRun count the solved numbers of a mistake: one number in all, or one number for each run.
func oneSolved(Mistake) int { return 1 }
func eachRun(m Mistake) int { return len(m.Runs.list()) }

// weightRows are mistakes in weights.
func weightRows() []Row {
	return []Row{
		// Other numbers.
		{Kind: "weight.zero", Words: "{of} is 0", Pages: []Page{{Anchor: "branch-of-zeros"}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.one", Words: "{of} is 1", Pages: []Page{{Anchor: "weight-not-loaded"}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.plus-one", Words: "{of} is taken as 1+w", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.stored-plus-one", Words: "{of} has 1 added, as one that is stored with the 1", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.minus-one", Words: "{of} has 1 taken off", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.negated", Words: "{of} has the opposite sign", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.inverted", Words: "{of} is its reciprocal", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.clipped-at-zero", Words: "{of} has 0 in place of what is negative", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.unsigned", Words: "{of} has lost the sign of what is negative", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.multiplied", Words: "{of} is multiplied by {by}[ ({called})]", Pages: []Page{{Anchor: "rescaled-stream", Roles: rescaledStream, If: func(m Mistake) bool { return m.By.X < 1 }}, {Anchor: "scale-moved-to-the-queries", Roles: rotated}, {Anchor: "attention-scale", Roles: scored}, {Anchor: "logit-scale", Roles: heads}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.one-number", Words: "one number of {of}, \\[{n}, {m}\\], is {by} and should be {for}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: oneSolved},
		{Kind: "weight.bit-flipped", Words: "one number of {of}, \\[{n}, {m}\\], is {by} and should be {for}: {times} times as large, as where a bit is flipped", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: oneSolved},

		// Few bits.
		{Kind: "weight.rounded-dtype", Words: "{of} is rounded to {dtype}", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded", Words: "{of} is rounded to {coding}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-between", Words: "{of} is rounded to {coding}, between the least and the greatest number", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.zero-point-off", Words: "{of} is rounded to {coding}, between the least and the greatest number, with zero points that are off by {+n}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-with-other-steps", Words: "{of} is rounded to {coding}, and multiplied by {by}: it is made with {n} steps to its largest number, and read as if there were {m}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-with-one-step-more", Words: "{of} is rounded to {coding}, with {n} steps to its largest number", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-with-offset", Words: "{of} is kept in {coding}, with a sign, and is read as numbers with an offset: each is half of the range too high or too low", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-unsigned", Words: "{of} is kept in {coding}, with a sign, and is read without one: negative numbers are the whole range too high", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-without-sign", Words: "{of} is kept in {coding}, and its numbers have lost their sign", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.cut-to-codes", Words: "{of} is rounded to {coding}, towards 0", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-with-narrow-scales", Words: "{of} is rounded to {coding}, with scales in {dtype}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-q4-0", Words: "{of} is rounded to {coding}, from -8 to 7 (Q4_0)", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-mxfp4", Words: "{of} is rounded to {coding}, with scales that are powers of two (mxfp4)", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.bits-misread", Words: "{of} has the bits of {dtype}, read as {by}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.bytes-swapped", Words: "{of} has the bytes of its {dtype} numbers in the other order", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.cut-off", Words: "{of} is cut off to {dtype}, not rounded", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},

		// Another order of rows and columns.
		{Kind: "weight.transposed", Words: "{of} is transposed", Pages: []Page{{Anchor: "transposed-weight", Roles: projected}, {Anchor: "heads-merged-without-transposing", Roles: contexts}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.reshaped", Words: "{of} is reshaped, not transposed: its file has rows and columns exchanged", Pages: []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rope-rows", Words: "{of} has the rows of each head of {n} in the order of the other rotary embedding ({m} × {k})", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "permuted-query-and-key-rows", Roles: norms}}), Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rope-channels", Words: "{of} has the channels of each head of {n} in the order of the other rotary embedding ({m} × {k})", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "permuted-query-and-key-rows", Roles: norms}}), Apply: changedWeight, Class: edit.Leaf},
		{Kind: interleavedKind, Words: "{of} has each {n} rows in another order, {interleaved}: read as {k} × {m} with its axes exchanged, as codes of few bits are packed", Pages: []Page{{Anchor: "quantised-weight"}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.tiles-by-columns", Words: "{of} is stored in tiles of {n} rows by {m} columns: each is read row by row, and holds its columns one after the other", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.tiles-by-rows", Words: "{of} is stored in tiles of {n} rows by {m} columns: each is read column by column, and holds its rows one after the other", Apply: changedWeight, Class: edit.Leaf},
		{Kind: blocksKind, Words: "{of}: of each {n} rows the order is {order}", Pages: slices.Concat(rowPages, reorderedPages), Apply: otherRowsOf, Class: edit.Leaf, After: []Kind{"channels.others"}, Solved: eachRun},
		{Kind: "weight.rows-others", Words: "{of}: {runs row}: one matrix of several is cut at another place, or has padding", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: otherRowsOf, Class: edit.Leaf, After: []Kind{"channels.others"}, Solved: eachRun},
		{Kind: "weight.rows-many-others", Words: "{of}: its rows are others: {runs row}; and {n} parts more", Pages: rowPages, Apply: otherRowsOf, Class: edit.Leaf, After: []Kind{"channels.others"}, Solved: eachRun},
		{Kind: "channels.others", Words: "{runs channel}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected, If: oneChannel}, {Anchor: "shards", Roles: projected, If: withZeros}}, Apply: movedChannels, Class: edit.Mapped, Solved: eachRun},
		{Kind: "channels.many-others", Words: "{runs channel}; and {n} more parts", Pages: []Page{{Anchor: "damaged-weight", Roles: projected, If: oneChannel}, {Anchor: "shards", Roles: projected, If: withZeros}}, Apply: movedChannels, Class: edit.Mapped, Solved: eachRun},
		{Kind: "channels.reordered", Words: "the channels are in another order: {n} of {m} are others ({runs channel}; ...)", Pages: reorderedPages, Apply: movedChannels, Class: edit.Mapped, Solved: eachRun},

		// A part of it, or a part of one matrix of several.
		{Kind: "weight.one-shard", Words: "{of} has part {n+1} of {m} of its columns alone: the others are 0", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.shard-missing", Words: "{of} lacks part {n+1} of {m} of its columns: they are 0", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.first-shard-everywhere", Words: "{of} has the first of its {n} parts in the place of each", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.columns-cut", Words: "the last {n} of {m} columns of {of} are 0: so many inputs are cut off", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: oneSolved},
		{Kind: "weight.packed-read-as-groups", Words: "{of} are one matrix, which is read as {n} groups of rows with parts of each", Pages: packedPages, Apply: regrouped, Class: edit.Leaf},
		{Kind: splitKind, Words: "{of} are one matrix of {n} groups of rows with parts of each, which is read as if they came one behind the other", Pages: packedPages, Apply: regrouped, Class: edit.Leaf},
		{Kind: weightCut, Words: "the weight of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order", Pages: packedPages, Apply: recut, Class: edit.Leaf},
		{Kind: bothCut, Words: "the weight, with its bias, of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order", Pages: packedPages, Apply: recut, Class: edit.Leaf},
		{Kind: biasCut, Words: "the bias of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order", Pages: packedPages, Apply: recut, Class: edit.Leaf},
	}
}
