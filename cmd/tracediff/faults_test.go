package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
)

// fault is one deliberate mistake of a port: an entry whose tensor is replaced by a wrong one, made of others of the
// same run.
type fault struct {
	what   string
	golden string
	pass   int
	entry  string
	level2 string // where --level 2 first sees it; empty for the entry itself
	needs  []string
	make   func(f *faulty) []float32
}

// faulty is a run into which a fault is being planted.
type faulty struct {
	dtype hooks.DType          // of the run
	now   []float32            // the right tensor
	shape []int                // its shape
	seen  map[string][]float32 // what was needed, of this pass
	last  map[string][]float32 // and of the pass before
}

var faults = []fault{
	{
		what: "a constant: the per-layer inputs are not scaled by 1/√2", golden: "window", entry: "per_layer_inputs",
		make: func(f *faulty) []float32 { return f.each(func(_ int, v float32) float32 { return v * math.Sqrt2 }) },
	},
	{
		what: "the sparsity cutoff divides the variance by n−1", golden: "window", entry: "layers.0.mlp.gate_sparse",
		needs: []string{"layers.0.mlp.gate_proj"},
		make: func(f *faulty) []float32 {
			const width, z = 64, 1.6448535919189453
			gate := f.seen["layers.0.mlp.gate_proj"]
			return f.each(func(i int, _ float32) float32 {
				row := gate[i/width*width : (i/width+1)*width]
				var mean, square float64
				for _, v := range row {
					mean += float64(v) / width
				}
				for _, v := range row {
					square += (float64(v) - mean) * (float64(v) - mean)
				}
				return float32(math.Max(0, float64(gate[i])-mean-z*math.Sqrt(square/(width-1))))
			})
		},
	},
	{
		what: "the sliding window is one key too wide", golden: "window", entry: "layers.1.self_attn.scores_masked",
		level2: "layers.1.self_attn.probs", needs: []string{"layers.1.self_attn.scores"},
		make: func(f *faulty) []float32 {
			const window = 4
			scores, t, s := f.seen["layers.1.self_attn.scores"], f.shape[2], f.shape[3]
			return f.each(func(i int, v float32) float32 {
				if q, k := i/s%t, i%s; k == q-window {
					return scores[i]
				}
				return v
			})
		},
	},
	{
		what: "the activation is SiLU", golden: "hello", entry: "layers.1.mlp.act_fn", needs: []string{"layers.1.mlp.gate_sparse"},
		make: func(f *faulty) []float32 {
			x := f.seen["layers.1.mlp.gate_sparse"]
			return f.each(func(i int, _ float32) float32 { return float32(float64(x[i]) / (1 + math.Exp(-float64(x[i])))) })
		},
	},
	{
		what: "the norm of the values is left out", golden: "hello", entry: "layers.2.self_attn.v_norm", needs: []string{"layers.2.self_attn.v_proj"},
		make: func(f *faulty) []float32 { return f.seen["layers.2.self_attn.v_proj"] },
	},
	{
		what: "a decode step writes the key of the step before", golden: "decode", pass: 3, entry: "layers.2.self_attn.k_rope",
		needs: []string{"layers.2.self_attn.k_rope"},
		make:  func(f *faulty) []float32 { return f.last["layers.2.self_attn.k_rope"] },
	},
	{
		what: "1/√2 is missing after attention and LAUREL", golden: "control", entry: "layers.3.attn_laurel",
		make: func(f *faulty) []float32 { return f.each(func(_ int, v float32) float32 { return v * math.Sqrt2 }) },
	},
	{
		what: "one head of one token is zero", golden: "window", entry: "layers.3.self_attn.context",
		make: func(f *faulty) []float32 {
			const head, width = 8, 32
			return f.each(func(i int, v float32) float32 {
				if i/width == 2 && i%width/head == 1 {
					return 0
				}
				return v
			})
		},
	},
	{
		what: "LAUREL adds the input before its norm", golden: "hello", entry: "layers.4.laurel",
		needs: []string{"layers.4.active_prediction", "layers.4.laurel.post_laurel_norm"},
		make: func(f *faulty) []float32 {
			x, y := f.seen["layers.4.active_prediction"], f.seen["layers.4.laurel.post_laurel_norm"]
			return f.each(func(i int, _ float32) float32 { return x[i] + y[i] })
		},
	},
	{
		what: "a shared layer reads the keys of the wrong layer", golden: "window", entry: "layers.5.self_attn.keys",
		level2: "layers.5.self_attn.probs", needs: []string{"layers.1.self_attn.keys"},
		make: func(f *faulty) []float32 { return f.seen["layers.1.self_attn.keys"] },
	},
	{
		what: "the correction forgets its +1", golden: "decode", pass: 1, entry: "layers.6.altup.correct", needs: []string{"layers.6.altup.correct.innovation"},
		make: func(f *faulty) []float32 {
			n := f.seen["layers.6.altup.correct.innovation"]
			return f.each(func(i int, v float32) float32 { return v - n[i%len(n)] })
		},
	},
	{
		what: "an unembedding is used for two streams", golden: "control", entry: "altup_unembed_projections.1", needs: []string{"altup_unembed_projections.0"},
		make: func(f *faulty) []float32 { return f.seen["altup_unembed_projections.0"] },
	},
	{
		what: "the final softcap is left out", golden: "what", entry: "logits", needs: []string{"lm_head"},
		make: func(f *faulty) []float32 { return f.seen["lm_head"] },
	},
}

