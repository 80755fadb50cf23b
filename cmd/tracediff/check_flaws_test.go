package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// A flaw is a fault that tracediff check has to see: tensors that are replaced while the built-in model runs, which goes on
// with them.
type flaw struct {
	kind   redflag.Kind
	what   string
	golden string // of gemma3n-tiny, whose passes are run
	dtype  string // float32 where it is empty
	at     string // what is replaced, a name or a pattern
	in     func(pass int) bool
	needs  []string
	make   func(f *flawed) []float64
	entry  string // where the flag is raised first; empty for at
	pass   int
	also   []redflag.Kind // what else the fault shows
}

// flawed is a run into which a fault is being put.
type flawed struct {
	name  string
	pass  int
	now   []float64
	shape []int
	seen  map[string][]float64 // what was needed, of this pass
	first map[string][]float64 // what was kept, of the first pass in which it was
}

func (f *flawed) each(do func(i int, x float64) float64) []float64 {
	out := make([]float64, len(f.now))
	for i, x := range f.now {
		out[i] = do(i, x)
	}
	return out
}

// filledWith gives every element one number.
func filledWith(y float64) func(*flawed) []float64 {
	return func(f *flawed) []float64 { return f.each(func(int, float64) float64 { return y }) }
}

// times multiplies every element.
func times(y float64) func(*flawed) []float64 {
	return func(f *flawed) []float64 { return f.each(func(_ int, x float64) float64 { return x * y }) }
}

// ofHead replaces the elements of one head, [.., heads, T, X].
func ofHead(head int, do func(f *flawed, i int, x float64) float64) func(*flawed) []float64 {
	return func(f *flawed) []float64 {
		heads, rows, width := f.shape[1], f.shape[2], f.shape[3]
		return f.each(func(i int, x float64) float64 {
			if i/width/rows%heads != head {
				return x
			}
			return do(f, i, x)
		})
	}
}

// onlyKey has one head of some layers, all for nil, give everything to one key: by the slot of the token itself, which is the last one of
// the last query.
func onlyKey(head int, layers []int, key func(own int) int) func(*flawed) []float64 {
	return func(f *flawed) []float64 {
		var layer int
		if _, err := fmt.Sscanf(f.name, "layers.%d.", &layer); err != nil {
			panic(err)
		}
		return ofHead(head, func(f *flawed, i int, x float64) float64 {
			queries, keys := f.shape[2], f.shape[3]
			switch own := keys - queries + i/keys%queries; {
			case layers != nil && !slices.Contains(layers, layer):
				return x
			case i%keys == key(own):
				return 1
			}
			return 0
		})(f)
	}
}

func decoding(pass int) bool { return pass > 0 }

// keep returns what the first call was given, for a buffer that is not written again.
func (f *flawed) keep(name string, x []float64) []float64 {
	if f.first[name] == nil {
		f.first[name] = slices.Clone(x)
	}
	return f.first[name]
}

