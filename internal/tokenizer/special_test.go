package tokenizer_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// Both files of the fixture mark the same ids, as far as they have them: SentencePiece knows turns as plain symbols.
func TestSpecialAndUnknown(t *testing.T) {
	for _, name := range []string{"tokenizer.json", "tokenizer.model"} {
		data, err := fs.ReadFile(ondisk.Files(), "gemma3n-tiny/"+name)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Open(fstest.MapFS{name: {Data: data}})
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range map[int]bool{0: true, 1: true, 2: true, 527: false, -1: false, 5000: false} {
			if got := tok.Special(id); got != want {
				t.Errorf("%s: Special(%d) is %v", name, id, got)
			}
		}
		if id, ok := tok.Unknown(); id != 3 || !ok {
			t.Errorf("%s: unknown is %d, %v", name, id, ok)
		}
	}
	if _, ok := open(t, withConfig(t, "qwen2", "", "")).Unknown(); ok {
		t.Error("Qwen has no unknown token")
	}
}

// What Chat writes is a conversation, what Encode gives is none, and one that breaks off is neither.
func TestTurn(t *testing.T) {
	for _, c := range lines[chatGolden](t, "chats.jsonl") {
		tok := open(t, withConfig(t, c.Family, string(c.Config), c.Jinja))
		for _, g := range c.Chats {
			ids, err := tok.Chat(g.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.Turn(ids); got != tokenizer.Answer {
				t.Errorf("%s: the chat of %q is %d", c.Name, g.Prompt, got)
			}
			if got := tok.Turn(ids[:len(ids)-1]); got != tokenizer.OpenTurn {
				t.Errorf("%s: all but the last of it is %d", c.Name, got)
			}
		}
		if got := tok.Turn(encode(t, tok, "Hello world")); got != tokenizer.NoTurns {
			t.Errorf("%s: a bare text is %d", c.Name, got)
		}
	}
}

// A config may name a class of transformers that splits otherwise than the file: that is no kind that was compared.
func TestClassOfTransformers(t *testing.T) {
	for _, c := range []struct{ family, class, want string }{
		{"starcoder", "GPT2Tokenizer", `tokenizer_class "GPT2Tokenizer" over normalizer none, pre_tokenizer Digits, individual, ByteLevel split`},
		{"starcoder", "GPT2TokenizerFast", `tokenizer_class "GPT2Tokenizer"`},
		{"starcoder", "PreTrainedTokenizerFast", ""},
		{"starcoder", "LlamaTokenizerFast", ""}, // transformers sees that it is at byte level
		{"llama2", "LlamaTokenizer", `tokenizer_class "LlamaTokenizer"`},
		{"qwen2", "Qwen2Tokenizer", ""},
		{"gemma", "GemmaTokenizer", ""},
		{"llama3", "Qwen2Tokenizer", `BPE, ignore_merges`}, // transformers makes its model anew
	} {
		got := open(t, withConfig(t, c.family, `{"tokenizer_class": "`+c.class+`"}`, "")).Unchecked()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: %q is unchecked, want %q", c.family, c.class, got, c.want)
		}
	}
}

