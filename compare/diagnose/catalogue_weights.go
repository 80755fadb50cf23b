package diagnose

// weightRows are mistakes in weights.
var weightRows = []Row{
	// Other numbers.
	{Kind: "weight.zero", Words: "{of} is 0"},
	{Kind: "weight.one", Words: "{of} is 1"},
	{Kind: "weight.plus-one", Words: "{of} is taken as 1+w"},
	{Kind: "weight.stored-plus-one", Words: "{of} has 1 added, as one that is stored with the 1"},
	{Kind: "weight.minus-one", Words: "{of} has 1 taken off"},
	{Kind: "weight.negated", Words: "{of} has the opposite sign"},
	{Kind: "weight.inverted", Words: "{of} is its reciprocal"},
	{Kind: "weight.clipped-at-zero", Words: "{of} has 0 in place of what is negative"},
	{Kind: "weight.unsigned", Words: "{of} has lost the sign of what is negative"},
	{Kind: "weight.multiplied", Words: "{of} is multiplied by {by}[ ({called})]"},
	{Kind: "weight.one-number", Words: "one number of {of}, [[{n}, {m}]], is {by} and should be {for}"},
	{Kind: "weight.bit-flipped", Words: "one number of {of}, [[{n}, {m}]], is {by} and should be {for}: {times} times as large, as where a bit is flipped"},

	// Few bits.
	{Kind: "weight.rounded-dtype", Words: "{of} is rounded to {dtype}"},
	{Kind: "weight.rounded", Words: "{of} is rounded to {coding}"},
	{Kind: "weight.rounded-between", Words: "{of} is rounded to {coding}, between the least and the greatest number"},
	{Kind: "weight.zero-point-off", Words: "{of} is rounded to {coding}, between the least and the greatest number, with zero points that are off by {+n}"},
	{Kind: "weight.rounded-with-other-steps", Words: "{of} is rounded to {coding}, and multiplied by {by}: it is made with {n} steps to its largest number, and read as if there were {m}"},
	{Kind: "weight.rounded-with-one-step-more", Words: "{of} is rounded to {coding}, with {n} steps to its largest number"},
	{Kind: "weight.cut-to-codes", Words: "{of} is rounded to {coding}, towards 0"},
	{Kind: "weight.rounded-with-narrow-scales", Words: "{of} is rounded to {coding}, with scales in {dtype}"},
	{Kind: "weight.rounded-q4-0", Words: "{of} is rounded to {coding}, from -8 to 7 (Q4_0)"},
	{Kind: "weight.rounded-mxfp4", Words: "{of} is rounded to {coding}, with scales that are powers of two (mxfp4)"},
	{Kind: "weight.bits-misread", Words: "{of} has the bits of {dtype}, read as {by}"},
	{Kind: "weight.bytes-swapped", Words: "{of} has the bytes of its {dtype} numbers in the other order"},
	{Kind: "weight.cut-off", Words: "{of} is cut off to {dtype}, not rounded"},

	// Another order of rows and columns.
	{Kind: "weight.transposed", Words: "{of} is transposed"},
	{Kind: "weight.reshaped", Words: "{of} is reshaped, not transposed: its file has rows and columns exchanged"},
	{Kind: "weight.rope-rows", Words: "{of} has the rows of each head of {n} in the order of the other rotary embedding ({m} × {k})"},
	{Kind: "weight.rope-channels", Words: "{of} has the channels of each head of {n} in the order of the other rotary embedding ({m} × {k})"},
	{Kind: "weight.rows-interleaved", Words: "{of} has each {n} rows in another order, {interleaved}: read as {k} × {m} with its axes exchanged, as codes of few bits are packed"},
	{Kind: "weight.tiles-by-columns", Words: "{of} is stored in tiles of {n} rows by {m} columns: each is read row by row, and holds its columns one after the other"},
	{Kind: "weight.tiles-by-rows", Words: "{of} is stored in tiles of {n} rows by {m} columns: each is read column by column, and holds its rows one after the other"},
	{Kind: "weight.rows-reordered-in-blocks", Words: "{of}: of each {n} rows the order is {order}"},
	{Kind: "weight.rows-others", Words: "{of}: {runs row}: one matrix of several is cut at another place, or has padding"},
	{Kind: "weight.rows-many-others", Words: "{of}: its rows are others: {runs row}; and {n} parts more"},
	{Kind: "channels.others", Words: "{runs channel}"},
	{Kind: "channels.many-others", Words: "{runs channel}; and {n} more parts"},
	{Kind: "channels.reordered", Words: "the channels are in another order: {n} of {m} are others ({runs channel}; ...)"},

	// A part of it, or a part of one matrix of several.
	{Kind: "weight.one-shard", Words: "{of} has part {n+1} of {m} of its columns alone: the others are 0"},
	{Kind: "weight.shard-missing", Words: "{of} lacks part {n+1} of {m} of its columns: they are 0"},
	{Kind: "weight.first-shard-everywhere", Words: "{of} has the first of its {n} parts in the place of each"},
	{Kind: "weight.columns-cut", Words: "the last {n} of {m} columns of {of} are 0: so many inputs are cut off"},
	{Kind: "weight.packed-read-as-groups", Words: "{of} are one matrix, which is read as {n} groups of rows with parts of each"},
	{Kind: "weight.groups-read-as-packed", Words: "{of} are one matrix of {n} groups of rows with parts of each, which is read as if they came one behind the other"},
	{Kind: weightCut, Words: "the weight of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order"},
	{Kind: "weight.cut-elsewhere-with-bias", Words: "the weight, with its bias, of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order"},
	{Kind: "bias.cut-elsewhere", Words: "the bias of {of} is {pieces}: one matrix of several projections is cut at another place, or has them in another order"},
}
