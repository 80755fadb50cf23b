package tokenizer_test

import (
	"bufio"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/internal/tokenizer"
)

// fixture holds the tokenizer of the tiny checkpoint: tokenizer.json and tokenizer.model both.
const fixture = "../../fixtures/gemma3n-tiny/"

// only returns a directory with one file of the fixture.
func only(t testing.TB, name string) fs.FS {
	t.Helper()
	data, err := os.ReadFile(fixture + name)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{name: {Data: data}}
}

func open(t testing.TB, fsys fs.FS) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Open(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// readers returns the fixture by both of its files.
func readers(t testing.TB) (byJSON, byModel *tokenizer.Tokenizer) {
	t.Helper()
	return open(t, only(t, "tokenizer.json")), open(t, only(t, "tokenizer.model"))
}

func encode(t testing.TB, tok *tokenizer.Tokenizer, text string) []int {
	t.Helper()
	ids, err := tok.Encode(text)
	if err != nil {
		t.Fatalf("Encode(%q): %v", text, err)
	}
	return ids
}

// lines decodes a file of testdata, which fixtures/tokenizer/make.py wrote.
func lines[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	dec := json.NewDecoder(bufio.NewReader(f))
	for {
		var line T
		err := dec.Decode(&line)
		if err == io.EOF && len(all) > 0 {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, line)
	}
}

// A golden is a text with the ids that the Python packages give it: tokenizers those of tokenizer.json,
// sentencepiece those of tokenizer.model, which are left out where they are the same.
type golden struct {
	Text  string
	JSON  []int
	Model []int
}

// spellsControl reports whether the two files may give text different ids.
func spellsControl(text string) bool {
	for _, control := range []string{"<pad>", "<eos>", "<bos>", "<unk>"} {
		if strings.Contains(text, control) {
			return true
		}
	}
	return false
}

func TestEncodeEqualsPython(t *testing.T) {
	byJSON, byModel := readers(t)
	texts := lines[golden](t, "texts.jsonl")
	if len(texts) < 1500 {
		t.Fatalf("only %d texts", len(texts))
	}
	differ := 0
	for _, g := range texts {
		want := g.Model
		if want == nil {
			want = g.JSON
		} else if differ++; !spellsControl(g.Text) {
			t.Errorf("%q: the golden ids of the two files differ, and no control token is the reason", g.Text)
		}
		if got := encode(t, byJSON, g.Text); !equal(got, g.JSON) {
			t.Errorf("tokenizer.json: Encode(%q) = %v, want %v", g.Text, got, g.JSON)
		}
		if got := encode(t, byModel, g.Text); !equal(got, want) {
			t.Errorf("tokenizer.model: Encode(%q) = %v, want %v", g.Text, got, want)
		}
	}
	if differ == 0 {
		t.Error("no text shows how the two files differ")
	}
}

// equal compares ids.
func equal(a, b []int) bool {
	return slices.Equal(a, b)
}

func TestChatEqualsTransformers(t *testing.T) {
	byJSON, byModel := readers(t)
	for _, g := range lines[struct {
		Prompt string
		IDs    []int
	}](t, "chat.jsonl") {
		got, err := byJSON.Chat(g.Prompt)
		if err != nil || !cmp.Equal(got, g.IDs) {
			t.Errorf("tokenizer.json: Chat(%q) = %v, %v, want %v", g.Prompt, got, err, g.IDs)
		}
		if spellsControl(g.Prompt) {
			continue
		}
		got, err = byModel.Chat(g.Prompt)
		if err != nil || !cmp.Equal(got, g.IDs) {
			t.Errorf("tokenizer.model: Chat(%q) = %v, %v, want %v", g.Prompt, got, err, g.IDs)
		}
	}
}

// TestVariantsEqualPython has small tokenizer.json files for what the fixture does not use.
func TestVariantsEqualPython(t *testing.T) {
	for _, v := range lines[struct {
		Name      string
		Tokenizer json.RawMessage
		Cases     []struct {
			Text string
			IDs  []int
		}
	}](t, "variants.jsonl") {
		t.Run(v.Name, func(t *testing.T) {
			tok := open(t, fstest.MapFS{"tokenizer.json": {Data: v.Tokenizer}})
			for _, c := range v.Cases {
				if got, err := tok.Prompt(c.Text); err != nil || !equal(got, c.IDs) {
					t.Errorf("Prompt(%q) = %v, %v, want %v", c.Text, got, err, c.IDs)
				}
			}
		})
	}
}

func TestFixtureLayout(t *testing.T) {
	byJSON, byModel := readers(t)
	for name, tok := range map[string]*tokenizer.Tokenizer{"tokenizer.json": byJSON, "tokenizer.model": byModel} {
		if bos, ok := tok.BOS(); bos != 2 || !ok || tok.Size() != 1024 {
			t.Errorf("%s: BOS() = %d, %t, Size() = %d, want 2, true, 1024", name, bos, ok, tok.Size())
		}
		for id, want := range map[int]string{
			2: "<bos>", 105: "<start_of_turn>", 107: "\n", 125: "<0x0A>", 374: " the", 395: "  ", 1023: "½",
			-1: "<id -1?>", 1024: "<id 1024?>", 5000: "<id 5000?>",
		} {
			if got, alone := tok.Text(id), tok.Texts()(id); got != want || alone != want {
				t.Errorf("%s: Text(%d) = %q, Texts %q, want %q", name, id, got, alone, want)
			}
		}
		if got := encode(t, tok, "What"); len(got) != 1 || tok.Text(got[0]) != "What" {
			t.Errorf("%s: Encode(What) = %v, want one token of that text", name, got)
		}
	}
}

func TestEncodeRefusesInvalidUTF8(t *testing.T) {
	byJSON, byModel := readers(t)
	for text, place := range map[string]string{
		"\xff":               "at byte 0 (0xFF)",
		"caf\xe9":            "at byte 3 (0xE9)",
		"\ufffd ok \xf0\x9f": "at byte 7 (0xF0)",
		"\xed\xa0\x80":       "at byte 0 (0xED)", // half of a surrogate pair
	} {
		for name, tok := range map[string]*tokenizer.Tokenizer{"tokenizer.json": byJSON, "tokenizer.model": byModel} {
			if ids, err := tok.Encode(text); err == nil || !strings.Contains(err.Error(), place) {
				t.Errorf("%s: Encode(%q) = %v, %v, want an error %s", name, text, ids, err, place)
			}
			if ids, err := tok.Chat(text); err == nil || !strings.Contains(err.Error(), place) {
				t.Errorf("%s: Chat(%q) = %v, %v, want an error %s", name, text, ids, err, place)
			}
		}
	}
}

func TestOpenChooses(t *testing.T) {
	const control = "<bos>" // one token to tokenizer.json alone
	both := open(t, os.DirFS(fixture))
	if got := encode(t, both, control); !cmp.Equal(got, []int{2}) {
		t.Errorf("with both files Encode(%q) = %v, want tokenizer.json's [2]", control, got)
	}
	_, byModel := readers(t)
	if got := encode(t, byModel, control); len(got) < 2 {
		t.Errorf("with tokenizer.model alone Encode(%q) = %v, want plain characters", control, got)
	}

	_, err := tokenizer.Open(fstest.MapFS{"config.json": {}})
	if err == nil || !containsAll(err.Error(), "tokenizer.json", "tokenizer.model", "--tokens") {
		t.Errorf("without files: %v, want an error that names both files and --tokens", err)
	}

	// A refused tokenizer.json is not passed over in silence.
	beside := only(t, "tokenizer.model").(fstest.MapFS)
	beside["tokenizer.json"] = &fstest.MapFile{Data: []byte("{}")}
	if _, err := tokenizer.Open(beside); err == nil || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("bad tokenizer.json beside a good tokenizer.model: %v, want an error", err)
	}
	if _, err := tokenizer.Open(fstest.MapFS{"tokenizer.json": {Mode: fs.ModeDir}}); err == nil {
		t.Error("tokenizer.json is a directory: want an error")
	}
}

