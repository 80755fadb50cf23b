package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program/edit"
)

// oneSolved and eachRun count the solved numbers of a mistake: a single number, or a number for each run.
func oneSolved(Mistake) int { return 1 }
func eachRun(m Mistake) int { return len(m.Runs.list()) }

// weightRows are mistakes in weights.
func weightRows() []Row {
	return []Row{
		// Other numbers.
		{Kind: "weight.zero", Words: "{of} is 0", Pages: []Page{{Anchor: "branch-of-zeros"}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.one", Words: "{of} is 1", Pages: []Page{{Anchor: "weight-not-loaded"}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.plus-one", Words: "{of} is taken as 1+w", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.stored-plus-one", Words: "{of} has 1 added twice: it is stored as 1+w, and 1 is added again", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.minus-one", Words: "{of} has 1 subtracted", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.negated", Words: "{of} has the opposite sign", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.inverted", Words: "{of} is its reciprocal", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.clipped-at-zero", Words: "{of} has 0 instead of its negative values", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.unsigned", Words: "{of} has lost the sign of its negative values", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.multiplied", Words: "{of} is multiplied by {by}[ ({called})]", Pages: []Page{{Anchor: "rescaled-stream", Roles: rescaledStream, If: func(m Mistake) bool { return m.By.X < 1 }}, {Anchor: "scale-moved-to-the-queries", Roles: rotated}, {Anchor: "attention-scale", Roles: scored}, {Anchor: "logit-scale", Roles: heads}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.one-number", Words: "one value of {of}, \\[{n}, {m}\\], is {by} instead of {for}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: oneSolved},
		{Kind: "weight.bit-flipped", Words: "one value of {of}, \\[{n}, {m}\\], is {by} instead of {for}: {times} times as large, like a flipped bit", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: oneSolved},

		// Few bits.
		{Kind: "weight.rounded-dtype", Words: "{of} is rounded to {dtype}", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded", Words: "{of} is quantised to {coding}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-between", Words: "{of} is quantised to {coding}, from the minimum to the maximum", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.zero-point-off", Words: "{of} is quantised to {coding}, from the minimum to the maximum, with zero points off by {+n}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-with-other-steps", Words: "{of} is quantised to {coding}, and multiplied by {by}: written with {n} steps to the largest value, read with {m}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-with-one-step-more", Words: "{of} is quantised to {coding}, with {n} steps to the largest value", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-with-offset", Words: "{of} is stored in {coding} as signed codes and read as codes with an offset: each value is half the range off", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-unsigned", Words: "{of} is stored in {coding} as signed codes and read as unsigned codes: negative values are too large by the whole range", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-without-sign", Words: "{of} is stored in {coding}, and its values have lost their sign", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-saturated", Words: "{of} is stored in {coding} as codes with an offset, which are cut off at the largest signed code: no value is positive", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.codes-borrowed", Words: "{of} is stored in {coding}, {n} codes to a word: each code behind a negative code is read one step too low", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: lowScales, Words: "{of} is quantised to {coding}, with power-of-two scales that are too small: values above the largest code are cut off", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf, After: []Kind{"weight.rounded-mxfp4"}},
		{Kind: "weight.cut-to-codes", Words: "{of} is quantised to {coding}, rounded toward 0", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-with-narrow-scales", Words: "{of} is quantised to {coding}, with scales in {dtype}", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-q4-0", Words: "{of} is quantised to {coding}, from -8 to 7 (Q4_0)", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rounded-mxfp4", Words: "{of} is quantised to {coding}, with power-of-two scales (mxfp4)", Pages: codedPages, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.bits-misread", Words: "{of} has the bits of {dtype}, read as {by}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.bytes-swapped", Words: "{of} has its {dtype} bytes in the wrong order", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.cut-off", Words: "{of} is truncated to {dtype}, not rounded", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},

		// Another order of rows and columns.
		{Kind: "weight.transposed", Words: "{of} is transposed", Pages: []Page{{Anchor: "transposed-weight", Roles: projected}, {Anchor: "heads-merged-without-transposing", Roles: contexts}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.reshaped", Words: "{of} is reshaped, not transposed: its file has rows and columns exchanged", Pages: []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rope-rows", Words: "{of} has the rows of each head of {n} in the other RoPE layout ({m} × {k})", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "permuted-query-and-key-rows", Roles: norms}}), Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.rope-channels", Words: "{of} has the channels of each head of {n} in the other RoPE layout ({m} × {k})", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "permuted-query-and-key-rows", Roles: norms}}), Apply: changedWeight, Class: edit.Leaf},
		{Kind: interleavedKind, Words: "{of} has its rows permuted within each {n}: {interleaved} ({k} × {m} with the axes exchanged, the packing order of low-bit codes)", Pages: []Page{{Anchor: "quantised-weight"}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: hadamardInputs, Words: "each block of {n} inputs of {of} is rotated by a Hadamard matrix, and no rotation of the operand undoes it", Apply: changedWeight, Class: edit.Leaf},
		{Kind: hadamardOutputs, Words: "each block of {n} outputs of {of} is rotated by a Hadamard matrix, and no rotation of the result undoes it", Apply: changedWeight, Class: edit.Leaf},
		{Kind: panelsAsRows, Words: "{of} is stored in panels of {n} rows, {m} columns of each row in turn, and read row by row", Apply: changedWeight, Class: edit.Leaf},
		{Kind: rowsAsPanels, Words: "{of} is stored row by row, and read in panels of {n} rows, {m} columns of each row in turn", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.tiles-by-columns", Words: "{of} is stored in tiles of {n} rows by {m} columns: each tile is column-major and read as row-major", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.tiles-by-rows", Words: "{of} is stored in tiles of {n} rows by {m} columns: each tile is row-major and read as column-major", Apply: changedWeight, Class: edit.Leaf},
		{Kind: rowsApart, Words: "the rows of {of} are stored {m} elements apart and read {n} elements apart", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: solvedPlaces},
		{Kind: columnsLater, Words: "from column {k} on, the elements of each row of {of} are read at an offset of {+n}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: solvedPlaces},
		{Kind: blocksKind, Words: "{of} has its rows permuted within each {n}: {order}", Pages: slices.Concat(rowPages, reorderedPages), Apply: otherRowsOf, Class: edit.Leaf, After: []Kind{"channels.others"}, Solved: eachRun},
		{Kind: "weight.rows-others", Words: "{of}: {runs row}, as where a fused matrix is split at the wrong row, or has padding", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: otherRowsOf, Class: edit.Leaf, After: []Kind{"channels.others"}, Solved: eachRun},
		{Kind: "weight.rows-many-others", Words: "{of} has the wrong rows: {runs row}; and {n} more", Pages: rowPages, Apply: otherRowsOf, Class: edit.Leaf, After: []Kind{"channels.others"}, Solved: eachRun},
		{Kind: rowsMean, Words: "rows {at} of {of} are the mean of all rows: rows that were added to a table", Pages: rowPages, Apply: changedWeight, Class: edit.Leaf, Solved: eachRun},
		{Kind: rowsMeanOfOthers, Words: "rows {at} of {of} are the mean of all other rows: rows that were added to a table", Pages: rowPages, Apply: changedWeight, Class: edit.Leaf, Solved: eachRun},
		{Kind: "channels.others", Words: "{runs channel}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected, If: oneChannel}, {Anchor: "shards", Roles: projected, If: withZeros}}, Apply: movedChannels, Class: edit.Mapped, Solved: eachRun},
		{Kind: "channels.many-others", Words: "{runs channel}; and {n} more", Pages: []Page{{Anchor: "damaged-weight", Roles: projected, If: oneChannel}, {Anchor: "shards", Roles: projected, If: withZeros}}, Apply: movedChannels, Class: edit.Mapped, Solved: eachRun},
		{Kind: "indexes.others", Words: "{of} has at {axis} {at} what belongs at {are}", Apply: ofOtherIndexes, Class: edit.Mapped, Solved: eachRun},
		{Kind: "channels.reordered", Words: "the channels are in the wrong order: {n} of {m} ({runs channel}; ...)", Pages: reorderedPages, Apply: movedChannels, Class: edit.Mapped, Solved: eachRun},

		// Parts of a matrix, or of one of several matrices.
		{Kind: "weight.one-shard", Words: "{of} has only part {n+1} of {m} of its columns: the others are 0", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.shard-missing", Words: "{of} lacks part {n+1} of {m} of its columns: they are 0", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.first-shard-everywhere", Words: "{of} repeats the first of its {n} parts", Apply: changedWeight, Class: edit.Leaf},
		{Kind: "weight.columns-cut", Words: "the last {n} of {m} columns of {of} are 0: those inputs are cut off", Pages: []Page{{Anchor: "shards", Roles: projected}}, Apply: changedWeight, Class: edit.Leaf, Solved: oneSolved},
		{Kind: "weight.packed-read-as-groups", Words: "{of} are one fused matrix, stored one after the other and read as {n} groups of rows", Pages: packedPages, Apply: regrouped, Class: edit.Leaf},
		{Kind: splitKind, Words: "{of} are one fused matrix, stored as {n} groups of rows and read as if one came after the other", Pages: packedPages, Apply: regrouped, Class: edit.Leaf},
		{Kind: weightCut, Words: "the weight of {of} is {pieces}: a fused matrix is split at the wrong row, or in the wrong order", Pages: packedPages, Apply: recut, Class: edit.Leaf, After: []Kind{"weight.other"}},
		{Kind: bothCut, Words: "the weight and bias of {of} are {pieces}: a fused matrix is split at the wrong row, or in the wrong order", Pages: packedPages, Apply: recut, Class: edit.Leaf},
		{Kind: biasCut, Words: "the bias of {of} is {pieces}: a fused matrix is split at the wrong row, or in the wrong order", Pages: packedPages, Apply: recut, Class: edit.Leaf},
	}
}
