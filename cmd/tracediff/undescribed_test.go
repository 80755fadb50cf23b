//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nameless is a checkpoint of a family that no order describes, and a Python that records it: a script that leaves the trace and the
// program of a real run.
type nameless struct {
	t                   *testing.T
	dir, model, python  string
	recorded, tokenized string // files that are there once Python ran
}

// namelessTokens are those of the recorded run.
const namelessTokens = "2,113,88,129,7,64,113,0,31,96"

func newNameless(t *testing.T) *nameless {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	n := &nameless{t, dir, at("model"), at("python"), at("ran.hf"), at("ran.ids")}
	const fixtures = "../../fixtures/"
	if err := os.CopyFS(n.model, os.DirFS(fixtures+"llama-tiny")); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(n.model, "config.json")
	text := bytes.Replace(readAll(t, config), []byte(`"model_type": "llama"`), []byte(`"model_type": "nameless"`), 1)
	n.write(config, string(text), 0o644)
	undescribed(t, fixtures+"bench/healthy-llama-tiny-10+2.bfloat16.transformers.safetensors", fixtures+"programs/llama-tiny.bfloat16.program.json", at("made"))
	n.write(n.python, fmt.Sprintf(`#!/bin/sh
case "$*" in
-c*) echo '{"executable":"python","python":"3.12.1","packages":{"torch":"2.15.0","transformers":"5.23.0"}}' ;;
*tracediff.ids*)
	cat >%[1]s/prompt
	echo "$@" >%[1]s/ran.ids
	echo '{"ids":[%[2]s],"texts":["a","b","c","d","e","f","g","h","i","j"],"transformers":"5.23.0"}' ;;
*)
	echo "$@" >%[1]s/ran.hf
	while [ "$1" != --out ]; do shift; done
	cp %[1]s/made.safetensors "$2"
	cp %[1]s/made.program.json "${2%%.safetensors}.program.json" ;;
esac
`, dir, namelessTokens), 0o755)
	return n
}

func (n *nameless) write(path, text string, mode os.FileMode) {
	n.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		n.t.Fatal(err)
	}
}

// run runs the command and checks what it says.
func (n *nameless) run(want int, args string, words ...string) string {
	n.t.Helper()
	list := strings.Fields(strings.NewReplacer("MODEL", n.model, "PYTHON", n.python, "TRACES", filepath.Join(n.dir, "traces"), "HERE", n.dir).Replace(args))
	said := told(n.t, want, list...)
	for _, word := range words {
		if !strings.Contains(unbroken(said), unbroken(word)) {
			n.t.Errorf("%s: does not say %q:\n%s", args, word, said)
		}
	}
	return said
}

// ran reports whether Python made a file since the last call.
func (n *nameless) ran(file string) bool {
	n.t.Helper()
	err := os.Remove(file)
	return err == nil
}

