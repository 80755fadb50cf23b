//go:build unix

package main

import (
	"bytes"
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

// ownName is what a port calls a tensor; ok is false for one that it does not dump.
func ownName(key string) (own string, ok bool) {
	if key == "input_ids" {
		return key, true
	}
	parts := strings.SplitN(key, ".", 3)
	if parts[0] != "layers" {
		own, ok = portNames[key]
		return own, ok
	}
	own, ok = portNames[parts[2]]
	return "blocks." + parts[1] + "." + own, ok
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
	run(0, "tracediff capture --model model --dtype float32 --tokens 5,6,7,8,9 --level 3 --reference go --dir made")
	writeTensors(t, at("right.safetensors"), at("made/local.safetensors"), nil, true, ownName)
	writeTensors(t, at("wrong.safetensors"), at("made/local.safetensors"), nil, true, ownName)
	doubled(t, at("wrong.safetensors"), "blocks.0.ffn.act")
	writeTensors(t, at("less.safetensors"), at("made/local.safetensors"), nil, true, func(key string) (string, bool) {
		own, ok := ownName(key)
		return own, ok && own != "final"
	})

	run(0, "tracediff map wrong.safetensors made/reference.safetensors > map.toml")
	run(1, "tracediff compare wrong.safetensors made/reference.safetensors --map map.toml", "first layers.0.mlp.act_fn", "the factor 0.5 is missing")
	run(0, "tracediff compare right.safetensors made/reference.safetensors --map map.toml", "MATCH: all")
	run(1, "tracediff compare less.safetensors made/reference.safetensors --map map.toml", `"final" matches no tensor of the dump: its entries`, "MISSING", "norm")
	run(0, "cp right.safetensors port.safetensors; tracediff capture --model model --dtype float32 --tokens 5,6,7,8,9 --reference go --local 'exec:cp port.safetensors {out}' --map map.toml")
	run(0, "tracediff init", "tensors = [", "[map] = the lines of "+at("map.toml"))
	toml, err := os.ReadFile(at("tracediff.toml"))
	must(t, err)
	must(t, os.WriteFile(at("tracediff.toml"), bytes.Replace(toml, []byte(`reference = "auto"`), []byte(`reference = "go"`), 1), 0o600))
	run(0, "tracediff gate", "1 of 1 prompts match")
	run(1, "cp wrong.safetensors port.safetensors; tracediff gate", "first layers.0.mlp.act_fn")
	run(1, "cp less.safetensors port.safetensors; tracediff gate", "MISSING")
	run(0, "cp right.safetensors port.safetensors; tracediff gate", "1 of 1 prompts match")
	run(0, "rm .tracediff/local.safetensors; tracediff init later.toml", "tensors = all: the port's trace is gone")
}