func (f *faulty) each(do func(i int, v float32) float32) []float32 {
	out := make([]float32, len(f.now))
	for i, v := range f.now {
		out[i] = do(i, v)
	}
	return out
}

// plant captures the golden's passes with the built-in model at level 3, one tensor of one pass replaced.
func (f fault) plant(t *testing.T, dir string) (local, reference string) {
	t.Helper()
	return plant(t, dir, hooks.F32, 3, f)
}

// plant captures the passes of the faults' golden with the built-in model, with all of them in it.
func plant(t *testing.T, dir string, dtype hooks.DType, level int, all ...fault) (local, reference string) {
	t.Helper()
	local, reference = filepath.Join(dir, "local.safetensors"), filepath.Join(dir, "reference.safetensors")
	data, err := fs.ReadFile(ondisk.Files(), "golden/gemma3n-tiny/"+all[0].golden+"."+dtype.String()+".safetensors")
	must(t, err)
	must(t, os.WriteFile(reference, data, 0o666))
	golden, err := capture.OpenReader(all[0].golden, bytes.NewReader(data), int64(len(data)))
	must(t, err)
	passes, err := golden.IDs()
	must(t, err)

	ck, list := openEmbedded(t)
	defer ck.Close()
	var reg hooks.Registry
	planted := 0
	for _, f := range all {
		f.register(t, &reg, &planted)
	}
	_, err = gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: ck, List: list, DType: dtype, Passes: passes, Path: local, Registry: &reg,
		Manifest: capture.Manifest{
			Producer: capture.Producer{Name: "a port with a bug"}, Model: "gemma3n-tiny", Weights: ck.Digest(), Scope: capture.Scope{Level: level},
		},
	})
	must(t, err)
	if planted != len(all) {
		t.Fatalf("planted %d times, want %d", planted, len(all))
	}
	return local, reference
}

// register has the tensor of a fault's entry replaced, once in the run.
func (f fault) register(t *testing.T, reg *hooks.Registry, planted *int) {
	t.Helper()
	state := &faulty{seen: map[string][]float32{}, last: map[string][]float32{}}
	for _, name := range f.needs {
		must(t, reg.Observe(name, func(e hooks.Event) error {
			state.last[name], state.seen[name] = state.seen[name], decoded(e.Tensor)
			return nil
		}))
	}
	must(t, reg.Replace(f.entry, func(e hooks.Event) (hooks.Tensor, error) {
		if e.Pass != f.pass {
			return hooks.Tensor{}, nil
		}
		*planted++
		state.dtype, state.now, state.shape = e.Tensor.DType, decoded(e.Tensor), e.Tensor.Shape
		if f.needs != nil && f.needs[0] == f.entry { // the observer has not seen this pass yet
			state.last = state.seen
		}
		return encoded(e.Tensor.DType, e.Tensor.Shape, f.make(state)), nil
	}))
}