// Where the config of the tokenizer names no class, that of the model does, by name or by its type; and some types have their class whatever is
// named.
func TestClassOfModelType(t *testing.T) {
	for _, c := range []struct{ family, config, model, want string }{
		{"starcoder", "", `{"model_type": "llama"}`, ""},
		{"starcoder", "", `{"model_type": "gpt2"}`, `tokenizer_class "GPT2Tokenizer" over normalizer none, pre_tokenizer Digits, individual, ByteLevel split`},
		{"starcoder", "{}", `{"model_type": "llama", "tokenizer_class": "Qwen2TokenizerFast"}`, `tokenizer_class "Qwen2Tokenizer" over`},
		{"starcoder", `{"tokenizer_class": "PreTrainedTokenizerFast"}`, `{"model_type": "qwen2"}`, `tokenizer_class "Qwen2Tokenizer" over`},
		{"starcoder", `{"tokenizer_class": "PreTrainedTokenizerFast"}`, `{"model_type": "qwen3", "tokenizer_class": "Qwen2Tokenizer"}`, ""},
		{"starcoder", `{"tokenizer_class": "LlamaTokenizer"}`, `{"model_type": "qwen2"}`, `tokenizer_class "Qwen2Tokenizer" over`},
		{"starcoder", `{"tokenizer_class": null}`, `{"model_type": "gpt_neox", "tokenizer_class": null}`, `no tokenizer_class for the model_type "gpt_neox" over`},
		{"qwen2", "", `{"model_type": "qwen3"}`, ""},
		{"qwen2", `{"add_prefix_space": false}`, `{"model_type": "qwen3"}`, ""},
		{"qwen2", `{"add_prefix_space": true}`, `{"model_type": "llama"}`, ""},
		{"qwen2", `{"add_prefix_space": true}`, `{"model_type": "qwen3"}`, `tokenizer_class "Qwen2Tokenizer" with add_prefix_space over`},
		{"gemma", "", `{"model_type": "gemma3_text"}`, ""},
	} {
		dir := withConfig(t, c.family, c.config, "")
		dir["config.json"] = &fstest.MapFile{Data: []byte(c.model)}
		got := open(t, dir).Unchecked()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s, %s: %q is unchecked, want %q", c.family, c.config, c.model, got, c.want)
		}
	}
	dir := withConfig(t, "qwen2", "", "")
	dir["config.json"] = &fstest.MapFile{Data: []byte("{")}
	if _, err := tokenizer.Open(dir); err == nil || !strings.Contains(err.Error(), "reading config.json") {
		t.Errorf("a damaged config.json: %v", err)
	}
}

// With these settings transformers does not do what tokenizer.json says.
func TestSettingsOfAConfig(t *testing.T) {
	for field, want := range map[string]string{
		`"split_special_tokens": true`: "split_special_tokens: only false", `"fast_tokenizer_files": ["tokenizer.json", "tokenizer.4.0.0.json"]`: `"tokenizer.4.0.0.json"`,
	} {
		if _, err := tokenizer.Open(withConfig(t, "qwen2", "{"+field+"}", "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", field, err, want)
		}
	}
	// A tokenizer of few tokens is left as it is.
	open(t, withConfig(t, "qwen2", `{"split_special_tokens": false, "fast_tokenizer_files": ["tokenizer.json"], "fix_mistral_regex": true}`, ""))
}

// transformers adds the special tokens of a config to those of tokenizer.json, and finds them in any text.
func TestSpecialTokensOfAConfig(t *testing.T) {
	for _, field := range []string{
		`"eos_token": "the"`, `"pad_token": {"content": "the"}`, `"additional_special_tokens": ["<|im_end|>", "the"]`, `"mask_token": "new"`, `"extra_special_tokens": {"image": "the"}`,
		`"image_token": "the"`, `"model_specific_special_tokens": {"image": "the"}`,
	} {
		_, err := tokenizer.Open(withConfig(t, "qwen2", "{"+field+"}", ""))
		if err == nil || !strings.Contains(err.Error(), "is not an added token of tokenizer.json") {
			t.Errorf("%s: %v, want that it is no added token", field, err)
		}
	}
	for name, text := range map[string]string{"special_tokens_map.json": `{"eos_token": {"content": "the"}}`, "added_tokens.json": `{"the": 7}`} {
		files := withConfig(t, "qwen2", "", "")
		files[name] = &fstest.MapFile{Data: []byte(text)}
		if _, err := tokenizer.Open(files); err == nil || !strings.Contains(err.Error(), "reading "+name+`: the special token "the" is not an added token`) {
			t.Errorf("%s: %v, want that it is no added token", name, err)
		}
		files[name] = &fstest.MapFile{Data: []byte(strings.Replace(text, "the", "<|im_end|>", 1))}
		open(t, files)
	}
	open(t, withConfig(t, "qwen2", `{"eos_token": "<|im_end|>", "unk_token": null, "add_bos_token": true, "image_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]}`, ""))
}
