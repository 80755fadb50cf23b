package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// A flaw is a fault that tracediff check has to see: tensors that are replaced while the local model runs, which goes on
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

// fill gives every element one number.
func fill(y float64) func(*flawed) []float64 {
	return func(f *flawed) []float64 { return f.each(func(int, float64) float64 { return y }) }
}

// times multiplies every element.
func times(y float64) func(*flawed) []float64 {
	return func(f *flawed) []float64 { return f.each(func(_ int, x float64) float64 { return x * y }) }
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
		kind: redflag.Zero, what: "a kernel does not run", golden: "hello", at: "layers.1.self_attn.v_proj", make: fill(0),
		also: []redflag.Kind{redflag.CacheZero},
	},
	{
		kind: redflag.Constant, what: "a buffer has its initial value", golden: "hello", dtype: "bfloat16", at: "layers.0.mlp.up_proj", make: fill(1),
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
		kind: redflag.RotaryZero, what: "positions are all 0", golden: "window", at: "position_ids", make: fill(0), entry: "rotary.sliding.sin",
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

// run captures the passes of the flaw's golden with the local model, the fault in it, or without.
func (f *flaw) run(t *testing.T, healthy bool) (path string) {
	t.Helper()
	dtype := f.dtype
	if dtype == "" {
		dtype = "float32"
	}
	data, err := fs.ReadFile(fixtures.Files, "golden/gemma3n-tiny/"+f.golden+".float32.safetensors")
	must(t, err)
	golden, err := capture.OpenReader(f.golden, bytes.NewReader(data), int64(len(data)))
	must(t, err)
	passes, err := golden.IDs()
	must(t, err)
	dir := t.TempDir()
	path = filepath.Join(dir, "local.safetensors")
	j, err := openJob(settings{Tokens: tokensOf(passes), DType: dtype, Scope: capture.Scope{Level: 3}}, dir)
	must(t, err)
	defer j.ck.Close()
	var reg hooks.Registry
	planted := 0
	if !healthy {
		f.register(t, &reg, &planted)
	}
	_, err = gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: j.ck, List: j.list, DType: j.dtype, Passes: j.passes, Path: path, Registry: &reg,
		Manifest: capture.Manifest{Producer: capture.Producer{Name: "a port with a bug"}, Model: "gemma3n-tiny", Scope: capture.Scope{Level: 3}},
	})
	must(t, err)
	if !healthy && planted == 0 {
		t.Fatal("the fault was not put in")
	}
	return path
}

func (f *flaw) register(t *testing.T, reg *hooks.Registry, planted *int) {
	t.Helper()
	state := &flawed{seen: map[string][]float64{}, first: map[string][]float64{}}
	for _, name := range f.needs {
		must(t, reg.Observe(name, func(e hooks.Event) error {
			state.seen[name] = numbersOf(t, e.Tensor)
			return nil
		}))
	}
	must(t, reg.Replace(f.at, func(e hooks.Event) (hooks.Tensor, error) {
		if f.in != nil && !f.in(e.Pass) {
			return hooks.Tensor{}, nil
		}
		*planted++
		state.pass, state.now, state.shape = e.Pass, numbersOf(t, e.Tensor), e.Tensor.Shape
		return tensorOf(e.Tensor.DType, e.Tensor.Shape, f.make(state)), nil
	}))
}

func numbersOf(t *testing.T, x hooks.Tensor) []float64 {
	t.Helper()
	out := make([]float64, len(x.Data)/x.DType.Size())
	must(t, floats.Decode(out, x.DType, x.Data))
	return out
}

func tensorOf(d hooks.DType, shape []int, x []float64) hooks.Tensor {
	out := hooks.Tensor{DType: d, Shape: shape}
	le := binary.LittleEndian
	for _, y := range x {
		switch d {
		case hooks.I64:
			out.Data = le.AppendUint64(out.Data, uint64(int64(y)))
		case hooks.BF16:
			out.Data = le.AppendUint16(out.Data, floats.BF16(float32(y)))
		case hooks.F16:
			out.Data = le.AppendUint16(out.Data, floats.F16(float32(y)))
		default:
			out.Data = le.AppendUint32(out.Data, math.Float32bits(float32(y)))
		}
	}
	return out
}

// checked runs tracediff check and returns what it says.
func checked(t *testing.T, args ...string) (code int, d report.CheckDocument) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(append([]string{"tracediff", "check", "--format", "json"}, args...), nil, &out, &errOut)
	if errOut.Len() > 0 {
		t.Fatal(errOut.String())
	}
	must(t, json.Unmarshal(out.Bytes(), &d))
	if (code == exitMismatch) != (len(d.Result.Flags) > 0) || d.Exit != code {
		t.Fatalf("exit %d with %d flags, %d in the document", code, len(d.Result.Flags), d.Exit)
	}
	return code, d
}

