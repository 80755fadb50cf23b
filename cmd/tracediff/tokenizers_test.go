//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/gguf/gguftest"
)

// tokenizerModel is a checkpoint of the family Llama with a tokenizer.json of "a", "b", "1", " " and "ab", and these fields.
func tokenizerModel(t *testing.T, fields string) (dir, model string) {
	t.Helper()
	dir = t.TempDir()
	model = filepath.Join(dir, "model")
	if err := os.CopyFS(model, os.DirFS("../../fixtures/llama-tiny")); err != nil {
		t.Fatal(err)
	}
	whole := `{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
		{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
		` + fields + `, "decoder": null, "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
		"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": {"<s>": 0, "a": 1, "b": 2, "1": 3, "Ġ": 4, "ab": 5, "11": 6}, "merges": ["a b", "1 1"]}}`
	if err := os.WriteFile(filepath.Join(model, "tokenizer.json"), []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, model
}

const (
	byteLevelFields = `"normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}, "post_processor": null`
	uncheckedFields = `"normalizer": null, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
		{"type": "Split", "pattern": {"Regex": "ab?|\\s+"}, "behavior": "Removed", "invert": true}, {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
		"post_processor": null`
)

// tells checks that what is printed has these words, whatever its line breaks.
func tells(t *testing.T, said string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(unbroken(said), unbroken(word)) {
			t.Errorf("does not say %q:\n%s", word, said)
		}
	}
}

// Ids of a kind of file that was not compared with `tokenizers` say so, where they are made and in the report; those of a kind that was
// say nothing.
func TestUncheckedKindsAreSaid(t *testing.T) {
	const note = `ids: by tracediff, unchecked kind: pre_tokenizer Split ab?|\s+ Removed inverted, ByteLevel`
	dir, model := tokenizerModel(t, uncheckedFields)
	input := []string{"--model", model, "--dir", filepath.Join(dir, "traces"), "--prompt", "ab 11"}
	said := told(t, 0, append([]string{"capture", "--side", "reference", "--reference", "go"}, input...)...)
	tells(t, said, "note: "+note, `5 "ab"  4 " "`)
	if strings.Contains(said, `"1"`) || strings.Contains(said, `"11"`) {
		t.Errorf("what the split removes has ids:\n%s", said)
	}
	reference := filepath.Join(dir, "traces", "reference.safetensors")
	var report struct{ Remarks []string }
	page := filepath.Join(dir, "report.json")
	said = told(t, 0, append([]string{"compare", "--local", reference, "--reference", reference, "--report", "json=" + page}, input...)...)
	tells(t, said, note)
	if err := json.Unmarshal(readAll(t, page), &report); err != nil || !strings.Contains(string(readAll(t, page)), "unchecked kind") {
		t.Errorf("the report does not say it: %v", err)
	}
	tells(t, told(t, 0, append([]string{"doctor"}, input[:2]...)...), "warning  input", note)

	dir, model = tokenizerModel(t, byteLevelFields)
	said = told(t, 0, "capture", "--side", "reference", "--reference", "go", "--model", model, "--dir", filepath.Join(dir, "traces"), "--prompt", "ab 11")
	tells(t, said, `5 "ab"  4 " "  6 "11"`)
	if strings.Contains(said, "unchecked") {
		t.Errorf("a kind that was compared is said to be unchecked:\n%s", said)
	}
}

