package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
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
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/plantedtest"
)

// run captures the passes of the flaw's golden with the built-in model, the fault in it, or without.
func (f *flaw) run(t *testing.T, healthy bool) (path string) {
	t.Helper()
	dtype := f.dtype
	if dtype == "" {
		dtype = "float32"
	}
	data, err := fs.ReadFile(ondisk.Files(), "golden/gemma3n-tiny/"+f.golden+".float32.safetensors")
	must(t, err)
	golden, err := capture.OpenReader(f.golden, bytes.NewReader(data), int64(len(data)))
	must(t, err)
	passes, err := golden.IDs()
	must(t, err)
	dir := t.TempDir()
	path = filepath.Join(dir, "local.safetensors")
	ck, list := openEmbedded(t)
	defer ck.Close()
	parsed, err := hooks.ParseDType(dtype)
	must(t, err)
	var reg hooks.Registry
	planted := 0
	if !healthy {
		f.register(t, &reg, &planted)
	}
	_, err = gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: ck, List: list, DType: parsed, Passes: passes, Path: path, Registry: &reg,
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
			state.seen[e.Name] = numbersOf(t, e.Tensor)
			return nil
		}))
	}
	must(t, reg.Replace(f.at, func(e hooks.Event) (hooks.Tensor, error) {
		if f.in != nil && !f.in(e.Pass) {
			return hooks.Tensor{}, nil
		}
		*planted++
		state.name, state.pass, state.now, state.shape = e.Name, e.Pass, numbersOf(t, e.Tensor), e.Tensor.Shape
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
	t.Parallel()
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

// A head in float32 on a body in bfloat16: the built-in model runs in bfloat16, and a port that widens behind the last norm
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

// An engine with another arithmetic, float32 inside attention and a ring buffer for a cache, is no worse for it.
func TestAnotherEngineHasNoFlag(t *testing.T) {
	for dir, dtypes := range map[string][]hooks.DType{"gemma3n-tiny": {hooks.F32}, "gemma3-tiny": {hooks.F32, hooks.BF16}} {
		for _, d := range dtypes {
			_, passes, ck, list := goldenFile(t, dir, "decode."+d.String())
			if code, doc := checked(t, (&otherEngine{list: list, dtype: d}).run(t, ck, passes)); code != exitMatch {
				t.Errorf("%s %s: %+v", dir, d, doc.Result.Flags)
			}
		}
	}
}

// What a port has in a file of its own names is not misread: scores that hide what comes by minus infinity, embeddings that were
// copied from weights, a batch with padding.
func TestOwnNamesAreNotMisread(t *testing.T) {
	if code, d := checked(t, "../../fixtures/steps/batch.safetensors"); code != exitMatch {
		t.Errorf("a batch of transformers: %+v", d.Result.Flags)
	}
	var scores []float64
	for _, spoilt := range []int{-1, 0, 1, 2} {
		path := filepath.Join(t.TempDir(), "own.safetensors")
		w, err := capture.Create(path, capture.Manifest{Producer: capture.Producer{Name: "a port"}}, 0)
		must(t, err)
		golden, _, ck, _ := goldenFile(t, "gemma3n-tiny", "window.float32")
		ck.Close()
		trace, err := capture.Open(golden)
		must(t, err)
		for _, r := range trace.Records() {
			layer, ok := strings.CutPrefix(r.Name, "layers.")
			layer, masked := strings.CutSuffix(layer, ".self_attn.scores_masked")
			if r.Pass > 0 || !(ok && masked) && r.Name != "embed_tokens" {
				continue
			}
			x, err := trace.Read(r)
			must(t, err)
			name := "token_embd"
			if r.Name != "embed_tokens" {
				name = "blk." + layer + ".kq_soft_in"
				scores = numbersOf(t, x)
				for i, y := range scores {
					if y < -1e30 {
						scores[i] = math.Inf(-1)
					}
				}
				keys := x.Shape[3]
				switch row := scores[3*keys : 4*keys]; spoilt { // of the first head
				case 0:
					row[3] = math.Inf(-1)
				case 1:
					row[5] = math.NaN()
				case 2:
					row[1], row[2] = math.Inf(-1), 0.5
					row[0] = 0.25
				}
				x = tensorOf(x.DType, x.Shape, scores)
			} else {
				x = tensorOf(x.DType, x.Shape, rounded(numbersOf(t, x)))
			}
			must(t, w.Observe(hooks.Event{Name: name, Tensor: x}))
		}
		must(t, errors.Join(trace.Close(), w.Close()))
		_, d := checked(t, path)
		if got := len(d.Result.Flags); got != min(spoilt+1, 1) || got == 1 && d.Result.Flags[0].Kind != redflag.NonFinite {
			t.Errorf("spoilt %d: %+v", spoilt, d.Result.Flags)
		}
	}
}

// rounded are numbers as bfloat16 has them.
func rounded(x []float64) []float64 {
	for i := range x {
		x[i] = floats.Round(hooks.BF16, x[i])
	}
	return x
}

// A port that dumps the last row of its logits alone is seen to choose the same token in every pass; a healthy one does not.
func TestTheSameTokenByLastRows(t *testing.T) {
	for _, tt := range []struct {
		what         string
		ids, spoilt  bool
		passes, want int
	}{
		{"a port that works", true, false, 7, 0},
		{"one row of the head outweighs all others", true, true, 7, 1},
		{"and its ids are not known", false, true, 9, 1},
		{"a few passes whose ids are not known", false, true, 7, 0},
	} {
		path := filepath.Join(t.TempDir(), "rows.safetensors")
		w, err := capture.Create(path, capture.Manifest{Producer: capture.Producer{Name: "a port"}}, 0)
		must(t, err)
		passes := [][]int{{2, 527, 906, 606}, {305}, {473}, {75}, {88}, {650}, {417}, {30}, {31}}[:tt.passes]
		ck, list := openEmbedded(t)
		var reg hooks.Registry
		must(t, reg.Observe("input_ids", func(e hooks.Event) error {
			if !tt.ids {
				return nil
			}
			return w.Observe(e)
		}))
		if tt.spoilt {
			must(t, reg.Replace("lm_head", func(e hooks.Event) (hooks.Tensor, error) {
				x := numbersOf(t, e.Tensor)
				for i := 7; i < len(x); i += e.Tensor.Shape[2] {
					x[i] += 400
				}
				return tensorOf(e.Tensor.DType, e.Tensor.Shape, x), nil
			}))
		}
		must(t, reg.Observe("logits", func(e hooks.Event) error {
			width := e.Tensor.Shape[2]
			x := numbersOf(t, e.Tensor)
			e.Tensor = tensorOf(e.Tensor.DType, []int{1, 1, width}, x[len(x)-width:])
			return w.Observe(e)
		}))
		model, err := gemma.New(ck, list, hooks.F32, &reg, gemma.All)
		must(t, err)
		_, err = model.Run(t.Context(), &reg, gemma.Input{Passes: passes, LastLayer: gemma.All})
		must(t, err)
		must(t, w.Close())
		ck.Close()
		_, d := checked(t, path)
		if len(d.Result.Flags) != tt.want || tt.want > 0 && (d.Result.Flags[0].Kind != redflag.ArgmaxSame || !strings.Contains(d.Result.Flags[0].What, "token 7")) {
			t.Errorf("%s: %+v", tt.what, d.Result.Flags)
		}
	}
}

// trainings are the traces of fixtures/training.py and what each mistake shows, the kind and the entry.
var trainings = map[string][][2]string{
	"healthy":    nil,
	"no-epsilon": {{"gradient-non-finite", "grad/embed.weight"}, {"non-finite", "loss"}},
	"dead-relu":  {{"gradient-zero", "grad/embed.weight"}, {"loss-plateau", "loss"}},
	"detached":   {{"gradient-missing", "grad/embed.weight"}},
	"no-rate":    {{"loss-plateau", "loss"}},
	"deep":       nil,
	"uphill":     {{"loss-rising", "loss"}},
	"too-fast":   {{"loss-rising", "loss"}, {"magnitude", "loss"}},
	"last-leap":  {{"loss-rising", "loss"}},
	"quarrel":    {{"loss-oscillating", "loss"}},
	"vanishing":  {{"gradient-vanishing", "grad/embed.weight"}},
	"exploding":  {{"gradient-exploding", "grad/embed.weight"}, {"gradient-non-finite", "grad/embed.weight"}, {"non-finite", "loss"}},
	// One forward pass in bfloat16, with its weights.
	"narrow-weights": nil,
	"wide-weights":   {{"weight-dtype", "embed.weight"}},
	// The second once more, in a file of the official safetensors package, which sorts its tensors and says nothing of itself.
	"official": {{"gradient-non-finite", "grad/embed.weight"}, {"non-finite", "loss"}},
}

// The traces of a training loop that the repository has raise the flags of what is wrong with it.
func TestTrainingIsFlagged(t *testing.T) { trainingIsFlagged(t, "../../fixtures/training") }

// So do those that .ci/run has trained anew.
func TestNewTrainingIsFlagged(t *testing.T) {
	dir := os.Getenv("TRACEDIFF_TRAINING")
	if dir == "" {
		t.Skip("needs TRACEDIFF_TRAINING: the folder that python fixtures/training.py makes")
	}
	trainingIsFlagged(t, dir)
}

func trainingIsFlagged(t *testing.T, dir string) {
	t.Helper()
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

// Every kind is raised by a fault that was really there: in the built-in model, or in a training loop of torch.
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

// transformed are faults of fixtures/faults that raise a flag, and which.
var transformed = map[string]redflag.Kind{
	"softmax-axis": redflag.ProbabilitySum, "softmax-in-bfloat16": redflag.NarrowValues, "keys-unwritten": redflag.CacheZero,
	"rope-decode-position": redflag.RotaryZero, "rope-missing": redflag.RopeUnchanged, "rope-before-norm": redflag.RopeUnchanged,
	"rope-angles-cached": redflag.RotaryFrozen, "softmax-over-unwritten": redflag.ProbabilitySum, "mask-row-empty": redflag.NonFinite,
	"per-layer-branch-zero": redflag.Zero, "correction-not-finite": redflag.NonFinite,
	"linear-in-bfloat16": redflag.NarrowValues, "residual-in-float16": redflag.NarrowValues,
}

// flaggedBehind are those of them that are flagged at an entry that is right: what is finite and wrong makes NaN there.
var flaggedBehind = map[string]string{"mask-row-empty": "layers.0.self_attn.probs_f32"}

// In patched runs of transformers the same faults raise the same flags, at an entry that is guilty, and of the other faults,
// which change numbers and not what they are, none raises any. Nor does a healthy run.
func TestFaultsInTransformersAreFlagged(t *testing.T) {
	dir := plantedtest.Folder(t)
	seen := map[string]int{}
	healthy := map[string]bool{}
	for _, f := range plantedtest.Read(t, dir) {
		if !healthy[f.Reference] {
			healthy[f.Reference] = true
			if code, d := checked(t, filepath.Join(dir, f.Reference)); code != exitMatch {
				t.Errorf("%s: %+v", f.Reference, d.Result.Flags)
			}
		}
		_, d := checked(t, filepath.Join(dir, f.File))
		want, wanted := transformed[f.Name]
		at := slices.IndexFunc(d.Result.Flags, func(g redflag.Flag) bool { return g.Kind == want })
		if !wanted && len(d.Result.Flags) > 0 || wanted && at < 0 {
			t.Errorf("%s: %+v", f.File, d.Result.Flags)
			continue
		}
		if wanted {
			seen[f.Name]++
			g, guilty := d.Result.Flags[at], false
			for _, e := range f.Guilty {
				guilty = guilty || g.Pass == e.Pass && g.Entry == e.Name
			}
			if behind := flaggedBehind[f.Name]; g.Pass != f.Guilty[0].Pass || guilty == (behind != "") || behind != "" && g.Entry != behind {
				t.Errorf("%s: %+v, guilty is %s in pass %d", f.File, g, f.Guilty[0].Name, f.Guilty[0].Pass)
			}
		}
	}
	if len(seen) != len(transformed) || len(healthy) < 5 {
		t.Errorf("%v of %v were looked at, and %d healthy runs", seen, transformed, len(healthy))
	}
}
