package diagnose

import "slices"

// weightRows are mistakes in weights.
func weightRows() []Row {
	return []Row{
		// Other numbers.
		{Kind: "weight.zero", Words: "{of} is 0", Pages: []Page{{Anchor: "branch-of-zeros"}}},
		{Kind: "weight.one", Words: "{of} is 1", Pages: []Page{{Anchor: "weight-not-loaded"}}},
		{Kind: "weight.plus-one", Words: "{of} is taken as 1+w", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}},
		{Kind: "weight.stored-plus-one", Words: "{of} has 1 added, as one that is stored with the 1", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}},
		{Kind: "weight.minus-one", Words: "{of} has 1 taken off", Pages: []Page{{Anchor: "one-plus-the-weight", Roles: norms}}},
		{Kind: "weight.negated", Words: "{of} has the opposite sign"},
		{Kind: "weight.inverted", Words: "{of} is its reciprocal"},
		{Kind: "weight.clipped-at-zero", Words: "{of} has 0 in place of what is negative"},
		{Kind: "weight.unsigned", Words: "{of} has lost the sign of what is negative"},
		{Kind: "weight.multiplied", Words: "{of} is multiplied by {by}[ ({called})]", Pages: []Page{{Anchor: "rescaled-stream", Roles: rescaledStream, If: func(m Mistake) bool { return m.By.X < 1 }}, {Anchor: "scale-moved-to-the-queries", Roles: rotated}, {Anchor: "attention-scale", Roles: scored}, {Anchor: "logit-scale", Roles: heads}}},
		{Kind: "weight.one-number", Words: "one number of {of}, \\[{n}, {m}\\], is {by} and should be {for}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}},
		{Kind: "weight.bit-flipped", Words: "one number of {of}, \\[{n}, {m}\\], is {by} and should be {for}: {times} times as large, as where a bit is flipped", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}},

		// Few bits.
		{Kind: "weight.rounded-dtype", Words: "{of} is rounded to {dtype}"},
		{Kind: "weight.rounded", Words: "{of} is rounded to {coding}", Pages: codedPages},
		{Kind: "weight.rounded-between", Words: "{of} is rounded to {coding}, between the least and the greatest number", Pages: codedPages},
		{Kind: "weight.zero-point-off", Words: "{of} is rounded to {coding}, between the least and the greatest number, with zero points that are off by {+n}", Pages: codedPages},
		{Kind: "weight.rounded-with-other-steps", Words: "{of} is rounded to {coding}, and multiplied by {by}: it is made with {n} steps to its largest number, and read as if there were {m}", Pages: codedPages},
		{Kind: "weight.rounded-with-one-step-more", Words: "{of} is rounded to {coding}, with {n} steps to its largest number", Pages: codedPages},
		{Kind: "weight.cut-to-codes", Words: "{of} is rounded to {coding}, towards 0", Pages: codedPages},
		{Kind: "weight.rounded-with-narrow-scales", Words: "{of} is rounded to {coding}, with scales in {dtype}", Pages: codedPages},
		{Kind: "weight.rounded-q4-0", Words: "{of} is rounded to {coding}, from -8 to 7 (Q4_0)", Pages: codedPages},
		{Kind: "weight.rounded-mxfp4", Words: "{of} is rounded to {coding}, with scales that are powers of two (mxfp4)", Pages: codedPages},
		{Kind: "weight.bits-misread", Words: "{of} has the bits of {dtype}, read as {by}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}},
		{Kind: "weight.bytes-swapped", Words: "{of} has the bytes of its {dtype} numbers in the other order", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}},
		{Kind: "weight.cut-off", Words: "{of} is cut off to {dtype}, not rounded", Pages: []Page{{Anchor: "damaged-weight", Roles: projected}}},

		// Another order of rows and columns.
		{Kind: "weight.transposed", Words: "{of} is transposed", Pages: []Page{{Anchor: "transposed-weight", Roles: projected}, {Anchor: "heads-merged-without-transposing", Roles: contexts}}},
		{Kind: "weight.reshaped", Words: "{of} is reshaped, not transposed: its file has rows and columns exchanged", Pages: []Page{{Anchor: "heads-merged-without-transposing", Roles: contexts}}},
		{Kind: "weight.rope-rows", Words: "{of} has the rows of each head of {n} in the order of the other rotary embedding ({m} × {k})", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "permuted-query-and-key-rows", Roles: norms}})},
		{Kind: "weight.rope-channels", Words: "{of} has the channels of each head of {n} in the order of the other rotary embedding ({m} × {k})", Pages: slices.Concat(reorderedPages, []Page{{Anchor: "permuted-query-and-key-rows", Roles: norms}})},
		{Kind: "weight.rows-interleaved", Words: "{of} has each {n} rows in another order, {interleaved}: read as {k} × {m} with its axes exchanged, as codes of few bits are packed", Pages: []Page{{Anchor: "quantised-weight"}}},
		{Kind: "weight.tiles-by-columns", Words: "{of} is stored in tiles of {n} rows by {m} columns: each is read row by row, and holds its columns one after the other"},
		{Kind: "weight.tiles-by-rows", Words: "{of} is stored in tiles of {n} rows by {m} columns: each is read column by column, and holds its rows one after the other"},
		{Kind: "weight.rows-reordered-in-blocks", Words: "{of}: of each {n} rows the order is {order}", Pages: slices.Concat(rowPages, reorderedPages)},
		{Kind: "weight.rows-others", Words: "{of}: {runs row}: one matrix of several is cut at another place, or has padding", Pages: []Page{{Anchor: "shards", Roles: projected}}},
		{Kind: "weight.rows-many-others", Words: "{of}: its rows are others: {runs row}; and {n} parts more", Pages: rowPages},
		{Kind: "channels.others", Words: "{runs channel}", Pages: []Page{{Anchor: "damaged-weight", Roles: projected, If: oneChannel}, {Anchor: "shards", Roles: projected, If: withZeros}}},
		{Kind: "channels.many-others", Words: "{runs channel}; and {n} more parts", Pages: []Page{{Anchor: "damaged-weight", Roles: projected, If: oneChannel}, {Anchor: "shards", Roles: projected, If: withZeros}}},
		{Kind: "channels.reordered", Words: "the channels are in another order: {n} of {m} are others ({runs channel}; ...)", Pages: reorderedPages},

		// A part of it, or a part of one matrix of several.
		{Kind: "weight.one-shard", Words: "{of} has part {n+1} of {m} of its columns alone: the others are 0", Pages: []Page{{Anchor: "shards", Roles: projected}}},
		{Kind: "weight.shard-missing", Words: "{of} lacks part {n+1} of {m} of its columns: they are 0", Pages: []Page{{Anchor: "shards", Roles: projected}}},
		{Kind: "weight.first-shard-everywhere", Words: "{of} has the first of its {n} parts in the place of each"},
		{Kind: "weight.columns-cut", Words: "the last {n} of {m} columns of {of} are 0: so many inputs are cut off", Pages: []Page{{Anchor: "shards", Roles: projected}}},
		{Kind: "weight.packed-read-as-groups", Words: "{of} are one matrix, which is read as {n} groups of rows with parts of each", Pages: packedPages},
		{Kind: "weight.groups-read-as-packed", Words: "{of} are one matrix of {n} groups of rows with parts of each, which is read as if they came one behind the other", Pages: packedPages},
		{Kind: weightCut, Words: "the weight of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order", Pages: packedPages},
		{Kind: "weight.cut-elsewhere-with-bias", Words: "the weight, with its bias, of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order", Pages: packedPages},
		{Kind: "bias.cut-elsewhere", Words: "the bias of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order", Pages: packedPages},
	}
}