var flaws = []flaw{
	{
		kind: redflag.NonFinite, what: "a row of the mask hides every key, by minus infinity", golden: "window", at: "mask.full",
		entry: "layers.2.self_attn.probs_f32",
		make: func(f *flawed) []float64 {
			keys := f.shape[3]
			return f.each(func(i int, x float64) float64 {
				if i/keys == 5 {
					return math.Inf(-1)
				}
				return x
			})
		},
	},
	{
		kind: redflag.Zero, what: "a kernel does not run", golden: "hello", at: "layers.1.self_attn.v_proj", make: filledWith(0),
		also: []redflag.Kind{redflag.CacheZero},
	},
	{
		kind: redflag.Constant, what: "a buffer has its initial value", golden: "hello", dtype: "bfloat16", at: "layers.0.mlp.up_proj", make: filledWith(1),
	},
	{
		kind: redflag.Magnitude, what: "a weight in another unit", golden: "decode", dtype: "bfloat16", at: "layers.1.mlp.down_proj", make: times(4096),
	},
	{
		kind: redflag.Overflow, what: "a product that comes near the end of float16", golden: "hello", dtype: "float16", at: "layers.3.mlp.up_proj",
		make: func(f *flawed) []float64 {
			most := 0.
			for _, x := range f.now {
				most = max(most, math.Abs(x))
			}
			return times(20000 / most)(f)
		},
		also: []redflag.Kind{redflag.Magnitude},
	},
	{
		kind: redflag.NarrowValues, what: "a buffer of bfloat16 in a float32 model", golden: "hello", at: "layers.2.mlp.down_proj",
		make: func(f *flawed) []float64 {
			return f.each(func(_ int, x float64) float64 { return floats.Round(hooks.BF16, x) })
		},
	},
	{
		kind: redflag.ProbabilitySum, what: "the softmax runs over the queries", golden: "hello", at: "layers.1.self_attn.probs_f32",
		needs: []string{"layers.1.self_attn.scores_masked"},
		make: func(f *flawed) []float64 {
			scores, queries, keys := f.seen["layers.1.self_attn.scores_masked"], f.shape[2], f.shape[3]
			return f.each(func(i int, _ float64) float64 {
				first, sum := i-i/keys%queries*keys, 0. // the first query of this head that has this key
				for q := range queries {
					sum += math.Exp(scores[first+q*keys] - scores[i])
				}
				return 1 / sum
			})
		},
	},
	{
		kind: redflag.ProbabilitySum, what: "the softmax is not divided by its sum", golden: "window", dtype: "bfloat16", at: "layers.1.self_attn.probs_f32",
		needs: []string{"layers.1.self_attn.scores_masked"},
		make: func(f *flawed) []float64 {
			scores, keys := f.seen["layers.1.self_attn.scores_masked"], f.shape[3]
			return f.each(func(i int, _ float64) float64 {
				row := scores[i/keys*keys : (i/keys+1)*keys]
				return math.Exp(scores[i] - slices.Max(row))
			})
		},
	},
	{
		kind: redflag.AttentionUniform, what: "the scale of the scores is 0", golden: "window", at: "layers.4.self_attn.scores", make: times(0),
		entry: "layers.4.self_attn.probs_f32", also: []redflag.Kind{redflag.Zero},
	},
	{
		kind: redflag.AttentionStuck, what: "only the first key was written where it belongs", golden: "window", at: "layers.2.self_attn.scores",
		make: func(f *flawed) []float64 {
			return f.each(func(i int, x float64) float64 {
				if i%f.shape[3] == 0 {
					return x + 500
				}
				return x
			})
		},
		entry: "layers.2.self_attn.probs_f32",
	},
	{
		kind: redflag.AttentionUniform, what: "one head of every layer has no scores", golden: "window", at: "layers.*.self_attn.scores",
		make:  ofHead(2, func(*flawed, int, float64) float64 { return 0 }),
		entry: "layers.0.self_attn.probs_f32", also: []redflag.Kind{redflag.Zero},
	},
	{
		kind: redflag.Zero, what: "one head of one layer has no scores", golden: "hello", at: "layers.3.self_attn.scores",
		make: ofHead(1, func(*flawed, int, float64) float64 { return 0 }),
	},
	{
		kind: redflag.AttentionUniform, what: "the last row of the scores is not written", golden: "window", at: "layers.*.self_attn.scores",
		make: func(f *flawed) []float64 {
			return f.each(func(i int, x float64) float64 {
				if i/f.shape[3]%f.shape[2] == f.shape[2]-1 {
					return 0
				}
				return x
			})
		},
		entry: "layers.0.self_attn.probs_f32",
	},
	{
		kind: redflag.AttentionStuck, what: "one head of every layer looks at key 0 alone", golden: "decode", at: "layers.*.self_attn.probs_f32",
		make: ofHead(3, func(f *flawed, i int, _ float64) float64 {
			if i%f.shape[3] == 0 {
				return 1
			}
			return 0
		}),
		entry: "layers.0.self_attn.probs_f32",
	},
	{
		kind: redflag.AttentionStuck, what: "one head of every sliding layer looks at the oldest key of its window", golden: "window", at: "layers.*.self_attn.probs_f32",
		make:  onlyKey(3, []int{0, 1, 3, 5}, func(own int) int { return max(own-3, 0) }),
		entry: "layers.0.self_attn.probs_f32",
	},
	{
		kind: redflag.AttentionStuck, what: "one head looks at the oldest key that it sees, in decode steps too", golden: "decode", dtype: "bfloat16", at: "layers.*.self_attn.probs_f32",
		make:  onlyKey(1, nil, func(own int) int { return max(own-3, 0) }),
		entry: "layers.0.self_attn.probs_f32",
	},
	{
		kind: redflag.AttentionStuck, what: "one head of every full layer looks at key 0 alone", golden: "window", at: "layers.*.self_attn.probs_f32",
		make:  onlyKey(3, []int{2, 4, 6}, func(int) int { return 0 }),
		entry: "layers.2.self_attn.probs_f32",
	},
	{
		kind: redflag.RopeUnchanged, what: "one head of every layer is not turned", golden: "decode", dtype: "bfloat16", at: "layers.*.self_attn.q_rope",
		needs: []string{"layers.*.self_attn.q_norm"},
		make: ofHead(2, func(f *flawed, i int, _ float64) float64 {
			heads, tokens, width := f.shape[1], f.shape[2], f.shape[3]
			h, t := i/width/tokens, i/width%tokens
			return f.seen[strings.Replace(f.name, "q_rope", "q_norm", 1)][(t*heads+h)*width+i%width]
		}),
		entry: "layers.0.self_attn.q_rope",
	},
	{
		kind: redflag.AttentionRepeated, what: "the graph of the first step is used again", golden: "decode", dtype: "bfloat16", at: "layers.3.self_attn.probs_f32", in: decoding,
		make: func(f *flawed) []float64 { return f.keep("probs", f.now) }, pass: 2,
	},
	{
		kind: redflag.ContextIgnored, what: "the mask of a step hides the cache", golden: "decode", at: "layers.0.self_attn.scores_masked", in: decoding,
		make: func(f *flawed) []float64 {
			return f.each(func(i int, x float64) float64 {
				if keys := f.shape[3]; i%keys < keys-1 {
					return -math.MaxFloat32
				}
				return x
			})
		},
		entry: "layers.0.self_attn.probs_f32", pass: 1, also: []redflag.Kind{redflag.AttentionRepeated, redflag.Constant},
	},
	{
		kind: redflag.RopeUnchanged, what: "queries are not turned", golden: "window", dtype: "bfloat16", at: "layers.1.self_attn.q_rope",
		needs: []string{"layers.1.self_attn.q_norm"},
		make: func(f *flawed) []float64 {
			x, heads, tokens, width := f.seen["layers.1.self_attn.q_norm"], f.shape[1], f.shape[2], f.shape[3]
			return f.each(func(i int, _ float64) float64 {
				h, t := i/width/tokens, i/width%tokens
				return x[(t*heads+h)*width+i%width]
			})
		},
	},
	{
		kind: redflag.RotaryZero, what: "positions are all 0", golden: "window", at: "position_ids", make: filledWith(0), entry: "rotary.sliding.sin",
		also: []redflag.Kind{redflag.RopeUnchanged},
	},
	{
		kind: redflag.RotaryFrozen, what: "a decode step does not advance the position", golden: "decode", dtype: "bfloat16", at: "position_ids", in: decoding,
		make: func(f *flawed) []float64 { return f.keep("position", f.now) }, entry: "rotary.sliding.sin", pass: 2,
	},
	{
		kind: redflag.CacheZero, what: "a slot of the cache is read before it is written", golden: "decode", at: "layers.2.self_attn.values",
		in: func(pass int) bool { return pass == 3 },
		make: func(f *flawed) []float64 {
			return f.each(func(i int, x float64) float64 {
				if s := i / f.shape[3] % f.shape[2]; s == 1 {
					return 0
				}
				return x
			})
		},
		pass: 3,
	},
	{
		kind: redflag.HiddenStatic, what: "a layer is skipped", golden: "hello", dtype: "bfloat16", at: "layers.3.out", needs: []string{"layers.3.in"},
		make: func(f *flawed) []float64 { return f.seen["layers.3.in"] },
	},
	{
		kind: redflag.TokensIdentical, what: "one row is broadcast over all tokens", golden: "hello", at: "embed_tokens",
		make: func(f *flawed) []float64 {
			width := f.shape[2]
			return f.each(func(i int, _ float64) float64 { return f.now[i%width] })
		},
	},
	{
		kind: redflag.ArgmaxSame, what: "one row of the head outweighs all others", golden: "decode", at: "lm_head",
		make: func(f *flawed) []float64 {
			return f.each(func(i int, x float64) float64 {
				if i%f.shape[2] == 7 {
					return x + 400
				}
				return x
			})
		},
		entry: "logits",
	},
	{
		kind: redflag.ArgmaxSame, what: "the buffer of the logits is not written again", golden: "decode", dtype: "bfloat16", at: "logits",
		make: func(f *flawed) []float64 {
			width := f.shape[2]
			last := f.keep("logits", f.now[len(f.now)-width:])
			return append(slices.Clone(f.now[:len(f.now)-width]), last...)
		},
	},
}