// Each fault raises its flag where it is, and no flag of another kind than it is known to show.
func TestFlawsAreFlagged(t *testing.T) {
	for _, f := range flaws {
		t.Run(string(f.kind)+": "+f.what, func(t *testing.T) {
			if f.entry == "" {
				f.entry = f.at
			}
			code, d := checked(t, f.run(t, false))
			if code != exitMismatch {
				t.Fatal("no flag is raised")
			}
			at := slices.IndexFunc(d.Result.Flags, func(g redflag.Flag) bool { return g.Kind == f.kind })
			if at < 0 {
				t.Fatalf("flags: %+v", d.Result.Flags)
			}
			if g := d.Result.Flags[at]; g.Entry != f.entry || g.Pass != f.pass || len(g.Numbers) == 0 || g.What == "" || g.Means == "" || g.Try == "" {
				t.Errorf("%+v, want it at %s in pass %d", g, f.entry, f.pass)
			}
			for _, g := range d.Result.Flags {
				if g.Kind != f.kind && !slices.Contains(f.also, g.Kind) {
					t.Errorf("%s of %s in pass %d too: %s", g.Kind, g.Entry, g.Pass, g.What)
				}
			}
		})
	}
}

// A head in float32 on a body in bfloat16: the local model runs in bfloat16, and a port that widens behind the last norm
// writes down what its head makes of it.
func TestHeadInFloat32IsFlagged(t *testing.T) {
	golden, passes, ck, list := goldenFile(t, "gemma3n-tiny", "hello.bfloat16")
	if code, d := checked(t, golden); code != exitMatch {
		t.Fatalf("the golden has flags: %+v", d.Result.Flags)
	}
	table, ok := ck.Tensor("embed_tokens.weight")
	if !ok {
		t.Fatal("no table")
	}
	head := numbersOf(t, table)
	width := table.Shape[1]
	path := filepath.Join(t.TempDir(), "local.safetensors")
	scope, tokens := capture.Scope{Level: 3}, []int{len(passes[0])}
	w, err := capture.Create(path, capture.Manifest{
		Producer: capture.Producer{Name: "a port"}, Config: list.Config.Canonical(), Scope: scope, DType: hooks.BF16, Passes: 1,
	}, capture.Reserve(list, scope, tokens))
	must(t, err)
	var norm []float64
	var reg hooks.Registry
	must(t, capture.Attach(&reg, func(e hooks.Event) error {
		switch e.Name {
		case "norm":
			norm = numbersOf(t, e.Tensor)
		case "lm_head", "logits":
			wide := make([]float64, len(e.Tensor.Data)/2)
			for i := range wide {
				for k := range width {
					wide[i] += head[i%table.Shape[0]*width+k] * norm[i/table.Shape[0]*width+k]
				}
				if limit := list.Config.FinalSoftcap; e.Name == "logits" {
					wide[i] = limit * math.Tanh(wide[i]/limit)
				}
			}
			e.Tensor = tensorOf(hooks.F32, e.Tensor.Shape, wide)
		}
		return w.Observe(e)
	}, list, scope, tokens))
	model, err := gemma.New(ck, list, hooks.BF16, &reg, gemma.All)
	must(t, err)
	_, err = model.Run(t.Context(), &reg, gemma.Input{Passes: passes, LastLayer: gemma.All})
	must(t, err)
	must(t, w.Close())
	_, d := checked(t, path)
	if len(d.Result.Flags) != 1 {
		t.Fatalf("flags: %+v", d.Result.Flags)
	}
	g := d.Result.Flags[0]
	want := "it is float32, norm before it is bfloat16: most of the model is bfloat16"
	if g.Kind != redflag.DTypeChange || g.Entry != "lm_head" || g.What != want || !slices.Equal(g.Also, []string{"logits"}) {
		t.Errorf("%+v", g)
	}
}

// trainings are the traces of fixtures/training.py and what each mistake shows, the kind and the entry.
var trainings = map[string][][2]string{
	"healthy":    nil,
	"no-epsilon": {{"gradient-non-finite", "grad/embed.weight"}, {"non-finite", "loss"}},
	"dead-relu":  {{"gradient-zero", "grad/embed.weight"}, {"loss-plateau", "loss"}},
	"detached":   {{"gradient-missing", "grad/embed.weight"}},
	"no-rate":    {{"loss-plateau", "loss"}},
}

// The traces of a training loop raise the flags of what is wrong with it, those of the repository and, where .ci/run has
// trained anew, those.
func TestTrainingIsFlagged(t *testing.T) {
	folders := []string{"../../fixtures/training"}
	if dir, set := os.LookupEnv("TRACEDIFF_TRAINING"); set {
		folders = append(folders, dir)
	}
	for _, dir := range folders {
		for name, want := range trainings {
			_, d := checked(t, filepath.Join(dir, name+".safetensors"))
			var got [][2]string
			for _, g := range d.Result.Flags {
				got = append(got, [2]string{string(g.Kind), g.Entry})
			}
			slices.SortFunc(got, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
			if !slices.Equal(got, want) {
				t.Errorf("%s/%s: %v, want %v", dir, name, got, want)
			}
		}
	}
}

// Every kind is raised by a fault that was really there: in the local model, or in a training loop of torch.
func TestEveryKindIsRaised(t *testing.T) {
	raised := map[redflag.Kind]bool{redflag.DTypeChange: true} // TestHeadInFloat32IsFlagged
	for _, f := range flaws {
		raised[f.kind] = true
	}
	for _, flags := range trainings {
		for _, g := range flags {
			raised[redflag.Kind(g[0])] = true
		}
	}
	for _, a := range redflag.Kinds {
		if !raised[a.Kind] {
			t.Errorf("no fault raises %s", a.Kind)
		}
	}
}
