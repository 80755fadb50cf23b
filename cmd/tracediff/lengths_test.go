package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// otherTokens are those of the other prompt of fixtures/lengths, which is longer than the recorded one.
const otherTokens = "6,51,13,70,2,39,58,11,84,27,5,62"

// A program that was recorded with runs of other lengths serves a prompt of another length without Python: the walk makes its
// reference, transformers' own trace matches it with every operation right, and a mistake is found and blamed on its entry.
func TestProgramsOnOtherLengths(t *testing.T) {
	for _, c := range []struct{ model, first, said string }{
		{"mistral", "mask.full", "misses 7 keys"},
		{"llama", "layers.1.post_attention_layernorm", "0.05"},
		{"mamba2", "", ""}, // its decode steps have other tensors than its prompt, in other dtypes
	} {
		folder := filepath.Join("../../fixtures/lengths", c.model)
		at := func(name string) string { return filepath.Join(folder, name) }
		args := []string{"compare", "--reference", "go", "--level", "3", "--dir", t.TempDir(), "--model", at("model"), "--program", at("recorded.program.json"), "--tokens", otherTokens, "--local"}
		said := told(t, 0, append(args, at("other.safetensors"), "--max-new-tokens", "3")...)
		if !regexp.MustCompile(`operations: \d\d+ recomputed on your port's inputs: \d+ EXACT, \d ROUNDING\n`).MatchString(said) || !strings.Contains(said, "MATCH: all") {
			t.Errorf("%s:\n%s", c.model, said)
		}
		if c.first == "" {
			continue
		}
		said = told(t, 1, append(args, at("wrong.safetensors"))...)
		if !strings.Contains(said, "first divergence: "+c.first) || !strings.Contains(said, c.said) || strings.Contains(said, "both sides are equal") {
			t.Errorf("%s, a mistake:\n%s", c.model, said)
		}
	}
}

// The key program of tracediff.toml names the program of all its prompts, and the report says so.
func TestProgramKey(t *testing.T) {
	dir := t.TempDir()
	folder, err := filepath.Abs("../../fixtures/lengths/llama")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "llama"), os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	text := "model = \"llama/model\"\nprogram = \"llama/recorded.program.json\"\nreference = \"go\"\nlocal = \"llama/other.safetensors\"\nlevel = 3\n[[prompt]]\nname = \"one\"\ntokens = \"" + otherTokens + "\"\nmax_new_tokens = 3\n"
	config := filepath.Join(dir, "tracediff.toml")
	for _, c := range []struct {
		want int
		text string
		said []string
	}{
		{0, text, []string{"gate: 1 of 1 prompts match"}},
		{1, strings.Replace(text, "other.safetensors", "wrong.safetensors", 1), []string{"first divergence: layers.1.post_attention_layernorm", "come from " + filepath.Join(dir, "llama/recorded.program.json") + ", made for a prompt of another length"}},
		{2, strings.Replace(text, "recorded.program", "none.program", 1), []string{"reading the program"}},
	} {
		if err := os.WriteFile(config, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		said := told(t, c.want, "gate", "--config", config, "--dir", filepath.Join(dir, "traces"), "--verbose")
		flat := strings.Join(strings.Fields(said), " ")
		for _, word := range c.said {
			if !strings.Contains(flat, word) {
				t.Errorf("does not say %q:\n%s", word, said)
			}
		}
	}
}

// A program that says nothing of a length is refused for it, with the reason.
func TestProgramsThatDoNotHoldForALength(t *testing.T) {
	mistral := "../../fixtures/lengths/mistral/"
	program := readAll(t, mistral+"recorded.program.json")
	dir := t.TempDir()
	changed := func(name string, change func(text string) string) string {
		path := filepath.Join(dir, name+".program.json")
		text := change(string(program))
		if text == string(program) {
			t.Fatal("nothing was changed for ", name)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	guard := changed("guard", func(s string) string {
		return strings.Replace(s, `{"name":"logits"`, `{"op":"guard","in":["t0"],"out":[],"attr":{"value":1},"at":0},`+"\n"+`{"name":"logits"`, 1)
	})
	if err := os.WriteFile(strings.TrimSuffix(guard, ".program.json")+".safetensors", readAll(t, mistral+"recorded.safetensors"), 0o644); err != nil {
		t.Fatal(err)
	}
	program = readAll(t, "../../fixtures/programs/llama-tiny.bfloat16.program.json")
	alone := changed("alone", func(s string) string {
		return strings.Replace(s, `"version":1`, `"version":1,"alone":"it loops over tokens"`, 1)
	})
	many := strings.TrimSuffix(strings.Repeat("5,", 125), ",")
	for _, c := range []struct{ program, tokens, more, want string }{
		{mistral + "recorded.program.json", many, "0", "its tokens are 125, and the recorded numbers are 1 to 124"},
		{mistral + "recorded.program.json", "5,6,7,8;9,10", "0", "was recorded with other lengths: want a prompt in one pass, and then one token a pass"},
		{mistral + "recorded.program.json", "5,6,7", "2", "was recorded with other lengths: pass 1, "}, // the window of 6 keys is full at a length that was not recorded
		{alone, otherTokens, "0", "was recorded with other lengths: it loops over tokens"},
		{guard, otherTokens, "0", "Python looked at what was computed: guard at transformers/"},
	} {
		model := mistral + "model"
		if c.program == alone {
			model = "../../fixtures/llama-tiny"
		}
		text := strings.TrimSpace(told(t, 2, "capture", "--side", "reference", "--reference", "go", "--dir", t.TempDir(), "--model", model, "--program", c.program, "--tokens", c.tokens, "--max-new-tokens", c.more))
		if !strings.Contains(text, c.want) || bytes.Count([]byte(text), []byte("\n")) != 1 {
			t.Errorf("want two lines with %q:\n%s", c.want, text)
		}
	}
}