// A tokenizer for which there is no code is transformers' to run, also of a described family, where transformers is the reference; elsewhere
// the error says so.
func TestIDsOfDescribedModelsByTheRunner(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	if err := os.CopyFS(model, os.DirFS("../../fixtures/gemma3n-tiny")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(model, "tokenizer.json")
	text := strings.Replace(string(readAll(t, name)), `"type": "Replace"`, `"type": "Lowercase", "was": "Replace"`, 1)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	traces := filepath.Join(dir, "traces")
	said := told(t, 2, "capture", "--model", model, "--dir", traces, "--prompt", "ab")
	tells(t, said, `normalizer: "Lowercase" is not implemented`, "hint: --reference hf makes the ids with the tokenizer of transformers; or give them: --tokens 2,513,88")
	python := filepath.Join(dir, "python")
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in
-c*) echo '{"executable":"python","python":"3.12.1","packages":{"torch":"2.15.0","transformers":"5.23.0"}}' ;;
*tracediff.ids*) cat >%[1]s/prompt; echo '{"ids":[2,8],"texts":["x","y"],"transformers":"5.23.0"}' ;;
*) exit 9 ;;
esac
`, dir)
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	tells(t, told(t, 0, "capture", "--side", "local", "--reference", "hf", "--python", python, "--model", model, "--dir", traces, "--prompt", "AB"),
		`tokens, pass 0:  2 "x"  8 "y"`, "note: the token ids of the prompt were made by the tokenizer of transformers 5.23.0")
	if got := string(readAll(t, filepath.Join(dir, "prompt"))); got != "AB" {
		t.Errorf("the runner was asked for %q", got)
	}
	tells(t, told(t, 0, "capture", "--side", "reference", "--reference", "go", "--model", model, "--dir", traces, "--tokens", "2,8"), "tokens, pass 0:  2  8")
	tells(t, told(t, 1, "doctor", "--model", model, "--prompt", "ab"), `error    input    reading tokenizer.json: normalizer: "Lowercase" is not implemented`,
		"hint: --reference hf makes the ids with the tokenizer of transformers; or give them: --tokens 2,513,88")
}

// An ending is what a text gets behind it, by a file whose template has an EOS: transformers puts it there, so it is fed.
func TestTemplateWithEOS(t *testing.T) {
	dir, model := tokenizerModel(t, strings.Replace(byteLevelFields, `"post_processor": null`, `"post_processor": {"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["<s>", 0],
		"trim_offsets": true, "add_prefix_space": false}`, 1))
	said := told(t, 0, "capture", "--side", "reference", "--reference", "go", "--model", model, "--dir", filepath.Join(dir, "traces"), "--prompt", "ab")
	tells(t, said, `tokens, pass 0:  0 "<s>"  5 "ab"  2 "b"`)
}

// A portGGUF writes a GGUF file with a tokenizer and no tensor of the model.
func portGGUF(t *testing.T, path, pre string, pieces []string, bos bool) {
	t.Helper()
	list := func(texts ...string) (data []byte) {
		for _, text := range texts {
			data = append(binary.LittleEndian.AppendUint64(data, uint64(len(text))), text...)
		}
		return data
	}
	types := make([]byte, 0, 4*len(pieces))
	for i := range pieces {
		kind := uint32(1)
		if i == 0 {
			kind = 3
		}
		types = binary.LittleEndian.AppendUint32(types, kind)
	}
	adds := []byte{0}
	if bos {
		adds[0] = 1
	}
	b := (&gguftest.Builder{}).Text("general.architecture", "llama").Text("tokenizer.ggml.model", "gpt2").Text("tokenizer.ggml.pre", pre).
		Array("tokenizer.ggml.tokens", 8, uint64(len(pieces)), list(pieces...)).Array("tokenizer.ggml.token_type", 5, uint64(len(pieces)), types).
		Array("tokenizer.ggml.merges", 8, 2, list("a b", "1 1")).Field("tokenizer.ggml.add_bos_token", 7, adds).Uint32("tokenizer.ggml.bos_token_id", 0).
		Tensor("output_norm.weight", 0, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), 1)
	if err := os.WriteFile(path, bytes.Clone(b.Bytes()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// doctor compares the tokenizer of a GGUF file with that of the checkpoint.
func TestDoctorComparesTheTokenizerOfAGGUF(t *testing.T) {
	dir, model := tokenizerModel(t, byteLevelFields)
	pieces := []string{"<s>", "a", "b", "1", "Ġ", "ab", "11"}
	other := append(pieces[:6:6], "x")
	for _, c := range []struct {
		name, pre string
		pieces    []string
		bos       bool
		want      []string
	}{
		{"same", "gpt-2", pieces, false, []string{"ok input the tokenizer of the port's file: the 7 tokens of the checkpoint's, and its ids for 2000 random texts"}},
		{"digits", "smollm", pieces, false, []string{
			"warning input the tokenizer of the port's file is not the checkpoint's: ", " of 2000 random texts get other ids, such as ", ": [3 3], and [6] in the checkpoint",
			`It splits by "smollm", which is \p{N}, then 's|'t`, "; the checkpoint by ByteLevel split", "hint: an engine that reads the file gives the model other ids than transformers does",
		}},
		{"bos", "gpt-2", pieces, true, []string{`is not the checkpoint's: it puts token 0, "<s>", before a prompt, and the checkpoint's puts nothing`}},
		{"pieces", "gpt-2", append(pieces[:5:5], "ba", "11"), false, []string{"was not compared with the checkpoint's: ", `needs "ab", which is not in the vocabulary`}},
		{"size", "gpt-2", append(pieces[:7:7], "x"), false, []string{"it has 8 tokens, and the checkpoint's has 7"}},
		{"unknown", "gpt-9", pieces, false, []string{"skipped input the tokenizer of the port's file was not compared with the checkpoint's: tokenizer.ggml.pre \"gpt-9\" is not read"}},
		{"merges", "gpt-2", other, false, []string{"was not compared", `needs "11"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := filepath.Join(dir, c.name+".gguf")
			portGGUF(t, port, c.pre, c.pieces, c.bos)
			tells(t, told(t, 1, "doctor", "--model", model, "--weights", port, "--tokens", "1,2"), c.want...)
		})
	}
}