func containsAll(s string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

func TestOpenStopsReadingHugeFiles(t *testing.T) {
	_, err := tokenizer.Open(endless{})
	if err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("endless tokenizer.json: %v, want an error that gives the limit", err)
	}
}

// endless is a directory in which every file says that it is empty and never ends.
type endless struct{}

func (endless) Open(string) (fs.File, error)  { return endless{}, nil }
func (endless) Stat() (fs.FileInfo, error)    { return endless{}, nil }
func (endless) Read(p []byte) (int, error)    { return len(p), nil }
func (endless) Close() error                  { return nil }
func (endless) Name() string                  { return "" }
func (endless) Size() int64                   { return 0 }
func (endless) Mode() fs.FileMode             { return 0 }
func (endless) ModTime() (modified time.Time) { return modified }
func (endless) IsDir() bool                   { return false }
func (endless) Sys() any                      { return nil }

// TestTextsSpellTheInput: the pieces of any text, put together, are that text.
func TestTextsSpellTheInput(t *testing.T) {
	byJSON, byModel := readers(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if got, want := spell(byJSON, mustEncode(t, byJSON, text)), strings.ReplaceAll(text, "▁", " "); got != want {
			t.Fatalf("tokenizer.json spells %q, want %q", got, want)
		}
		if a, b := mustEncode(t, byJSON, text), mustEncode(t, byModel, text); !spellsControl(text) && !equal(a, b) {
			t.Fatalf("%q: tokenizer.json gives %v, tokenizer.model %v", text, a, b)
		}
	})
}

// TestReadersAgree draws texts from the pieces themselves, where merges compete.
func TestReadersAgree(t *testing.T) {
	byJSON, byModel := readers(t)
	texts := rapid.Custom(func(t *rapid.T) string {
		var text strings.Builder
		for _, id := range rapid.SliceOfN(rapid.IntRange(4, byJSON.Size()-1), 1, 40).Draw(t, "ids") {
			text.WriteString(byJSON.Text(id))
		}
		return text.String()
	}).Filter(func(text string) bool { return !spellsControl(text) }) // by chance the pieces may spell a control token
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		if a, b := mustEncode(t, byJSON, text), mustEncode(t, byModel, text); !equal(a, b) {
			t.Fatalf("%q: tokenizer.json gives %v, tokenizer.model %v", text, a, b)
		}
	})
}

func mustEncode(t *rapid.T, tok *tokenizer.Tokenizer, text string) []int {
	ids, err := tok.Encode(text)
	if err != nil {
		t.Fatalf("Encode(%q): %v", text, err)
	}
	return ids
}

// spell puts the texts of ids together, bytes as bytes.
func spell(tok *tokenizer.Tokenizer, ids []int) string {
	var out strings.Builder
	for _, id := range ids {
		if id >= 115 && id < 115+256 { // the byte pieces of the fixture
			out.WriteByte(byte(id - 115))
		} else {
			out.WriteString(tok.Text(id))
		}
	}
	return out.String()
}
