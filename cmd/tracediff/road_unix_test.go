//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a port calls its tensors; those of a layer begin with "blocks.", and the others are not dumped.
var portNames = map[string]string{
	"embed_tokens": "emb", "norm": "final", "logits": "scores_out", "out": "x",
	"input_layernorm": "norm_a", "post_attention_layernorm": "norm_b", "pre_feedforward_layernorm": "norm_c", "post_feedforward_layernorm": "norm_d",
	"self_attn.q_proj": "attn.q", "self_attn.k_proj": "attn.k", "self_attn.v_proj": "attn.v", "self_attn.q_rope": "attn.q_rot", "self_attn.k_rope": "attn.k_rot",
	"self_attn.context": "attn.mix", "self_attn.o_proj": "attn.out",
	"mlp.gate_proj": "ffn.g", "mlp.up_proj": "ffn.u", "mlp.act_fn": "ffn.act", "mlp.down_proj": "ffn.down",
}

type tensorOfFile struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// portDump writes a trace as the dump of a port: in names of its own and without a batch axis. change may change the numbers of a tensor, or leave it out.
func portDump(t *testing.T, trace, dump string, change func(name string, numbers []byte) bool) {
	t.Helper()
	data, err := os.ReadFile(trace)
	must(t, err)
	start := 8 + binary.LittleEndian.Uint64(data)
	var header map[string]json.RawMessage
	must(t, json.Unmarshal(data[8:start], &header))
	written, body := map[string]tensorOfFile{}, []byte(nil)
	for key, raw := range header {
		own, ok := portNames[key]
		if parts := strings.SplitN(key, ".", 3); parts[0] == "layers" {
			if own, ok = portNames[parts[2]]; ok {
				own = "blocks." + parts[1] + "." + own
			}
		}
		if ok = ok || key == "input_ids"; !ok {
			continue
		}
		var x tensorOfFile
		must(t, json.Unmarshal(raw, &x))
		numbers := bytes.Clone(data[start+x.Offsets[0] : start+x.Offsets[1]])
		if own == "" {
			own = key
		}
		if change != nil && !change(own, numbers) {
			continue
		}
		x.Offsets = [2]uint64{uint64(len(body)), uint64(len(body) + len(numbers))}
		x.Shape = x.Shape[1:]
		written[own], body = x, append(body, numbers...)
	}
	text, err := json.Marshal(written)
	must(t, err)
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...)
	must(t, os.WriteFile(dump, append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), body...), 0o600))
}

// The road of somebody whose port is wrong: dump, map, compare, mend, compare, init, gate, and a gate that fails when the port breaks, or shows less.
func TestTheRoadOfAWrongPort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.CopyFS(at("model"), os.DirFS("../../fixtures/gemma3-tiny")))
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, at("tracediff")))
	run := func(code int, line string, says ...string) string {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-c", "PATH=.:$PATH; "+line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+at("cache"), "NO_COLOR=1")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%s\nexit %d, want %d\n%s", line, got, code, out)
		}
		for _, text := range says {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s\nit does not say %q\n%s", line, text, out)
			}
		}
		return string(out)
	}
	double := func(name string, numbers []byte) bool {
		for i := 0; i < len(numbers) && name == "blocks.0.ffn.act"; i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(numbers[i:]))
			binary.LittleEndian.PutUint32(numbers[i:], math.Float32bits(2*x))
		}
		return true
	}
	run(0, "tracediff capture --model model --dtype float32 --tokens 5,6,7,8,9 --level 3 --reference go --dir made")
	portDump(t, at("made/local.safetensors"), at("right.safetensors"), nil)
	portDump(t, at("made/local.safetensors"), at("wrong.safetensors"), double)
	portDump(t, at("made/local.safetensors"), at("less.safetensors"), func(name string, _ []byte) bool { return name != "final" })

	run(0, "tracediff map wrong.safetensors made/reference.safetensors > map.toml")
	run(1, "tracediff compare wrong.safetensors made/reference.safetensors --map map.toml", "first layers.0.mlp.act_fn", "the factor 0.5 is left out")
	run(0, "tracediff compare right.safetensors made/reference.safetensors --map map.toml", "MATCH: all")
	run(1, "tracediff compare less.safetensors made/reference.safetensors --map map.toml", `"final" matches no tensor of the dump: its entries`, "MISSING", "norm")
	run(0, "cp right.safetensors port.safetensors; tracediff capture --model model --dtype float32 --tokens 5,6,7,8,9 --reference go --local 'exec:cp port.safetensors {out}' --map map.toml")
	run(0, "tracediff init", "tensors = [", "map = ")
	toml, err := os.ReadFile(at("tracediff.toml"))
	must(t, err)
	must(t, os.WriteFile(at("tracediff.toml"), bytes.Replace(toml, []byte(`reference = "auto"`), []byte(`reference = "go"`), 1), 0o600))
	run(0, "tracediff gate", "1 of 1 prompts match")
	run(1, "cp wrong.safetensors port.safetensors; tracediff gate", "first layers.0.mlp.act_fn")
	run(1, "cp less.safetensors port.safetensors; tracediff gate", "MISSING")
	run(0, "cp right.safetensors port.safetensors; tracediff gate", "1 of 1 prompts match")
}

// The name of a tensor is no command for the runner that prints a listing.
func TestInspectedNamesAreNoCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dump.safetensors")
	text, err := json.Marshal(map[string]tensorOfFile{"::stop-commands::x": {DType: "F32", Shape: []int{1}, Offsets: [2]uint64{0, 4}}})
	must(t, err)
	must(t, os.WriteFile(file, append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), 0, 0, 0, 0), 0o600))
	said := told(t, 0, "inspect", file)
	if !strings.Contains(said, "stop-commands") {
		t.Errorf("the tensor is not listed:\n%s", said)
	}
	for line := range strings.Lines(said) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			t.Errorf("a command: %s", line)
		}
	}
}
