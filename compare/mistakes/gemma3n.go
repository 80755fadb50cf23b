package mistakes

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// gemma3n has the mistakes of what only Gemma 3n has.
var gemma3n = []Mistake{
	{Name: "router-unscaled", Page: "altup-router", What: "the router's input is not scaled", at: []string{"*.router_input"}, edit: leftOut(0)},
	{Name: "router-linear", Page: "altup-router", What: "the router has no tanh", at: []string{"*.modalities"}, edit: leftOut(0)},
	{
		Name: "prediction-transposed", Page: "altup-coefficients", What: "the prediction coefficients are transposed", at: []string{"*.altup.predict"},
		edit: mapped(0, func(s *spot) program.Map {
			return program.Map{Kind: program.Weave, Axis: 2, N: s.m.List.Config.Gemma3n.AltUpStreams}
		}, nil),
	},
	{Name: "prediction-alone", Page: "altup-coefficients", What: "the streams are not added to their prediction", at: []string{"*.altup.predict"}, edit: skipped("sum", 0)},
	{Name: "correction-without-one", Page: "altup-coefficients", What: "the correction has no 1", at: []string{"*.altup.correct"}, edit: skipped("coefficient", 0)},
	{Name: "correction-unscaled", Page: "altup-coefficients", What: "the corrected stream is not scaled", at: []string{"*.altup.scale_corrected_output=scale_channels"}, edit: leftOut(0)},
	{
		Name: "coefficients-clipped", Page: "altup-coefficients", What: "coefficients are clipped, as in training", at: []string{"*.altup.prediction_coefs", "*.altup.correction_coefs"},
		when: func(c *order.Config) bool { return c.Gemma3n.AltUpCoefClip > 0 },
		edit: each(true, func(s *spot, w float64) float64 {
			most := s.m.List.Config.Gemma3n.AltUpCoefClip
			return max(-most, min(most, w))
		}),
	},
	{
		Name: "active-first", Page: "active-stream", What: "the first stream is taken for the active one", at: []string{"*.active_prediction", "*.altup.predict.router_norm"},
		when: func(c *order.Config) bool { return c.Gemma3n.AltUpActive != 0 },
		edit: func(s *spot) bool {
			v, ok := s.given(0)
			if !ok {
				return false
			}
			first := s.Take(s.Other(v), 0, 0)
			return s.reads(0, first) || s.entry.Op.Kind() == op.Identity{}.Kind() && s.put(first)
		},
	},
	{
		Name: "streams-unscaled", Page: "merging-the-streams", What: "streams are not brought to the magnitude of the first", at: []string{"altup.init"}, inputs: 1,
		edit: func(s *spot) bool {
			streams := []program.Var{s.Permute(s.In[0], -1, 0, 1, 2)}
			for k := 2; k < len(s.In); k += 2 {
				streams = append(streams, s.Permute(s.In[k], -1, 0, 1, 2))
			}
			return s.put(s.Cat(0, streams...))
		},
	},
	{Name: "streams-unscaled-back", Page: "merging-the-streams", What: "streams are merged without being scaled back", at: []string{"altup.final.stream.*"}, edit: leftOut(0)},
	{Name: "streams-summed", Page: "merging-the-streams", What: "streams are summed, not averaged", at: []string{"altup.final.mean"}, edit: skipped("mean", 0)},
	{
		Name: "floor-added", Page: "merging-the-streams", What: "the least magnitude is added", at: []string{"altup.*.magnitude.*"},
		edit: func(s *spot) bool {
			some := false
			for i := s.From; i < s.To; i++ {
				if s.p.Steps[i].Prim == program.Max {
					s.Become(i, program.Add, s.p.Steps[i].Args...)
					some = true
				}
			}
			return some
		},
	},
	{Name: "laurel-without-input", Page: "laurel", What: "LAUREL does not add its input", at: []string{"*.laurel=add"}, edit: leftOut(1)},
	{Name: "laurel-unscaled", Page: "laurel", What: "attention and LAUREL are not divided by √2", at: []string{"*.attn_laurel"}, edit: number("constant", is(1))},
	{
		Name: "per-layer-clamped", Page: "per-layer-rows", What: "ids beyond the per-layer table take its last row", at: []string{"embed_tokens_per_layer.lookup"},
		when:  func(c *order.Config) bool { return c.VocabSize > c.Gemma3n.PerLayerVocab },
		needs: func(c *order.Config) Needs { return Needs{ID: c.Gemma3n.PerLayerVocab} },
		edit:  positions(func(s *spot, id float64) float64 { return min(id, float64(s.m.List.Config.Gemma3n.PerLayerVocab-1)) }),
	},
	{
		Name: "per-layer-axes", Page: "per-layer-rows", What: "a per-layer row is read as [size, layers]", at: []string{"embed_tokens_per_layer.lookup"}, axes: 4, when: manyLayers,
		edit: result(func(s *spot, v program.Var) (program.Var, bool) {
			shape := s.shape()
			return s.Permute(s.Reshape(s.Held(v), shape[0], shape[1], shape[3], shape[2]), 0, 1, 3, 2), true
		}),
	},
	{
		Name: "per-layer-next", Page: "per-layer-rows", What: "layers take the per-layer input of the next", at: []string{"*.per_layer_input"}, inputs: 1, axes: 3, when: manyLayers,
		edit: func(s *spot) bool { return s.put(s.Take(s.In[0], 2, (s.entry.Layer+1)%s.m.List.Config.NumLayers)) },
	},
	{Name: "per-layer-table-unscaled", Page: "per-layer-scales", What: "the per-layer table is not scaled", at: []string{"embed_tokens_per_layer"}, edit: leftOut(0)},
	{
		Name: "per-layer-table-by-width", Page: "per-layer-scales", What: "the per-layer table is scaled by √hidden_size", at: []string{"embed_tokens_per_layer"},
		when: func(c *order.Config) bool { return c.HiddenSize != c.Gemma3n.PerLayerWidth }, edit: number("constant", func(s *spot, _ float64) float64 { return rootWidth(s) }),
	},
	{Name: "per-layer-projection-unscaled", Page: "per-layer-scales", What: "the per-layer projection is not scaled", at: []string{"per_layer_model_projection.scaled"}, edit: leftOut(0)},
	{
		Name: "per-layer-sum-unscaled", Page: "per-layer-scales", What: "the sum of per-layer inputs is not divided by √2", at: []string{"per_layer_inputs"},
		edit: number("constant", func(*spot, float64) float64 { return 1 }),
	},
	{
		Name: "per-layer-everywhere", Page: "per-layer-streams", What: "the per-layer input is added to all streams", at: []string{"*.out=add_to_others"}, inputs: 2,
		edit: func(s *spot) bool { return s.put(s.Add("", s.In[0], s.In[1])) },
	},
	{
		Name: "per-layer-first", Page: "per-layer-streams", What: "the per-layer input is added to the first stream alone", at: []string{"*.out=add_to_others"}, inputs: 2, axes: 1,
		edit: func(s *spot) bool {
			n := s.shape()[0]
			return s.put(s.Cat(0, s.Add("", s.Slice(s.In[0], 0, 0, 1), s.In[1]), s.Slice(s.In[0], 0, 1, n)))
		},
	},
}
