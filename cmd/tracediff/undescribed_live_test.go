package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Two families that no order describes, made tiny: transformers records them, their own tokenizer and chat template give the ids, the
// walk by the program gives what transformers computes on other ids of as many tokens, and a mistake in a port is found and named.
func TestUndescribedModelsOfTransformers(t *testing.T) {
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has torch and transformers")
	}
	dir := t.TempDir()
	script, err := filepath.Abs("../../fixtures/undescribed.py")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(interpreter, script, "make", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	says := func(code int, args []string, words ...string) {
		t.Helper()
		said := told(t, code, args...)
		for _, word := range words {
			if !strings.Contains(said, word) {
				t.Errorf("%v: does not say %q:\n%s", args, word, said)
			}
		}
	}
	port := func(bug string) string {
		return "exec:" + interpreter + " " + script + " run {model} {tokens} {out} " + bug
	}
	of := func(model string, args ...string) []string {
		return append([]string{args[0], "--python", interpreter, "--model", filepath.Join(dir, model), "--dir", filepath.Join(dir, "traces")}, args[1:]...)
	}
	chat := []string{"--chat", "--prompt", "the cat saw a dog and a dog saw the cat", "--max-new-tokens", "2"}
	says(0, append(of("mistral", "capture", "--side", "reference", "--reference", "hf"), chat...), "program: ", `1 "<s>"  3 "user"`, `4 "model"`, "made by the tokenizer of transformers")
	says(1, append(of("mistral", "compare", "--local", port("epsilon")), chat...),
		"(stored)", "first divergence: layers.1.post_attention_layernorm", "- + 1e-06", "+ + 0.05", "modeling_mistral.py:")
	says(0, append(of("mistral", "capture", "--side", "reference", "--reference", "go"), "--tokens", "1,5,6,7,8,9,10,11,12,13,14,5,6,7;9"), "float64 walk")
	walk := filepath.Join(dir, "walk.safetensors")
	if err := os.Rename(filepath.Join(dir, "traces", "reference.safetensors"), walk); err != nil {
		t.Fatal(err)
	}
	says(0, append(of("mistral", "compare", "--level", "3", "--reference", "hf", "--local", walk), "--tokens", "1,5,6,7,8,9,10,11,12,13,14,5,6,7;9"),
		"reference: transformers", " EXACT, ", "MATCH: all")

	ids := []string{"--tokens", "1,9,8,30,45,2,60", "--max-new-tokens", "1"}
	says(0, append(of("phi3", "order", "--record", "--level", "1"), ids...), "layers.1.mlp.down_proj", "modeling_phi3.py:")
	says(1, append(of("phi3", "compare", "--local", port("relu")), ids...), "(stored)", "first divergence: layers.0.mlp", "relu, not silu")
}
