package tokenizer_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/fuzztest"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// refusals are the reasons for which a good file gives no ids of a good text.
var refusals = []string{"transformers fails on this text too", "too many steps", "a text of more than"}

// use does with a tokenizer what the program does, and checks what every tokenizer promises.
func use(t *testing.T, tok *tokenizer.Tokenizer, text string) {
	t.Helper()
	ids, err := tok.Encode(text)
	if err == nil && !utf8.ValidString(text) || err != nil && utf8.ValidString(text) && !slices.ContainsFunc(refusals, func(why string) bool { return strings.Contains(err.Error(), why) }) {
		t.Fatalf("Encode(%q): %v", text, err)
	}
	for _, id := range ids {
		if id < 0 || id >= tok.Size() {
			t.Fatalf("Encode(%q) has id %d of %d", text, id, tok.Size())
		}
		tok.Text(id)
	}
	if bos, ok := tok.BOS(); ok && bos >= tok.Size() {
		t.Fatalf("BOS() = %d of %d", bos, tok.Size())
	}
	if _, err := tok.Chat(text); err == nil && !utf8.ValidString(text) {
		t.Fatalf("Chat(%q): no error", text)
	}
}

// maxSeed is the size of a file, in bytes, up to which it is opened often enough in a minute.
const maxSeed = 16 << 10

func FuzzOpenJSON(f *testing.F) {
	files := [][]byte{[]byte(small), []byte(strings.Replace(small, `["a", "b"]`, `"a b"`, 1)), []byte(strings.Replace(small, `"unk_token": "<unk>"`, `"unk_token": "<none>"`, 1))}
	for _, v := range lines[struct{ Tokenizer json.RawMessage }](f, "variants.jsonl") {
		if len(v.Tokenizer) < maxSeed {
			files = append(files, v.Tokenizer)
		}
	}
	for name := range families() {
		if file := familyJSON(f, name); len(file) < maxSeed {
			files = append(files, file)
		}
	}
	fuzztest.Files(f, files, func(t *testing.T, data []byte) {
		if tok, err := tokenizer.Open(fstest.MapFS{"tokenizer.json": {Data: data}}); err == nil {
			use(t, tok, "ab <x> a b new york <|eot_id|> 123\r\n")
		}
	})
}

func FuzzOpenConfig(f *testing.F) {
	const between = "\x00" // the configuration and the template
	seeds := [][]byte{[]byte(`{"added_tokens_decoder": {"0": {"content": "<|im_end|>"}}}` + between + chatMLTemplate)}
	for _, c := range lines[chatGolden](f, "chats.jsonl") {
		if both := string(c.Config) + between + c.Jinja; len(both) < maxSeed {
			seeds = append(seeds, []byte(both))
		}
	}
	fuzztest.Files(f, seeds, func(t *testing.T, both []byte) {
		config, jinja, _ := bytes.Cut(both, []byte(between))
		files := fstest.MapFS{"tokenizer.json": {Data: []byte(small)}, "tokenizer_config.json": {Data: config}, "chat_template.jinja": {Data: jinja}}
		if tok, err := tokenizer.Open(files); err == nil {
			use(t, tok, "ab")
		}
	})
}

func FuzzOpenModel(f *testing.F) {
	files := [][]byte{model{}.bytes(), model{}.with(piece{"<start_of_turn>", 4}, piece{"<end_of_turn>", 4}, piece{"▁", 1}).bytes()}
	fuzztest.Files(f, files, func(t *testing.T, data []byte) {
		if tok, err := tokenizer.Open(fstest.MapFS{"tokenizer.model": {Data: data}}); err == nil {
			use(t, tok, "a <start_of_turn> aba")
		}
	})
}

func FuzzEncode(f *testing.F) {
	byJSON, byModel := readers(f)
	llama3, qwen2, gpt2, llama2 := openFamily(f, "llama3"), openFamily(f, "qwen2"), openFamily(f, "gpt2"), openFamily(f, "llama2")
	spellLlama3, spellQwen2 := spelling(f, "llama3"), spelling(f, "qwen2")
	for _, g := range lines[golden](f, "texts.jsonl")[:200] {
		f.Add(g.Text)
	}
	for _, line := range mixedLines(f)[:200] {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		use(t, byJSON, text)
		use(t, byModel, text)
		use(t, gpt2, text)
		use(t, llama2, text)
		if !utf8.ValidString(text) {
			return
		}
		checkSpelling(t, llama3, spellLlama3, text, false)
		checkSpelling(t, qwen2, spellQwen2, text, true)
		ids := encode(t, byJSON, text)
		if got, want := spell(byJSON, ids), strings.ReplaceAll(text, "▁", " "); got != want {
			t.Fatalf("the pieces spell %q, want %q", got, want)
		}
		if other := encode(t, byModel, text); !spellsControl(text) && !equal(ids, other) {
			t.Fatalf("%q: tokenizer.json gives %v, tokenizer.model %v", text, ids, other)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	corpus, err := os.ReadFile("../../fixtures/tokenizer/corpus.txt")
	if err != nil {
		b.Fatal(err)
	}
	byJSON, byModel := readers(b)
	for _, size := range []struct {
		name string
		text string
	}{{"prompt", "What is the first thing that you see?"}, {"corpus", string(corpus)}, {"corpus×32", strings.Repeat(string(corpus), 32)}} {
		for name, tok := range map[string]*tokenizer.Tokenizer{"json": byJSON, "model": byModel} {
			b.Run(name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(len(size.text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tok.Encode(size.text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkFamilies encodes the mixed lines, which are harder than prose, and the prose.
func BenchmarkFamilies(b *testing.B) {
	corpus, err := os.ReadFile("../../fixtures/tokenizer/corpus.txt")
	if err != nil {
		b.Fatal(err)
	}
	for _, text := range []struct{ name, text string }{{"prose", string(corpus)}, {"mixed", strings.Join(mixedLines(b), "\n")}} {
		for name := range families() {
			tok := openFamily(b, name)
			b.Run(name+"/"+text.name, func(b *testing.B) {
				b.SetBytes(int64(len(text.text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tok.Encode(text.text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"tokenizer.json", "tokenizer.model"} {
		fsys := only(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				open(b, fsys)
			}
		})
	}
}
