package diagnose

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

var usualGemma3n = []Usual{
	{Name: "router-unscaled", Page: "altup-router", What: "the router's input is not scaled", at: []string{"*.router_input"}, is: leftOut(0)},
	{Name: "router-linear", Page: "altup-router", What: "the router has no tanh", at: []string{"*.modalities"}, is: leftOut(0)},
	{
		Name: "prediction-transposed", Page: "altup-coefficients", What: "the prediction coefficients are transposed", at: []string{"*.altup.predict"},
		is: inputMapped(0, false, func(c *order.Config, _ int) edit.Map {
			return edit.Map{Kind: edit.Weave, Axis: 2, N: c.Gemma3n.AltUpStreams}
		}),
	},
	{Name: "prediction-alone", Page: "altup-coefficients", What: "the streams are not added to their prediction", at: []string{"*.altup.predict"}, is: stepLeftOut("sum", 0)},
	{Name: "correction-without-one", Page: "altup-coefficients", What: "the correction lacks its +1", at: []string{"*.altup.correct"}, is: stepLeftOut("coefficient", 0)},
	{
		Name: "correction-unscaled", Page: "altup-coefficients", What: "the corrected stream is not scaled", at: []string{"*.altup.scale_corrected_output=scale_channels"},
		is: leftOut(0),
	},
	{
		Name: "coefficients-clipped", Page: "altup-coefficients", What: "coefficients are clipped, as in training", at: []string{"*.altup.prediction_coefs", "*.altup.correction_coefs"},
		when: func(c *order.Config) bool { return c.Gemma3n.AltUpCoefClip > 0 }, edit: coefficientsClipped,
	},
	{
		Name: "active-first", Page: "active-stream", What: "the first stream is used as the active stream", at: []string{"*.active_prediction", "*.altup.predict.router_norm"},
		when: func(c *order.Config) bool { return c.Gemma3n.AltUpActive != 0 }, is: streamIs(0),
	},
	{Name: "streams-unscaled", Page: "merging-the-streams", What: "streams are not brought to the magnitude of the first", at: []string{"altup.init"}, is: editOf(edit.Edits.LeftOut, streamsUnscaled)},
	{Name: "streams-unscaled-back", Page: "merging-the-streams", What: "streams are merged without being scaled back", at: []string{"altup.final.stream.*"}, is: leftOut(0)},
	{Name: "streams-summed", Page: "merging-the-streams", What: "streams are summed, not averaged", at: []string{"altup.final.mean"}, is: stepLeftOut("mean", 0)},
	{Name: "floor-added", Page: "merging-the-streams", What: "the minimum magnitude is added, not taken as a minimum", at: []string{"altup.*.magnitude.*"}, is: stepIs("", program.Max, program.Add)},
	{Name: "laurel-without-input", Page: "laurel", What: "LAUREL does not add its input", at: []string{"*.laurel=add"}, is: leftOut(1)},
	{Name: "laurel-unscaled", Page: "laurel", What: "attention and LAUREL are not divided by √2", at: []string{"*.attn_laurel"}, is: numberIs("constant", just(1))},
	{
		Name: "per-layer-clamped", Page: "per-layer-rows", What: "ids past the end of the per-layer table take its last row", at: []string{"embed_tokens_per_layer.lookup"},
		when:  func(c *order.Config) bool { return c.VocabSize > c.Gemma3n.PerLayerVocab },
		needs: func(c *order.Config) Needs { return Needs{ID: c.Gemma3n.PerLayerVocab} },
		is:    always(Mistake{Kind: "ids.last-row", Place: "lookup.ids"}),
	},
	{
		Name: "per-layer-axes", Page: "per-layer-rows", What: "a per-layer row is read as [size, layers]", at: []string{"embed_tokens_per_layer.lookup"},
		when: manyLayers, is: resultMapped(func(*order.Config) edit.Map { return edit.Map{Kind: edit.Unread, Axis: 2, Other: 3} }),
	},
	{
		Name: "per-layer-next", Page: "per-layer-rows", What: "layers take the per-layer input of the next layer", at: []string{"*.per_layer_input"},
		when: manyLayers, is: nextSlice(2),
	},
	{Name: "per-layer-table-unscaled", Page: "per-layer-scales", What: "the per-layer table is not scaled", at: []string{"embed_tokens_per_layer"}, is: leftOut(0)},
	{
		Name: "per-layer-table-by-width", Page: "per-layer-scales", What: "the per-layer table is scaled by √hidden_size", at: []string{"embed_tokens_per_layer"},
		when: func(c *order.Config) bool { return c.HiddenSize != c.Gemma3n.PerLayerWidth }, is: numberIs("constant", ofConfig(rootWidth)),
	},
	{
		Name: "per-layer-projection-unscaled", Page: "per-layer-scales", What: "the per-layer projection is not scaled", at: []string{"per_layer_model_projection.scaled"},
		is: leftOut(0),
	},
	{
		Name: "per-layer-sum-unscaled", Page: "per-layer-scales", What: "the sum of per-layer inputs is not divided by √2", at: []string{"per_layer_inputs"},
		is: numberIs("constant", just(1)),
	},
	{
		Name: "per-layer-everywhere", Page: "per-layer-streams", What: "the per-layer input is added to all streams", at: []string{"*.out=add_to_others"},
		is: editOf(edit.Edits.Wholes, valued(0)),
	},
	{
		Name: "per-layer-first", Page: "per-layer-streams", What: "the per-layer input is added only to the first stream", at: []string{"*.out=add_to_others"},
		is: editOf(edit.Edits.Wholes, valued(1)),
	},
}
