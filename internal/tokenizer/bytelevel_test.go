package tokenizer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	_ "github.com/tracediff/tracediff/internal/seeds"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// spelling returns a function that puts the bytes of ids together, by the vocabulary of a byte-level
// family as its file has it.
func spelling(t testing.TB, family string) func(ids []int) string {
	t.Helper()
	var file struct {
		Added []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
		Model struct{ Vocab map[string]int }
	}
	if err := json.Unmarshal(familyJSON(t, family), &file); err != nil {
		t.Fatal(err)
	}
	bytes := make(map[rune]byte)
	for b, next := 0, rune(256); b < 256; b++ {
		if r := rune(b); r > ' ' && r < 0x7f || r > 0xa0 && r != 0xad {
			bytes[r] = byte(b)
		} else {
			bytes[next] = byte(b)
			next++
		}
	}
	texts := make(map[int]string)
	for piece, id := range file.Model.Vocab {
		var text []byte
		for _, r := range piece {
			text = append(text, bytes[r])
		}
		texts[id] = string(text)
	}
	for _, a := range file.Added {
		texts[a.ID] = a.Content
	}
	return func(ids []int) string {
		var all strings.Builder
		for _, id := range ids {
			all.WriteString(texts[id])
		}
		return all.String()
	}
}

// fewMarks reports whether text has too few marks for the Stream-Safe Text Process of package norm.
func fewMarks(text string) bool {
	marks := 0
	for _, r := range text {
		if unicode.Is(unicode.M, r) {
			marks++
		}
	}
	return marks < 30
}

// checkSpelling checks that the ids of text spell it: as it is, or as a text that Unicode holds for the
// same and that is encoded the same.
func checkSpelling(t rapid.TB, tok *tokenizer.Tokenizer, spell func([]int) string, text string, normalized bool) {
	t.Helper()
	ids, err := tok.Encode(text)
	if err != nil {
		t.Fatalf("Encode(%q): %v", text, err)
	}
	got := spell(ids)
	if !normalized {
		if got != text {
			t.Fatalf("the ids of %q spell %q", text, got)
		}
		return
	}
	if again, err := tok.Encode(got); err != nil || !equal(again, ids) {
		t.Fatalf("the ids of %q spell %q, whose ids are others", text, got)
	}
	if fewMarks(text) && norm.NFD.String(got) != norm.NFD.String(text) {
		t.Fatalf("the ids of %q spell %q, which is not the same text", text, got)
	}
}

// Characters above U+FFFF are themselves, and not those of their lower 16 bits: U+E0041 with an acute accent is no Á.
func TestCharactersAboveTheBMPSurvive(t *testing.T) {
	qwen2, spell := openFamily(t, "qwen2"), spelling(t, "qwen2")
	for text, want := range map[string]string{
		"\U000e0041\u0301":           "\U000e0041\u0301",
		"x\U000e0065\u0301\u0323":    "x\U000e0065\u0323\u0301",
		"\U000f00c2\u0301":           "\U000f00c2\u0301",
		"A\U000e0301":                "A\U000e0301",
		"\U000e1100\u1161":           "\U000e1100\u1161",
		"\U00011099\U000110ba":       "\U0001109a", // which do compose
		"A\u0301 \u1100\u1161\u11a8": "\u00c1 \uac01",
	} {
		ids, err := qwen2.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := spell(ids); got != want {
			t.Errorf("%+q is encoded as %+q, want %+q", text, got, want)
		}
	}
	above, below := rapid.Int32Range(0x10000, 0x10ffff), rapid.Int32Range(0xc0, 0x1ff)
	marks := rapid.SampledFrom([]rune{0x300, 0x301, 0x302, 0x308, 0x323, 0x327, 0x338, 0x3099, 0x1161, 0x11a8})
	rapid.Check(t, func(t *rapid.T) {
		plane := rune(rapid.IntRange(1, 16).Draw(t, "plane")) << 16
		first := rapid.OneOf(above, rapid.Map(below, func(r rune) rune { return plane | r }), rapid.Map(rapid.Int32Range('A', 'z'), func(r rune) rune { return plane | r })).Draw(t, "first")
		checkSpelling(t, qwen2, spell, string([]rune{first, marks.Draw(t, "mark"), marks.Draw(t, "mark")}), true)
	})
}

func TestByteLevelIDsSpellTheText(t *testing.T) {
	llama3, qwen2 := openFamily(t, "llama3"), openFamily(t, "qwen2")
	spellLlama3, spellQwen2 := spelling(t, "llama3"), spelling(t, "qwen2")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		checkSpelling(t, llama3, spellLlama3, text, false)
		checkSpelling(t, qwen2, spellQwen2, text, true)
	})
}

// What characters beyond the first 65,536 compose to is what normalizers.NFC of `tokenizers` 0.23.3 makes of them: those whose low 16
// bits are a letter's compose to nothing.
func TestCharactersBeyondTheFirstPlaneCompose(t *testing.T) {
	tok, spell := openFamily(t, "qwen2"), spelling(t, "qwen2")
	for text, want := range map[string]string{
		"\U000e0047\u0301":     "\U000e0047\u0301",
		"\U00020041\u0300":     "\U00020041\u0300",
		"G\u0301":              "\u01f4",
		"\U00011099\U000110ba": "\U0001109a",
		"\U00011131\U00011127": "\U0001112e",
	} {
		if got := spell(encode(t, tok, text)); got != want {
			t.Errorf("%+q becomes %+q, want %+q", text, got, want)
		}
	}
}

func TestTextShowsByteLevelPieces(t *testing.T) {
	tok := openFamily(t, "llama3")
	for text, want := range map[string][]string{
		" the":               {" the"},
		" lighthouse":        {" lighthouse"},
		"\n\n\n":             {"\n\n\n"},
		"\x00\x7f":           {"\x00", "\x7f"},
		"\U00010fff":         {"<0xF0><0x90>", "<0xBF>", "<0xBF>"}, // no piece is a character
		"<|begin_of_text|>a": {"<|begin_of_text|>", "a"},
		" Маяк":              {" Маяк"},
	} {
		var got []string
		for _, id := range encode(t, tok, text) {
			got = append(got, tok.Text(id))
			if alone := tok.Texts()(id); alone != got[len(got)-1] {
				t.Errorf("Texts gives %q, Text %q", alone, got[len(got)-1])
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("the pieces of %q are %q, want %q", text, got, want)
		}
	}
	for _, id := range []int{-1, tok.Size()} {
		if got := tok.Text(id); !strings.HasPrefix(got, "<id ") {
			t.Errorf("Text(%d) = %q, want that there is none", id, got)
		}
	}
}
