package tokenizer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/gguf/gguftest"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// A vocabulary is the tokenizer of a GGUF file in the making.
type vocabulary struct {
	model, pre string
	pieces     []string
	types      []uint32
	scores     []float32
	merges     []string
}

func texts(all []string) (data []byte) {
	for _, text := range all {
		data = append(binary.LittleEndian.AppendUint64(data, uint64(len(text))), text...)
	}
	return data
}

func (v vocabulary) bytes() []byte {
	var types, scores []byte
	for _, kind := range v.types {
		types = binary.LittleEndian.AppendUint32(types, kind)
	}
	for _, s := range v.scores {
		scores = binary.LittleEndian.AppendUint32(scores, math.Float32bits(s))
	}
	b := (&gguftest.Builder{}).Text("tokenizer.ggml.model", v.model).Text("tokenizer.ggml.pre", v.pre).
		Array("tokenizer.ggml.tokens", 8, uint64(len(v.pieces)), texts(v.pieces)).
		Array("tokenizer.ggml.token_type", 5, uint64(len(v.types)), types).
		Array("tokenizer.ggml.scores", 6, uint64(len(v.scores)), scores).
		Array("tokenizer.ggml.merges", 8, uint64(len(v.merges)), texts(v.merges)).
		Field("tokenizer.ggml.add_space_prefix", 7, []byte{0})
	return b.Bytes()
}

func (v vocabulary) open() (*tokenizer.Tokenizer, error) {
	data := v.bytes()
	g, err := gguf.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return tokenizer.FromGGUF(g)
}

// fixtureScores is the vocabulary of the fixture as a GGUF file has it: scores in the place of merges, which imply them.
func fixtureScores(t *testing.T) (vocabulary, *tokenizer.Tokenizer) {
	t.Helper()
	byJSON, byModel := readers(t)
	v := vocabulary{model: "llama"}
	for id := range byModel.Size() {
		piece, kind := byModel.Text(id), uint32(1)
		switch {
		case id == 3:
			kind = 2
		case id < 3:
			kind = 3
		case id < 115:
			kind = 4
		case id < 115+256:
			kind = 6
		default:
			piece = strings.ReplaceAll(piece, " ", "▁")
		}
		v.pieces, v.types, v.scores = append(v.pieces, piece), append(v.types, kind), append(v.scores, -float32(id))
	}
	return v, byJSON
}

// The ids of a file with scores are those of the same tokenizer by its merges, which SentencePiece's scores are where they come from.
func TestScoresImplyTheMerges(t *testing.T) {
	v, want := fixtureScores(t)
	tok, err := v.open()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range mixedLines(t)[:3000] {
		if a, b := encode(t, tok, text), encode(t, want, text); !equal(a, b) && !strings.Contains(text, "▁") {
			t.Fatalf("%q: %v, want %v", text, a, b)
		}
	}
	d, err := want.Compare(tok)
	if err != nil || d.Differ != 0 || d.Piece != -1 || d.Texts != 2000 {
		t.Errorf("%+v, %v", d, err)
	}
}

// A file with merges and the name of its expressions.
func TestMergesOfAGGUF(t *testing.T) {
	for _, c := range []struct {
		pre, text string
		want      []int
	}{
		{"gpt-2", "a11 b", []int{1, 5, 3, 2}},
		{"smollm", "a11 b", []int{1, 4, 4, 3, 2}},
		{"llama-bpe", "11", []int{5}},
		{"qwen2", "11", []int{4, 4}},
		{"qwen35", "11", []int{4, 4}},
		{"deepseek-v3", "1111a", []int{5, 4, 4, 1}},
		{"tekken", "11", []int{4, 4}},
		{"falcon", "11", []int{5}},
		{"gpt-2", "é<x>b", []int{6, 2}}, // bytes without a token leave nothing
	} {
		v := vocabulary{"gpt2", c.pre, []string{"<s>", "a", "b", "Ġ", "1", "11", "<x>"}, []uint32{3, 1, 1, 1, 1, 1, 4}, nil, []string{"1 1"}}
		tok, err := v.open()
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(t, tok, c.text); !equal(got, c.want) {
			t.Errorf("%s: %q is %v, want %v", c.pre, c.text, got, c.want)
		}
	}
}

