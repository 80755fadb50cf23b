package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// A selection of which nothing is left, or a part of it that selects nothing, is a mistake of whoever typed it: exit 2, in two
// lines, whatever the command.
func TestSelectingNothingIsRefused(t *testing.T) {
	t.Parallel()
	const prompt = "2,513,88" // of three tokens, as the golden "hello" has
	hello, decode := "../../fixtures/golden/gemma3n-tiny/hello.float32.safetensors", "../../fixtures/golden/gemma3n-tiny/decode.float32.safetensors"
	for _, tt := range []struct {
		args   []string
		decode bool
	}{
		{args: []string{"--positions", "77"}},
		{args: []string{"--positions", "3-"}},
		{args: []string{"--positions", "77", "--all"}},
		{args: []string{"--passes", "9"}},
		{args: []string{"--passes", "1-"}},
		{args: []string{"--passes", "0,9"}},
		{args: []string{"--layers", "99"}},
		{args: []string{"--layers", "0,99"}},
		{args: []string{"--tensors", "nothing*"}},
		{args: []string{"--tensors", "norm", "--tensors", "nothing*"}},
		{args: []string{"--level", "1", "--tensors", "*.self_attn.scores"}},
		{args: []string{"--level", "2", "--tensors", "mask.*"}},
		{args: []string{"--layers", "0", "--tensors", "norm"}},
		{args: []string{"--layers", "0", "--tensors", "logits"}},
		{args: []string{"--layers", "5", "--tensors", "layers.1.*"}},
		{args: []string{"--level", "1", "--layers", "0", "--tensors", "*.q_proj"}},
		{args: []string{"--passes", "1", "--positions", "0"}, decode: true},
		{args: []string{"--passes", "0", "--positions", "6-"}, decode: true},
	} {
		file, tokens := hello, prompt
		if tt.decode {
			file, tokens = decode, "2,513,88,7,9,11;3;5"
		}
		capture := []string{"--dir", filepath.Join(t.TempDir(), "traces"), "--tokens", tokens, "--dtype", "float32"}
		for what, args := range map[string][]string{
			"compare FILE FILE":                append([]string{"compare", file, file}, tt.args...),
			"compare FILE FILE --no-isolate":   append([]string{"compare", file, file, "--no-isolate"}, tt.args...),
			"compare":                          append(append([]string{"compare"}, capture...), tt.args...),
			"compare, the walk as reference":   append(append([]string{"compare", "--reference", "go"}, capture...), tt.args...),
			"capture":                          append(append([]string{"capture"}, capture...), tt.args...),
			"capture of your port":             append(append([]string{"capture", "--side", "local"}, capture...), tt.args...),
			"compare --isolate FILE, one file": append([]string{"compare", "--isolate", file}, tt.args...),
		} {
			var out, errOut bytes.Buffer
			code := run(append([]string{"tracediff"}, args...), nil, &out, &errOut)
			if lines := strings.Split(strings.TrimSpace(errOut.String()), "\n"); code != exitUnusable || len(lines) != 2 || !strings.HasPrefix(lines[0], "tracediff: ") || !strings.HasPrefix(lines[1], "hint: ") {
				t.Errorf("%s %s: exit %d, want 2, in two lines: %q", what, strings.Join(tt.args, " "), code, errOut.String())
			}
		}
	}
}
