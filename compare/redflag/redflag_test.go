package redflag_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
)

// tensor makes a tensor of a dtype, each number rounded to it.
func tensor(d hooks.DType, shape []int, x []float64) hooks.Tensor {
	out := hooks.Tensor{DType: d, Shape: shape}
	for _, y := range x {
		switch y = floats.Round(d, y); d {
		case hooks.BF16:
			out.Data = binary.LittleEndian.AppendUint16(out.Data, floats.BF16(float32(y)))
		case hooks.F16:
			out.Data = binary.LittleEndian.AppendUint16(out.Data, floats.F16(float32(y)))
		case hooks.F32:
			out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(float32(y)))
		default:
			panic(d)
		}
	}
	return out
}

// softmax computes rows as engines do: in float32, by a sum from left to right.
func softmax(scores []float64, keys int) []float64 {
	out := make([]float64, len(scores))
	for at := 0; at < len(scores); at += keys {
		row := scores[at : at+keys]
		most, sum := slices.Max(row), float32(0)
		for i, x := range row {
			e := float32(math.Exp(x - most))
			out[at+i] = float64(e)
			sum += e
		}
		for i := range row {
			out[at+i] = float64(float32(out[at+i]) / sum)
		}
	}
	return out
}

// write writes a trace of some tensors of pass 0 and opens it.
func write(t testing.TB, dir string, tensors map[string]hooks.Tensor) *capture.Trace {
	t.Helper()
	path := filepath.Join(dir, "trace.safetensors")
	w, err := capture.Create(path, capture.Manifest{Producer: capture.Producer{Name: "a test"}, Scope: capture.Scope{Level: 3}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range tensors {
		if err := w.Observe(hooks.Event{Name: name, Tensor: x}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	trace, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Whatever the scores, the keys and the dtype, a softmax in float32 that is rounded once sums to 1, and one that is off by
// three times the tolerance does not.
func TestSumsOfProbabilities(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.SampledFrom([]hooks.DType{hooks.F32, hooks.BF16, hooks.F16}).Draw(rt, "dtype")
		keys := rapid.SampledFrom([]int{1, 2, 7, 64, 1000, 20000}).Draw(rt, "keys")
		scale := rapid.SampledFrom([]float64{0, 0.1, 1, 10, 300}).Draw(rt, "scale")
		seed := rapid.Uint64().Draw(rt, "seed")
		scores := make([]float64, 2*keys)
		for i := range scores { // of a linear congruence: rapid would draw each
			seed = seed*6364136223846793005 + 1442695040888963407
			scores[i] = scale * (float64(seed>>11)/(1<<53) - 0.5)
		}
		p := softmax(scores, keys)
		raised := func() bool {
			trace := write(t, dir, map[string]hooks.Tensor{"layers.0.self_attn.probs": tensor(d, []int{1, 1, 2, keys}, p)})
			defer trace.Close()
			return slices.ContainsFunc(check(t, trace, redflag.Options{}).Flags, func(f redflag.Flag) bool { return f.Kind == redflag.ProbabilitySum })
		}
		if raised() {
			rt.Fatalf("%s, %d keys, scale %g: a right softmax is flagged", d, keys, scale)
		}
		for i := range p {
			p[i] *= 0.9
		}
		if !raised() {
			rt.Fatalf("%s, %d keys, scale %g: a sum of 0.9 is not flagged", d, keys, scale)
		}
	})
}

// Memory is bounded whatever the size of a tensor, in all checks: here of probabilities, of logits and of two states.
func TestMemoryDoesNotGrowWithTensors(t *testing.T) {
	const size = 64 << 20 // bytes of each tensor, holes in the file
	path := filepath.Join(t.TempDir(), "large.safetensors")
	header := `{"layers.0.self_attn.probs":{"dtype":"F32","shape":[1,16,1024,1024],"data_offsets":[0,67108864]},` +
		`"layers.0.in":{"dtype":"F32","shape":[1,4096,4096],"data_offsets":[67108864,134217728]},` +
		`"layers.0.out":{"dtype":"F32","shape":[1,4096,4096],"data_offsets":[134217728,201326592]},` +
		`"logits":{"dtype":"F32","shape":[1,64,262144],"data_offsets":[201326592,268435456]}}`
	header += strings.Repeat(" ", -len(header)&7)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	head := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	if _, err = f.Write(head); err == nil {
		err = errors.Join(f.Truncate(int64(len(head))+4*size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	trace, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := check(t, trace, redflag.Options{})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d MiB were allocated to check 256 MiB", used>>20)
	}
	if at := slices.IndexFunc(r.Flags, func(f redflag.Flag) bool { return f.Kind == redflag.Zero }); at < 0 || len(r.Flags[at].Also) != 3 {
		t.Errorf("four tensors are zero: %+v", r.Flags)
	}
}

// What is not wanted is not looked for, and a larger limit raises nothing.
func TestOptions(t *testing.T) {
	large := make([]float64, 100)
	for i := range large {
		large[i] = 5000 + math.Sqrt(float64(i))
	}
	trace := write(t, t.TempDir(), map[string]hooks.Tensor{"layers.0.mlp.down_proj": tensor(hooks.F32, []int{1, 10, 10}, large)})
	defer trace.Close()
	kinds := func(o redflag.Options) (raised []redflag.Kind) {
		for _, f := range check(t, trace, o).Flags {
			raised = append(raised, f.Kind)
		}
		return raised
	}
	if got := kinds(redflag.Options{}); !slices.Equal(got, []redflag.Kind{redflag.Magnitude}) {
		t.Errorf("flags %v, want magnitude", got)
	}
	if got := kinds(redflag.Options{Magnitude: 6000}); got != nil {
		t.Errorf("beyond the limit: %v", got)
	}
	if got := kinds(redflag.Options{Skip: []redflag.Kind{redflag.Magnitude}}); got != nil {
		t.Errorf("skipped: %v", got)
	}
	for _, l := range check(t, trace, redflag.Options{Skip: []redflag.Kind{redflag.Zero}}).Looked {
		if l.Kind == redflag.Zero && (!l.Skipped || l.Tensors > 0) {
			t.Errorf("zero was looked for: %+v", l)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := redflag.Check(cancelled, trace, redflag.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The keys of a file of another writer are read as those of a trace.
func TestKeysOfOtherWriters(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3n-tiny/decode.float32.safetensors")
	tensors := map[string]hooks.Tensor{}
	for _, r := range golden.Records() {
		if strings.Contains(r.Name, "layers.2.") || r.Name == "input_ids" {
			x, err := golden.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			if r.Pass > 0 && strings.HasSuffix(r.Name, "self_attn.probs") {
				clear(x.Data) // a fault: of this pass only the prefix of the key says which it is
			}
			tensors[r.Key] = x
		}
	}
	var list []checkpointtest.Tensor
	for key, x := range tensors {
		list = append(list, checkpointtest.Tensor{Name: key, Tensor: x})
	}
	file := checkpointtest.File(list)
	trace, err := capture.OpenReader("foreign", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	r := check(t, trace, redflag.Options{})
	if r.Passes != 7 {
		t.Errorf("%d passes, want 7", r.Passes)
	}
	at := slices.IndexFunc(r.Flags, func(f redflag.Flag) bool { return f.Kind == redflag.ProbabilitySum })
	if at < 0 || r.Flags[at].Pass == 0 || r.Flags[at].Entry != "layers.2.self_attn.probs" || len(r.Flags[at].Also) != 5 {
		t.Errorf("%+v", r.Flags)
	}
}

// FuzzCheck: no file makes a check panic, or read without end.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"layers.0.self_attn.probs":{"dtype":"F32","shape":[1,1,1,2],"data_offsets":[0,8]},"a":{"dtype":"BF16","shape":[0,5,1,7],"data_offsets":[8,8]}}`,
		`{"pass1/layers.0.self_attn.probs":{"dtype":"F16","shape":[0,5,1,7],"data_offsets":[0,0]},"pass2/layers.0.self_attn.probs":{"dtype":"F16","shape":[0,5,1,7],"data_offsets":[0,0]},"pass3/layers.0.self_attn.probs":{"dtype":"F16","shape":[0,5,1,7],"data_offsets":[0,0]}}`,
		`{"layers.1":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"layers.2":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`,
		`{"rotary.cos":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"rotary.sin":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]}}`,
		`{"q_rope":{"dtype":"F32","shape":[2,1,1],"data_offsets":[0,8]},"q_proj":{"dtype":"F32","shape":[2,1,1],"data_offsets":[8,16]},"loss":{"dtype":"F32","shape":[],"data_offsets":[16,20]}}`,
		`{"input_ids":{"dtype":"I64","shape":[1,2],"data_offsets":[0,16]},"logits":{"dtype":"F32","shape":[1,2,1],"data_offsets":[16,24]},"grad/a":{"dtype":"F64","shape":[1],"data_offsets":[24,32]}}`,
	} {
		f.Add(seed, []byte("0123456789abcdef0123456789abcdef"))
	}
	f.Fuzz(func(t *testing.T, header string, data []byte) {
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		file = append(file, data...)
		for size := int64(len(file) - len(data)); size <= int64(len(file)); size++ { // the data have to fit to the byte
			trace, err := capture.OpenReader("fuzz", strings.NewReader(string(file[:size])), size)
			if err != nil {
				continue
			}
			if _, err := redflag.Check(t.Context(), trace, redflag.Options{}); err != nil {
				t.Fatalf("a file that opens cannot be checked: %v", err)
			}
		}
	})
}

// A few channels of a trained model are thousands of times as large as the others. A scale that is wrong makes all elements large.
func TestMagnitudeIsOfMostElements(t *testing.T) {
	for _, c := range []struct {
		large int
		want  bool
	}{{10, false}, {90, true}} {
		x := make([]float64, 100)
		for i := range x {
			if x[i] = 2 + math.Sqrt(float64(i)); i < c.large {
				x[i] *= 1 << 14
			}
		}
		trace := write(t, t.TempDir(), map[string]hooks.Tensor{"layers.0.mlp.down_proj": tensor(hooks.F32, []int{1, 10, 10}, x)})
		defer trace.Close()
		flags := check(t, trace, redflag.Options{}).Flags
		if got := slices.ContainsFunc(flags, func(f redflag.Flag) bool { return f.Kind == redflag.Magnitude }); got != c.want {
			t.Errorf("%d large elements of 100: flag %t", c.large, got)
		}
	}
}