// traces is a file in the folder of traces.
func (n *nameless) traces(pattern string) string {
	n.t.Helper()
	found, err := filepath.Glob(filepath.Join(n.dir, "traces", pattern))
	if err != nil || len(found) != 1 {
		n.t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// A model that no order describes is recorded once, and stored with its program; what compares it finds both with no flag, and a
// changed program is refused.
func TestUndescribedModelsAreRecorded(t *testing.T) {
	n := newNameless(t)
	const input = " --model MODEL --tokens " + namelessTokens + " --max-new-tokens 2 --dir TRACES"
	n.run(2, "compare --reference hf --local go"+input, `a model of type "nameless" has no built-in model`)
	n.run(2, "compare --local HERE/made.safetensors"+input, `no order describes a model of type "nameless", and no reference of`, "hint: record one: tracediff capture --side reference --reference hf")
	if n.ran(n.recorded) {
		t.Error("a command that could not end ran Python")
	}
	n.run(0, "capture --side reference --reference hf --python PYTHON"+input, "program: 80 tensors a pass with a name", "reference: transformers 5.23.0, bfloat16 (captured), 240 tensors")
	if text := string(readAll(t, n.recorded)); strings.Contains(text, "--order") || strings.Contains(text, "--level") || !strings.Contains(text, "--tokens "+namelessTokens+" --dtype bfloat16 --max-new-tokens 2") {
		t.Errorf("the runner was asked for %s", text)
	}
	n.ran(n.recorded)
	stored := n.traces("references/*.program.json")
	if a, b := readAll(t, n.traces("reference.program.json")), readAll(t, stored); !bytes.Equal(a, b) {
		t.Error("the program beside the trace is not the stored one")
	}

	// The fix loop: the stored reference is used, with what captured it last.
	again := "compare --dir TRACES --local HERE/made.safetensors"
	n.run(0, again+" --level 3", "reference: transformers 5.23.0, bfloat16", "(stored)", "EXACT", "MATCH: all")
	wrong := filepath.Join(n.dir, "wrong")
	undescribed(t, "../../fixtures/bench/silu-is-relu.bfloat16.transformers.safetensors", filepath.Join(n.dir, "made.program.json"), wrong)
	n.run(1, "compare --local HERE/wrong.safetensors"+input, "first divergence: layers.0.mlp.act_fn", "relu, not silu", "BUG")
	n.write(filepath.Join(n.dir, "gate.toml"), fmt.Sprintf("model = %q\nlocal = %q\n[[prompt]]\nname = \"one\"\ntokens = %q\nmax_new_tokens = 2\n", n.model, wrong+".safetensors", namelessTokens), 0o644)
	n.run(1, "gate --config HERE/gate.toml --dir TRACES", "first divergence: layers.0.mlp.act_fn", "gate: 0 of 1 prompts match")
	if n.ran(n.recorded) {
		t.Error("a stored reference was recorded again")
	}
	n.run(1, "doctor --timeout 10s --python PYTHON"+input, "used for this input", `no order describes a model of type "nameless"`, "error    python")

	// The walk runs the program, on its own ids and on others of as many tokens.
	other := "2,3,4,5,6,7,8,9,10,11"
	n.run(0, "compare --reference go --level 3"+strings.Replace(again, "compare", "", 1), "reference: tracediff float64 walk v1, bfloat16", "MATCH: all")
	n.run(0, "capture --side reference --reference go --model MODEL --dir TRACES --tokens "+other, "tracediff float64 walk v1, bfloat16 (captured), 80 tensors")
	n.run(2, "capture --side reference --reference go --model MODEL --dir TRACES --tokens 2,3,4", "pass 0 has 3 tokens, and ", "was recorded with other lengths")
	n.run(2, "capture --side reference --reference go --model MODEL --dir HERE/other --tokens "+other, "the walk has nothing to run")
	n.run(0, "capture --side reference --reference go --model MODEL --dir HERE/other --program HERE/made.program.json --tokens "+other, "(captured), 80 tensors")
	n.run(0, "compare --reference go --model MODEL --dir HERE/other --program HERE/made.program.json --local HERE/other/reference.safetensors --tokens "+other, "(stored)", "EXACT, 0 ROUNDING")
	// A program by which nobody but the walk has ever computed certifies nothing.
	n.run(1, "compare --reference go --model MODEL --dir HERE/other --local HERE/other/reference.safetensors --tokens "+other, "op unverified", "INCOMPLETE: nothing was tested")

	// A program that was changed is not used, by the store or beside a trace.
	for _, path := range []string{stored, n.traces("reference.program.json")} {
		n.write(path, string(readAll(t, path))+" ", 0o644)
	}
	n.run(2, "compare --local HERE/made.safetensors"+input, "program.json was changed after it was stored", "hint: record one: ")
	n.run(2, "compare --model MODEL HERE/made.safetensors "+n.traces("reference.safetensors"), "is not the program that the trace was recorded with")
}

// Where there is no code for a tokenizer, the ids are those of transformers' own, and the report says so; they are asked for once.
func TestIDsOfTheRunner(t *testing.T) {
	n := newNameless(t)
	n.write(filepath.Join(n.model, "tokenizer.json"), `{"model":{"type":"Unigram"}}`, 0o644)
	n.run(0, "capture --side reference --reference hf --python PYTHON --model MODEL --max-new-tokens 2 --dir TRACES --chat --prompt hello", `2 "a"`, "note: the token ids of the prompt were made by the tokenizer of transformers 5.23.0")
	if text := string(readAll(t, filepath.Join(n.dir, "prompt"))); text != "hello" {
		t.Errorf("the runner was asked for %q", text)
	}
	if text := string(readAll(t, n.tokenized)); !strings.Contains(text, "--chat") {
		t.Errorf("the runner was called with %s", text)
	}
	n.ran(n.tokenized)
	n.run(0, "compare --dir TRACES --level 3 --local HERE/made.safetensors --model MODEL --prompt hello --chat --max-new-tokens 2", "transformers 5.23.0", "(stored)", "made by the tokenizer of", `113 "b"`)
	if n.ran(n.tokenized) {
		t.Error("the ids of one prompt were asked for twice")
	}
	n.run(2, "compare --dir TRACES --local HERE/made.safetensors --model MODEL --prompt other --python HERE/none", "the token ids of the prompt: no Python")
	n.run(2, "prompts --model MODEL", "no order describes its family", "hint: choose a prompt yourself")
	n.run(2, "order --model MODEL", "model_type is not supported", "are recorded as transformers runs it")
	n.run(0, "order --record --model MODEL --python PYTHON --max-new-tokens 2 --dir TRACES --level 1 --tokens "+namelessTokens, "layers.0.attn_residual ", "note: the program is ")
	n.run(2, "order --record --model ../../fixtures/llama-tiny --tokens 2", "--record: llama has an order")
	n.run(2, "order --tokens 2", "--tokens does not apply without --record")
}
