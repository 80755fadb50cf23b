package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hiddenStates is a dump of transformers' hidden states as a person makes it who takes hidden_states[i+1] for what layer i returns: the last of
// them is the output of the final norm. It is made of a golden, with the logits.
func hiddenStates(t *testing.T, golden string, layers int, change func(f *stFile, last *stTensor)) string {
	t.Helper()
	data, err := os.ReadFile(golden)
	must(t, err)
	f := readST(t, data)
	f.meta = nil
	f.tensors = slices.DeleteFunc(f.tensors, func(s *stTensor) bool {
		_, name, later := strings.Cut(s.Key, "/")
		if !later {
			name = s.Key
		}
		return !strings.HasSuffix(name, ".out") && !slices.Contains([]string{"input_ids", "embed_tokens", "norm", "logits"}, name)
	})
	last := "layers." + string(rune('0'+layers-1)) + ".out"
	for _, s := range slices.Clone(f.tensors) {
		if prefix, is := strings.CutSuffix(s.Key, last); is {
			norm := f.at(prefix + "norm")
			s.Data, s.Shape = norm.Data, norm.Shape
			f.tensors = slices.DeleteFunc(f.tensors, func(s *stTensor) bool { return s == norm })
		}
	}
	if change != nil {
		change(f, f.at(last))
	}
	path := filepath.Join(t.TempDir(), "hidden.safetensors")
	must(t, os.WriteFile(path, f.bytes(), 0o666))
	return path
}

// multiplied multiplies float32 numbers from one row of n on.
func multiplied(data []byte, from int, by float32) []byte {
	out := slices.Clone(data)
	for at := 4 * from; at < len(out); at += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(out[at:]))
		binary.LittleEndian.PutUint32(out[at:], math.Float32bits(x*by))
	}
	return out
}

// The output of the final norm under the name of the last layer's output is known for what it is, in one pass and in several. What is neither
// of the two is wrong under the name that it has, and so is what the dump has beside another output of the norm.
func TestLastHiddenStateIsTheNorms(t *testing.T) {
	const said = "layers.2.out has the numbers of norm, as the last of transformers' hidden_states"
	for _, tt := range []struct {
		name, golden string
		change       func(f *stFile, last *stTensor)
		exit         int
		says         string
	}{
		{"one pass", "llama-tiny/prefill.float32", nil, exitMatch, said + ", and is compared as norm; what the last layer returns was not dumped"},
		{"decode steps", "llama-tiny/decode.bfloat16", nil, exitMatch, said},
		{"norms of one plus the weight", "gemma3-tiny/prefill.float32", nil, exitMatch, said},
		{"beside the norm", "llama-tiny/prefill.float32", func(f *stFile, last *stTensor) {
			f.tensors = append(f.tensors, &stTensor{"norm", last.DType, last.Shape, last.Data})
		}, exitMatch, said + ", and is left out in favour of norm"},
		{"a wrong row", "llama-tiny/prefill.float32", func(_ *stFile, last *stTensor) {
			last.Data = multiplied(last.Data, 9*16, -1)
		}, exitMismatch, "first divergence: layers.2.out (VALUE)"},
		{"beside another norm", "llama-tiny/prefill.float32", func(f *stFile, last *stTensor) {
			f.tensors = append(f.tensors, &stTensor{"norm", last.DType, last.Shape, multiplied(last.Data, 0, 1.5)})
		}, exitMismatch, "first divergence: layers.2.out (VALUE)"},
	} {
		golden := "../../fixtures/golden/" + tt.golden + ".safetensors"
		model := "../../fixtures/" + filepath.Dir(tt.golden)
		var out, errOut bytes.Buffer
		args := []string{"tracediff", "compare", hiddenStates(t, golden, 3, tt.change), golden, "--model", model}
		if tt.exit == exitMismatch { // where the divergence is does not depend on a search for its name
			args = append(args, "--no-isolate")
		}
		got := run(args, nil, &out, &errOut)
		text := strings.Join(strings.Fields(out.String()), " ")
		if got != tt.exit || !strings.Contains(text, tt.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", tt.name, got, tt.exit, tt.says, out.String(), errOut.String())
		}
		if tt.exit == exitMismatch && strings.Contains(text, said) {
			t.Errorf("%s: taken for the norm's output\n%s", tt.name, out.String())
		}
	}
}
