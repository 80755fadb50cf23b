package tokenizer_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/tokenizer"
)

// use does with a tokenizer what the program does, and checks what every tokenizer promises.
func use(t *testing.T, tok *tokenizer.Tokenizer, text string) {
	t.Helper()
	ids, err := tok.Encode(text)
	if (err == nil) != utf8.ValidString(text) {
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

func FuzzOpenJSON(f *testing.F) {
	f.Add([]byte(small), "ab <x> abab")
	f.Add([]byte(strings.Replace(small, `["a", "b"]`, `"a b"`, 1)), "ab\n")
	for _, v := range lines[struct{ Tokenizer json.RawMessage }](f, "variants.jsonl") {
		f.Add([]byte(v.Tokenizer), "a b new york")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if tok, err := tokenizer.Open(fstest.MapFS{"tokenizer.json": {Data: data}}); err == nil {
			use(t, tok, text)
		}
	})
}

func FuzzOpenModel(f *testing.F) {
	f.Add(model{}.bytes(), "ab aba")
	f.Add(model{}.with(piece{"<start_of_turn>", 4}, piece{"<end_of_turn>", 4}, piece{"▁", 1}).bytes(), "a <start_of_turn>")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if tok, err := tokenizer.Open(fstest.MapFS{"tokenizer.model": {Data: data}}); err == nil {
			use(t, tok, text)
		}
	})
}

func FuzzEncode(f *testing.F) {
	byJSON, byModel := readers(f)
	for _, g := range lines[golden](f, "texts.jsonl")[:200] {
		f.Add(g.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		use(t, byJSON, text)
		use(t, byModel, text)
		if !utf8.ValidString(text) {
			return
		}
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
