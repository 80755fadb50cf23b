package tokenizer_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// Both files of the fixture mark the same ids, as far as they have them: SentencePiece knows turns as plain symbols.
func TestSpecialAndUnknown(t *testing.T) {
	for _, name := range []string{"tokenizer.json", "tokenizer.model"} {
		data, err := fs.ReadFile(fixtures.Files, "gemma3n-tiny/"+name)
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
	} {
		got := open(t, withConfig(t, c.family, `{"tokenizer_class": "`+c.class+`"}`, "")).Unchecked()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: %q is unchecked, want %q", c.family, c.class, got, c.want)
		}
	}
}

// transformers adds the special tokens of a config to those of tokenizer.json, and finds them in any text.
func TestSpecialTokensOfAConfig(t *testing.T) {
	for _, field := range []string{
		`"eos_token": "the"`, `"pad_token": {"content": "the"}`, `"additional_special_tokens": ["<|im_end|>", "the"]`, `"mask_token": "new"`, `"extra_special_tokens": {"image": "the"}`,
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
	open(t, withConfig(t, "qwen2", `{"eos_token": "<|im_end|>", "unk_token": null, "additional_special_tokens": ["<|im_start|>"]}`, ""))
}