func TestWhatIsNotReadOfAGGUF(t *testing.T) {
	good := func() vocabulary {
		return vocabulary{"gpt2", "gpt-2", []string{"<s>", "a", "b", "ab"}, []uint32{3, 1, 1, 1}, nil, []string{"a b"}}
	}
	if _, err := good().open(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		edit func(*vocabulary)
		want string
	}{
		{func(v *vocabulary) { v.model = "" }, tokenizer.ErrNoTokenizer.Error()},
		{func(v *vocabulary) { v.model = "bert" }, `"bert" is not read`},
		{func(v *vocabulary) { v.pre = "later" }, `"later" is not read`},
		{func(v *vocabulary) { v.types = v.types[:3] }, "4 tokens with 3 types"},
		{func(v *vocabulary) { v.pieces = nil }, "0 tokens"},
		{func(v *vocabulary) { v.pieces[2] = "a" }, "there already"},
		{func(v *vocabulary) { v.pieces[2] = "" }, "empty"},
		{func(v *vocabulary) { v.merges = []string{"ab"} }, "not a pair"},
		{func(v *vocabulary) { v.merges = []string{"b a"} }, `"ba"`},
		{func(v *vocabulary) { v.model = "llama" }, "0 of them, want 4"},
		{func(v *vocabulary) { v.model, v.scores, v.pieces[3] = "llama", make([]float32, 4), "xy" }, "a character that is not a token"},
		{func(v *vocabulary) { v.model, v.scores, v.types[3] = "llama", make([]float32, 4), 6 }, `the byte "ab"`},
	} {
		v := good()
		c.edit(&v)
		if _, err := v.open(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	empty := (&gguftest.Builder{}).Text("general.architecture", "llama").Bytes()
	g, err := gguf.Read(bytes.NewReader(empty), int64(len(empty)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokenizer.FromGGUF(g); !errors.Is(err, tokenizer.ErrNoTokenizer) {
		t.Errorf("%v", err)
	}
}

// Whoever has a character that is unknown to a vocabulary whose unknown token is missing gets an error, as transformers raises one.
func TestUnknownTokenThatIsMissing(t *testing.T) {
	tok, err := fromJSON(edit{`"unk_token": "<unk>"`, `"unk_token": "?"`, ""}.apply(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tok.Encode("ab"); err != nil || !equal(got, []int{4}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := tok.Encode("abc"); err == nil || !strings.Contains(err.Error(), `"?" is not in the vocabulary`) {
		t.Errorf("%v, want that the unknown token is missing", err)
	}
}

// An expression of a hostile file ends in an error, not in a search without end.
func TestHostileSplit(t *testing.T) {
	const split = `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|a)+c|b"}, "behavior": "Isolated", "invert": false}, "decoder": {`
	tok, err := fromJSON(edit{`"pre_tokenizer": {`, split, ""}.apply(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode(strings.Repeat("a", 1000)); err == nil || !strings.Contains(err.Error(), "too many steps") {
		t.Errorf("%v, want that the search takes too long", err)
	}
	grows := fmt.Sprintf(`"normalizer": {"type": "Sequence", "normalizers": [%s]}, "x": {`,
		strings.TrimSuffix(strings.Repeat(`{"type": "Replace", "pattern": {"String": "a"}, "content": "`+strings.Repeat("a", 1000)+`"},`, 16), ","))
	tok, err = fromJSON(strings.Replace(edit{`"normalizer": {`, grows, ""}.apply(t), `, "x": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}`, "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode("aa"); err == nil || !strings.Contains(err.Error(), "it makes a text of more than") {
		t.Errorf("%v, want that the text grows too long", err)
	}
}
