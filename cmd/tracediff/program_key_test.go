//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A recorded program that is named stands in the place of an order in all commands that compare: in tracediff.toml, whose paths are relative
// to it, for doctor, and for init, which writes down what the last comparison had.
func TestProgramOfAConfiguration(t *testing.T) {
	n := newNameless(t)
	const input = " --model MODEL --tokens " + namelessTokens + " --dir TRACES"
	n.run(0, "capture --side reference --reference hf --python PYTHON"+input)
	n.run(0, "capture --side reference --reference go --program HERE/made.program.json --model MODEL --dir HERE/walk --tokens 2,113,88,129,7,64,113,0,31,96")
	folder := filepath.Join(n.dir, "ci")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("model = \"../model\"\nlocal = \"../walk/reference.safetensors\"\nprogram = \"../made.program.json\"\n[[prompt]]\nname = \"one\"\ntokens = %q\n", namelessTokens)
	n.write(filepath.Join(folder, "tracediff.toml"), text, 0o644)
	gate := "gate --config HERE/ci/tracediff.toml --dir TRACES"
	n.run(0, gate, "the operations come from", "made.program.json", "MATCH: all 63 entries", "gate: 1 of 1 prompts match")
	if n.ran(n.recorded); n.ran(n.recorded) {
		t.Error("Python ran")
	}

	n.run(0, "compare --local HERE/walk/reference.safetensors --program HERE/made.program.json"+input, "MATCH: all")
	n.run(0, "init --dir TRACES HERE/ci/new.toml", `made.program.json"`)
	n.run(0, "gate --config HERE/ci/new.toml --dir TRACES", "gate: 1 of 1 prompts match")

	doctor := "doctor --timeout 10s --python PYTHON --model MODEL --tokens " + namelessTokens
	n.run(1, "doctor --timeout 10s --python PYTHON --dir TRACES", `by the recorded program`, `80 tensors with a name, 3 layers`) // of the last capture
	n.run(1, doctor+" --dir HERE/none --program HERE/made.program.json", `80 tensors with a name, 3 layers`, "all weights that the program reads are there")
	n.run(1, doctor+" --dir HERE/none", "no order describes a model of type")

	// A file that is not there, none at all, and the program of another model.
	toml := filepath.Join(folder, "tracediff.toml")
	n.write(filepath.Join(n.dir, "mixtral.program.json"), string(readAll(t, "../../fixtures/programs/mixtral-tiny/bfloat16.program.json")), 0o644)
	for other, words := range map[string][2]string{
		"none.program.json": {"reading the program", "reading the program"}, "model/config.json": {"config.json", "format"},
		"mixtral.program.json": {"was recorded with other lengths", "weight model.layers.0.block_sparse_moe.gate.weight [4 32] is missing"},
	} {
		n.write(toml, strings.Replace(text, "made.program.json", other, 1), 0o644)
		n.run(2, gate, words[0])
		n.run(1, doctor+" --dir HERE/none --program HERE/"+other, words[1])
	}
}
