package diagnose

import (
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

func TestSentencesOfScales(t *testing.T) {
	up := weightTerm("layers.0.mlp.up_proj.weight")
	const role, page = "layers.*.mlp.up_proj", "quantised-weight"
	zeros := Coding{Numbers: Int4Kept}
	saying(t, scaleRows(), []said{
		{
			Mistake{Kind: "weight.scales-of-blocks", Of: up, Runs: makeRuns(sourceRun{0, 8, 16, ""}, sourceRun{8, 16, 8, unscaledRows}, sourceRun{16, 24, 16, scaledTwice})},
			"layers.*.mlp.up_proj.weight: rows 0 to 7 have the scale of rows 16 to 23; rows 8 to 15 have no scale; rows 16 to 23 have their scale applied twice", "layers.*.mlp.up_proj", "quantised-weight",
		},
		{
			Mistake{Kind: "weight.scales-of-blocks", Of: up, Runs: makeRuns(sourceRun{0, 8, 0, unscaledRows}, sourceRun{8, 16, 8, unscaledRows}, sourceRun{16, 24, 16, unscaledRows}, sourceRun{24, 32, 24, unscaledRows})},
			"layers.*.mlp.up_proj.weight: rows 0 to 7 have no scale; rows 8 to 15 have no scale; rows 16 to 23 have no scale; and 1 more", "layers.*.mlp.up_proj", "quantised-weight",
		},
		{Mistake{Kind: "weight.scales-of-further", Of: up, M: 1, N: 1}, "each row of layers.*.mlp.up_proj.weight has the scale of the next one", role, page},
		{Mistake{Kind: "weight.scales-of-further", Of: up, M: 1, K: 8, N: -1}, "each block of 1 by 8 of layers.*.mlp.up_proj.weight has the scale of the one before", role, page},
		{Mistake{Kind: "weight.scales-of-further", Of: up, M: 8, K: 8, N: 3}, "each block of 8 by 8 of layers.*.mlp.up_proj.weight has the scale of the one 3 further", role, page},
		{Mistake{Kind: "weight.scales-of-further", Of: up, M: 8, N: -3, Coding: zeros}, "each block of 8 rows of layers.*.mlp.up_proj.weight has the zero point of the one 3 before", role, page},
		{Mistake{Kind: "weight.scales-by-columns", Of: up, M: 8, K: 8}, "each block of 8 by 8 of layers.*.mlp.up_proj.weight has its scale from the transposed table of scales", role, page},
		{Mistake{Kind: "weight.scales-stored-by-columns", Of: up, M: 1, K: 8}, "each block of 1 by 8 of layers.*.mlp.up_proj.weight has its scale from a table that is stored by columns and read by rows", role, page},
		{Mistake{Kind: "weight.scales-reversed", Of: up, K: 1}, "each column of layers.*.mlp.up_proj.weight has its scale from a table that is read from its end", role, page},
		{Mistake{Kind: "weight.scales-of-first", Of: up, M: 1}, "each row of layers.*.mlp.up_proj.weight has the scale of the first one", role, page},
		{Mistake{Kind: "weight.scales-of-first", Of: up, M: 1, K: 8, Axis: "row"}, "each block of 1 by 8 of layers.*.mlp.up_proj.weight has the scale of the first one of its row", role, page},
		{Mistake{Kind: "weight.scales-of-other-size", Of: up, M: 16, N: 15, Axis: "row"}, "the scale of each block of 16 rows of layers.*.mlp.up_proj.weight is read as the scale of 15 rows", role, page},
		{Mistake{Kind: "weight.scales-in-turn", Of: up, M: 1, K: 8, N: 4, Axis: "row", Coding: zeros}, "each block of 1 by 8 of layers.*.mlp.up_proj.weight has its zero point in another order: the zero points of eight rows are read as 4 interleaved parts", role, page},
		{Mistake{Kind: "weight.scales-of-neighbours", Of: up, K: 8, Axis: "column"}, "each block of 8 columns of layers.*.mlp.up_proj.weight has the scale of its neighbour: each two columns are exchanged", role, page},
		{Mistake{Kind: scalesOfAnother, Of: up, By: weightTerm("layers.0.mlp.gate_proj.weight"), M: 1}, "layers.*.mlp.up_proj.weight has the scales of rows of layers.*.mlp.gate_proj.weight", role, page},
		{Mistake{Kind: scalesOfAnother, Of: up, By: weightTerm("layers.0.mlp.gate_proj.weight")}, "layers.*.mlp.up_proj.weight has the scale of layers.*.mlp.gate_proj.weight", role, page},
		{Mistake{Kind: "weight.scales-unused", Of: up, M: 1, N: 127}, "no row of layers.*.mlp.up_proj.weight has its scale: the largest value of each is 127", role, page},
		{Mistake{Kind: "weight.scales-squared", Of: up, M: 1, N: 127}, "each row of layers.*.mlp.up_proj.weight has its scale twice, with codes up to 127", role, page},
		{Mistake{Kind: "weight.scales-inverted", Of: up, M: 1, N: 7}, "each row of layers.*.mlp.up_proj.weight is divided by its scale, not multiplied, with codes up to 7", role, page},
		{Mistake{Kind: "weight.scales-rounded", Of: up, M: 1, K: 8, N: 7, DType: hooks.BF16}, "the scale of each block of 1 by 8 of layers.*.mlp.up_proj.weight is rounded to bfloat16, with codes up to 7", role, page},
		{Mistake{Kind: "weight.scales-of-all", Of: up, M: 1}, "each row of layers.*.mlp.up_proj.weight has the largest of all scales", role, page},
		{Mistake{Kind: cutScales, Of: up, M: 1, K: 8, X: some(0.25)}, "the scale of each block of 1 by 8 of layers.*.mlp.up_proj.weight is cut off at 0.25 times the largest scale", role, page},
		{Mistake{Kind: raisedScales, Of: up, M: 1, X: some(0.5)}, "the scale of each row of layers.*.mlp.up_proj.weight is at least 0.5 times the largest scale", role, page},
		{Mistake{Kind: "weight.scales-as-codes", Of: up, M: 1, N: 2}, "each row of layers.*.mlp.up_proj.weight is multiplied by the code of its scale, the exponent and 127, not by the scale", role, page},
		{Mistake{Kind: "weight.zero-points-all", Of: up, M: 1, K: 8, N: 8}, "each block of 1 by 8 of layers.*.mlp.up_proj.weight has the zero point 8", role, page},
		{Mistake{Kind: "weight.zero-points-wrapped", Of: up, M: 1, K: 8}, "each block of 1 by 8 of layers.*.mlp.up_proj.weight with the zero point 0 has the largest zero point", role, page},
	})
}