func tokensOf(passes [][]int) string { return reference.FormatTokens(passes) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mismatchLine is a row of the table that says MISMATCH: its pass if the table has that column, and its name.
var mismatchLine = regexp.MustCompile(`(?m)^MISMATCH [A-Z]+\s+(?:(\d+)\s+)?([a-z][\w.]+)`)

// Each fault stops the comparison at exactly its entry, at level 2 at the first captured descendant, and nothing before
// it is flagged: the first row that says MISMATCH is the only one and the last.
func TestFaultsAreFoundWhereTheyAre(t *testing.T) {
	t.Parallel()
	layers := map[int]bool{}
	for _, f := range someFaults() {
		var layer int
		if n, _ := fmt.Sscanf(f.entry, "layers.%d.", &layer); n == 1 {
			layers[layer] = true
		}
		t.Run(f.what, func(t *testing.T) {
			local, reference := f.plant(t, t.TempDir())
			for level, want := range map[string]string{"3": f.entry, "2": f.level2} {
				if want == "" {
					want = f.entry
				}
				var out, errOut bytes.Buffer
				code := run([]string{"tracediff", "compare", "--table", local, reference, "--level", level}, nil, &out, &errOut)
				if code != exitMismatch {
					t.Fatalf("level %s: exit %d\n%s%s", level, code, out.String(), errOut.String())
				}
				rows := mismatchLine.FindAllStringSubmatch(out.String(), -1)
				if len(rows) != 1 || rows[0][2] != want || f.pass > 0 && rows[0][1] != fmt.Sprint(f.pass) {
					t.Errorf("level %s: stopped at %v, want pass %d %s\n%s", level, rows, f.pass, want, tail(out.String()))
				}
			}
		})
	}
	if len(faults) < 10 || len(layers) < min(5, len(someFaults())/2) {
		t.Errorf("%d faults in %d layers", len(faults), len(layers))
	}
}

// someFaults are every third of the faults, and all where TRACEDIFF_EVERY_FAULT is set: the gate looks at all.
func someFaults() []fault {
	if os.Getenv("TRACEDIFF_EVERY_FAULT") != "" {
		return faults
	}
	var some []fault
	for k := 0; k < len(faults); k += 3 {
		some = append(some, faults[k])
	}
	return some
}

// The same runs without a fault match: what stops the comparison is the fault.
func TestWithoutFaultsEverythingMatches(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"what", "hello", "window", "decode", "control"} {
		for _, dtype := range []string{"float32", "bfloat16"} {
			dir := t.TempDir()
			reference := filepath.Join(dir, "reference.safetensors")
			data, err := fs.ReadFile(ondisk.Files(), "golden/gemma3n-tiny/"+name+"."+dtype+".safetensors")
			must(t, err)
			must(t, os.WriteFile(reference, data, 0o666))
			var out, errOut bytes.Buffer
			args := []string{"tracediff", "compare", "--table", "--dir", dir, "--reference", reference, "--dtype", dtype, "--level", "3"}
			if code := run(args, nil, &out, &errOut); code != exitMatch {
				t.Errorf("%s %s: exit %d\n%s%s", name, dtype, code, tail(out.String()), errOut.String())
			}
		}
	}
}

// bugFixture is the trace of a port with a bug that the README compares: the window fault. -update makes it again.
const bugFixture = "../../fixtures/bugs/window-too-wide.float32.safetensors"

func TestBugFixture(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		if !strings.Contains(f.what, "window") {
			continue
		}
		local, reference := f.plant(t, t.TempDir())
		if *update {
			data, err := os.ReadFile(local)
			must(t, err)
			must(t, os.WriteFile(bugFixture, data, 0o666))
		}
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "compare", "--table", bugFixture, reference}, nil, &out, &errOut); code != exitMismatch {
			t.Errorf("exit %d\n%s", code, errOut.String())
		}
		if rows := mismatchLine.FindAllStringSubmatch(out.String(), -1); len(rows) != 1 || rows[0][2] != f.entry {
			t.Errorf("stopped at %v, want %s", rows, f.entry)
		}
		return
	}
	t.Error("no fault of the window")
}

// tail is the end of a report, where the divergence stands.
func tail(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
