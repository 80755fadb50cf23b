package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
)

// A map is proposed for the names of a recorded program, whatever the path of its layers is: a dump of Mixtral's tensors under names of
// its own, without the batch axis, gets a map by which it matches.
func TestMapOfARecordedProgram(t *testing.T) {
	const from = "../../fixtures/programs/mixtral-tiny/"
	dir := t.TempDir()
	own := strings.NewReplacer("layers.", "blk", "self_attn.", "at/", "input_layernorm", "n1", "post_attention_layernorm", "n2", "attn_residual", "mid",
		"q_proj", "wq", "k_proj", "wk", "v_proj", "wv", "o_proj", "wo", "mlp.", "moe/", "embed_tokens", "emb")
	few := func(name string) (string, bool) { // what a person dumps
		for _, end := range []string{"embed_tokens", "_layernorm", "_proj", "_rope", "probs_f32", "context", "attn_residual", "mlp.gate", "mlp.gate.1", "mlp.gate.2", "mlp.experts", "layers.0.out", "layers.1.out"} {
			if strings.HasSuffix(name, end) {
				return own.Replace(name), true
			}
		}
		return name, strings.HasSuffix(name, "input_ids") || strings.HasSuffix(name, "logits")
	}
	port := filepath.Join(dir, "port.safetensors")
	writeTensors(t, port, from+"float32.safetensors", nil, true, few)

	said := told(t, 0, "map", port, from+"float32.safetensors")
	for _, line := range []string{
		`"blk{L}.at/q_rope" = "layers.{L}.self_attn.q_rope"`, `"blk{L}.moe/experts" = "layers.{L}.mlp.experts"`,
		`"blk{L}.at/wo" = "layers.{L}.self_attn.o_proj"`, `"emb" = "embed_tokens"`, `"blk{L}.n2" = "layers.{L}.post_attention_layernorm"`,
		`"blk{L}.moe/gate.2" = { to = "layers.{L}.mlp.gate.2", by = "guess" }`, // indexes have no values to be told by
	} {
		if !strings.Contains(said, line) {
			t.Errorf("no line %s:\n%s", line, said)
		}
	}
	file := filepath.Join(dir, "map.toml")
	if err := os.WriteFile(file, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := told(t, 0, "compare", port, from+"float32.safetensors", "--map", file, "--model", from+"model", "--dir", dir); !strings.Contains(said, "\nMATCH: all ") {
		t.Errorf("by the map:\n%s", said)
	}

	// The layers under another path; only names count here.
	other := strings.NewReplacer("layers", "transformer.h")
	text := strings.ReplaceAll(string(readAll(t, from+"float32.program.json")), "layers.", "transformer.h.")
	text = strings.Replace(text, `"layers":"layers"`, `"layers":"transformer.h"`, 1)
	program := filepath.Join(dir, "other.program.json")
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	writeTensors(t, filepath.Join(dir, "other.safetensors"), from+"float32.safetensors", []byte(text), false, func(name string) (string, bool) { return other.Replace(name), true })
	said = told(t, 0, "map", port, filepath.Join(dir, "other.safetensors"))
	if !strings.Contains(said, `"blk{L}.n1" = "transformer.h.{L}.input_layernorm"`) || strings.Contains(said, `"blk0`) {
		t.Errorf("no line for all layers:\n%s", said)
	}
	// The same program by its name, without a reference: there are no values, so that some are choices.
	if said = told(t, 1, "map", port, "--program", program); !strings.Contains(said, "transformer.h.{L}.self_attn.o_proj") {
		t.Errorf("by the program alone:\n%s", said)
	}
	// Without its program nothing says which names there are.
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if said = told(t, 2, "map", port, filepath.Join(dir, "other.safetensors")); !strings.Contains(said, "no recorded program is next to it") || strings.Count(said, "\n") != 2 {
		t.Errorf("without the program: %s", said)
	}
}

// writeTensors writes the tensors of a trace under other names, as a dump, or with the manifest for another program. flat
// takes the batch axis away. name says what a tensor is called, and whether it is written.
func writeTensors(t *testing.T, path, from string, program []byte, flat bool, name func(string) (string, bool)) {
	t.Helper()
	data := readAll(t, from)
	size := binary.LittleEndian.Uint64(data)
	var old struct {
		Metadata map[string]string `json:"__metadata__"`
	}
	if err := json.Unmarshal(data[8:8+size], &old); err != nil {
		t.Fatal(err)
	}
	trace, err := capture.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	var fields []string
	var body []byte
	if program != nil {
		old.Metadata["tracediff.program"] = fmt.Sprintf("sha256:%x", sha256.Sum256(program))
		meta, err := json.Marshal(old.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, `"__metadata__":`+string(meta))
	}
	for _, r := range trace.Records() {
		to, ok := name(r.Key)
		if !ok {
			continue
		}
		shape := r.Shape
		if flat && len(shape) > 2 && shape[0] == 1 {
			shape = shape[1:]
		}
		n := r.DType.Size()
		for _, d := range shape {
			n *= d
		}
		part := make([]byte, n)
		if _, err := trace.ReadAt(r, part, 0); err != nil {
			t.Fatal(err)
		}
		sizes, err := json.Marshal(shape)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, to, r.DType.Safetensors(), sizes, len(body), len(body)+n))
		body = append(body, part...)
	}
	text := "{" + strings.Join(fields, ",") + "}"
	whole := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	if err := os.WriteFile(path, append(append(whole, text...), body...), 0o600); err != nil {
		t.Fatal(err)
	}
}
