package tokenizer_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracediff/tracediff/internal/tokenizer"
)

// small is a tokenizer.json that is read; every case below changes one thing in it.
const small = `{
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 1, "content": "<bos>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 5, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
  ],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
  "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [], "special_tokens": {"<bos>": {"id": "<bos>", "ids": [1], "tokens": ["<bos>"]}}},
  "decoder": {"type": "Fuse"},
  "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": false, "ignore_merges": false,
    "vocab": {"<unk>": 0, "<bos>": 1, "a": 2, "b": 3, "ab": 4},
    "merges": [["a", "b"]]}
}`

func fromJSON(text string) (*tokenizer.Tokenizer, error) {
	return tokenizer.Open(fstest.MapFS{"tokenizer.json": {Data: []byte(text)}})
}

// An edit changes a part of small and says what the error then names, or that there is none.
type edit struct{ old, new, want string }

func (e edit) apply(t *testing.T) string {
	t.Helper()
	if strings.Count(small, e.old) < 1 {
		t.Fatalf("%q is no part of the file", e.old)
	}
	return strings.Replace(small, e.old, e.new, 1)
}

func TestJSONBeyondGemmaIsRefusedByName(t *testing.T) {
	if _, err := fromJSON(small); err != nil {
		t.Fatal(err)
	}
	for _, e := range []edit{
		{`"truncation": null`, `"truncation": 8`, "truncation"},
		{`"padding": null`, `"padding": "longest"`, "padding"},
		{`"type": "Replace"`, `"type": "NFKC"`, "normalizer"},
		{`"type": "Replace"`, `"type": "Lowercase"`, "Lowercase"},
		{`"content": "▁"`, `"contents": "_"`, "normalizer"},
		{`"pattern": {"String": " "}, "content"`, `"pattern": {"String": " ", "Regex": " "}, "content"`, "normalizer"},
		{`"pattern": {"String": " "}, "content"`, `"pattern": {"String": ""}, "content"`, "normalizer"},
		{`"normalizer": {`, `"normalizer": {"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": []}]}, "decoder": {`, "Sequence in a Sequence"},
		{`"normalizer": {`, `"normalizer": {"type": "Sequence", "normalizers": null}, "decoder": {`, "without the list"},
		{`"normalizer": {`, `"normalizer": {"type": "Sequence", "normalizers": [], "more": 1}, "decoder": {`, "more"},
		{`"normalizer": {`, `"normalizer": null, "x": {`, "x"},
		{`"behavior": "MergedWithPrevious"`, `"behavior": "Merged"`, "pre_tokenizer"},
		{`"type": "Split"`, `"type": "ByteLevel"`, "pre_tokenizer"},
		{`"type": "TemplateProcessing"`, `"type": "ByteLevel"`, "post_processor"},
		{`"type": "TemplateProcessing"`, `"type": "BertProcessing"`, "BertProcessing"},
		{`"post_processor": {`, `"post_processor": {"type": "Sequence", "processors": [{"type": "Roberta"}]}, "decoder": {`, "Roberta"},
		{`"post_processor": {`, `"post_processor": {"type": "Sequence", "processors": 7}, "decoder": {`, "post_processor"},
		{`{"Sequence": {"id": "A", "type_id": 0}}`, `{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<unk>"}}`, "post_processor"},
		{`"ids": [1]`, `"ids": [6]`, "post_processor"},
		{`"ids": [1]`, `"ids": [-1]`, "post_processor"},
		{`"ids": [1]`, `"ids": [` + strings.Repeat("1,", 64) + `1]`, "65 ids around a text"},
		{`"post_processor": {`, `"post_processor": {"type": "RobertaProcessing", "sep": ["<unk>"], "cls": ["<bos>", 1]}, "decoder": {`, "sep"},
		{`"post_processor": {`, `"post_processor": {"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["<unk>", 0], "cls": ["<bos>", 1]},
			{"type": "BertProcessing", "sep": ["<unk>", 0], "cls": ["<bos>", 1]}]}, "decoder": {`, "two that put ids around"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Digits"}, "decoder": {`, "Digits"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Punctuation", "behavior": "Kept"}, "decoder": {`, "Punctuation"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": {`, "WhitespaceSplit"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
			{"type": "Digits", "individual_digits": true}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]}, "decoder": {`, "first of a Sequence"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [` + strings.Repeat("{},", 99) + `{}]}, "decoder": {`, "16"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": {}}, "decoder": {`, "pre_tokenizer"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": false}, "decoder": {`, `"(a+)+$"`},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false}, "decoder": {`, "pattern"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}, "decoder": {`, "together with a Metaspace"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "__", "prepend_scheme": "first"}, "decoder": {`, "replacement"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "last"}, "decoder": {`, "prepend_scheme"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": false}, "decoder": {`, "add_prefix_space"},
		{`"pre_tokenizer": {`, `"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
			{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}]}, "decoder": {`, "more than one ByteLevel"},
		{`"type": "BPE"`, `"type": "Unigram"`, "model.type"},
		{`"1.0"`, `"2.0"`, "version"},
		{`"dropout": null`, `"dropout": 0.1`, "model.dropout"},
		{`"continuing_subword_prefix": null`, `"continuing_subword_prefix": "##"`, "model.continuing_subword_prefix"},
		{`"end_of_word_suffix": null`, `"end_of_word_suffix": "</w>"`, "model.end_of_word_suffix"},
		{`"fuse_unk": true`, `"fuse_unk": true, "cache_capacity": 3`, "cache_capacity"},
	} {
		_, err := fromJSON(e.apply(t))
		if err == nil || !containsAll(err.Error(), "tokenizer.json", e.want) {
			t.Errorf("%s: %v, want an error that names %s", e.new, err, e.want)
		}
	}
	// The way out is named where the file is sound and only beyond this reader.
	_, err := fromJSON(edit{`"type": "BPE"`, `"type": "Unigram"`, ""}.apply(t))
	if err == nil || !strings.Contains(err.Error(), "--tokens") {
		t.Errorf("Unigram: %v, want an error that names --tokens", err)
	}
}

// A token that another has swallowed and that ends before the other does makes `tokenizers` fail.
func TestSwallowedTokenIsRefused(t *testing.T) {
	const flags = `"single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}`
	strips := strings.Replace(flags, `"rstrip": false`, `"rstrip": true`, 1)
	tok, err := fromJSON(edit{`"content": "<x>", ` + flags, `"content": "<x>", ` + strips + `, {"id": 6, "content": "\n", ` + strings.Replace(flags, `"lstrip": false`, `"lstrip": true`, 1), ""}.apply(t))
	if err != nil {
		t.Fatal(err)
	}
	for text, fails := range map[string]bool{"<x>\na": false, "<x>a\n a": false, "<x>\n a": true, "<x>\n\n": true, "<x>a \n<x> \n ": true} {
		if _, err := tok.Encode(text); (err != nil) != fails || fails && !strings.Contains(err.Error(), `"\n" is in the white space`) {
			t.Errorf("%q: %v, want that it fails: %v", text, err, fails)
		}
	}
}

// Names of pieces and of special tokens may be any, and so may escapes of pairs of surrogates and of backslashes.
func TestSpellingsOfJSON(t *testing.T) {
	for _, e := range []edit{
		{`"ab": 4`, `"ab": 4, "Merges": 5, "\ud83d\ude00": 6, "\\\\ud800": 7, "\u00e9": 8`, ""}, {`{"<bos>": {`, `{"Bos": {"id": "Bos", "ids": [0]}, "<bos>": {`, ""},
	} {
		if _, err := fromJSON(e.apply(t)); err != nil {
			t.Errorf("%s: %v", e.new, err)
		}
	}
}

// What a normaliser makes of a short text is bounded.
func TestNormalizerThatGrowsIsStopped(t *testing.T) {
	grows := `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + strings.Repeat("a", 1000) + `"}`
	tok, err := fromJSON(edit{`"normalizer": {`, `"normalizer": {"type": "Sequence", "normalizers": [` + strings.Repeat(grows+",", 15) + grows + `]}, "decoder": {`, ""}.apply(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode("aaaa"); err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("%v, want that the text is too long", err)
	}
}

func TestDamagedJSONIsRefused(t *testing.T) {
	long := strings.Repeat("a", 1025)
	for _, e := range []edit{
		{small, ``, "EOF"},
		{small, `null`, "model.type"},
		{small, small + `{}`, "after the end"},
		{small, small[:200], "EOF"},
		{`"1.0"`, "\"\xff\"", "UTF-8"},
		{`"merges"`, `"Merges"`, `"Merges"`},
		{`"merges"`, `"merge\u017f"`, "merge"},
		{`"merges"`, `"merges": [], "Merges"`, `"Merges"`},
		{`"ids": [1]`, `"IDs": [1]`, `"IDs"`},
		{`"ab": 4`, `"\ud800": 4`, `\ud800`},
		{`"ab": 4`, `"a\ud83d\ud83d\ude00": 4`, `\ud83d`},
		{`"content": "<x>"`, `"content": "\\\\\udE00"`, `\udE00`},
		{`"a": 2`, `"a": 9`, "number 2"},
		{`"a": 2`, `"a": 3`, "number 2"},
		{`"a": 2`, `"a": -1`, "number 2"},
		{`"a": 2`, `"a": 99999999999`, "model.vocab"},
		{`"a": 2`, `"a": 2.5`, "model.vocab"},
		{`"ab": 4`, `"": 4`, "piece 4"},
		{`"ab": 4`, `"` + long + `": 4`, "piece 4"},
		{`["a", "b"]`, `["a", "c"]`, `"c"`},
		{`["a", "b"]`, `["b", "a"]`, `"ba"`},
		{`["a", "b"]`, `["a"]`, "want 2"},
		{`["a", "b"]`, `["a", "b", "a"]`, "want 2"},
		{`["a", "b"]`, `"a b a"`, "want 2"},
		{`["a", "b"]`, `"ab"`, "want 2"},
		{`["a", "b"]`, `[["a", "b"]]`, "model.merges"},
		{`["a", "b"]`, `{"a": "b"}`, "model.merges"},
		{`["a", "b"]`, `7`, "model.merges"},
		{`[["a", "b"]]`, `"a b"`, "model.merges"},
		{`[["a", "b"]]`, `null`, "model.merges"},
		{`,
    "merges": [["a", "b"]]`, ``, "model.merges"},
		{`"content": "<x>"`, `"content": "<bos>"`, "listed twice"},
		{`"content": "<x>"`, `"content": ""`, "token 5"},
		{`"normalized": false, "special": true}
  ]`, `"normalized": true}, {"id": 6, "content": "a b", "normalized": true}, {"id": 7, "content": "a▁b", "normalized": true}
  ]`, `"a b" and "a▁b"`},
		{`"content": "<x>"`, `"content": "` + long + `"`, "token 5"},
		{`"<bos>": {"id"`, `"<eos>": {"id"`, "post_processor"},
		{`"single": [`, `"single": "A", "x": [`, "post_processor"},
	} {
		_, err := fromJSON(e.apply(t))
		if err == nil || !containsAll(err.Error(), "tokenizer.json", e.want) {
			t.Errorf("%.80s: %v, want an error that contains %s", e.new, err, e.want)
		}
	}
}

func TestBOSComesFromThePostProcessor(t *testing.T) {
	const first = `{"SpecialToken": {"id": "<bos>", "type_id": 0}}, `
	for _, c := range []struct {
		name, text string
		id         int
		ok         bool
	}{
		{"first in the template", small, 1, true},
		{"another name in the template", strings.ReplaceAll(small, "<bos>", "<s>"), 1, true},
		{"none in the template", edit{first, "", ""}.apply(t), -1, false},
		{"no post_processor", edit{`"post_processor": {`, `"post_processor": null, "decoder": {`, ""}.apply(t), -1, false},
		{
			"no template in a sequence",
			edit{`"post_processor": {`, `"post_processor": {"type": "Sequence", "processors": []}, "decoder": {`, ""}.apply(t), -1, false,
		},
	} {
		tok, err := fromJSON(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if id, ok := tok.BOS(); id != c.id || ok != c.ok {
			t.Errorf("%s: BOS() = %d, %t, want %d, %t", c.name, id, ok, c.id, c.ok)
		}
	}
}

func TestChatNeedsTheMarkers(t *testing.T) {
	tok, err := fromJSON(small)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Chat("a"); err == nil || !strings.Contains(err.Error(), "<start_of_turn>") {
		t.Errorf("tokenizer.json: Chat gives %v, want an error that names the missing marker", err)
	}
	// A control token of that name is not enough: SentencePiece would read the marker as characters.
	tok, err = fromModel(model{}.with(piece{"<start_of_turn>", 3}, piece{"<end_of_turn>", 3}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Chat("a"); err == nil || !strings.Contains(err.Error(), "<start_of_turn>") {
		t.Errorf("tokenizer.model: Chat gives %v, want an error that names the missing marker", err)
	}
}

// A piece of a SentencePiece model, by its text and the number of its type.
type piece struct {
	text string
	kind uint64
}

// A model is a tokenizer.model in the making. Without changes it is one that is read.
type model struct {
	pieces     []piece
	trainer    map[protowire.Number]uint64 // on top of BPE with byte fallback
	normalizer map[protowire.Number]uint64 // instead of no dummy prefix, no removal of spaces
	charsmap   string
	noFields   bool // no normalizer_spec at all
}

// with adds pieces.
func (m model) with(pieces ...piece) model {
	m.pieces = slices.Concat(m.pieces, pieces)
	return m
}

func varints(b []byte, fields map[protowire.Number]uint64) []byte {
	for number, v := range fields {
		b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
	}
	return b
}

func message(b []byte, number protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), body)
}

func (m model) bytes() []byte {
	all := []piece{{"<unk>", 2}, {"<bos>", 3}, {"a", 1}, {"b", 1}, {"ab", 1}}
	for i := range 256 {
		all = append(all, piece{fmt.Sprintf("<0x%02X>", i), 6})
	}
	var b []byte
	for _, p := range append(all, m.pieces...) {
		b = message(b, 1, varints(message(nil, 1, []byte(p.text)), map[protowire.Number]uint64{3: p.kind}))
	}
	b = message(b, 2, varints(nil, map[protowire.Number]uint64{3: 2, 35: 1}))
	b = message(b, 2, varints(nil, m.trainer)) // a repeated message adds to the first
	normalizer := m.normalizer
	if normalizer == nil {
		normalizer = map[protowire.Number]uint64{3: 0, 4: 0}
	}
	if m.noFields {
		return b
	}
	return message(b, 3, message(varints(nil, normalizer), 2, []byte(m.charsmap)))
}

func fromModel(m model) (*tokenizer.Tokenizer, error) {
	return tokenizer.Open(fstest.MapFS{"tokenizer.model": {Data: m.bytes()}})
}

func TestModelBeyondGemmaIsRefusedByName(t *testing.T) {
	tok, err := fromModel(model{})
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(t, tok, "aba"); !equal(got, []int{4, 2}) {
		t.Fatalf("Encode(aba) = %v, want [4 2]", got)
	}
	type fields = map[protowire.Number]uint64
	for _, c := range []struct {
		model model
		want  string
	}{
		// These two make go-sentencepiece panic.
		{model{noFields: true}, "add_dummy_prefix"},
		{model{normalizer: fields{}}, "add_dummy_prefix"},
		{model{normalizer: fields{3: 1, 4: 0}}, "add_dummy_prefix"},
		{model{normalizer: fields{3: 0}}, "remove_extra_whitespaces"},
		{model{normalizer: fields{3: 0, 4: 0, 5: 0}}, "escape_whitespaces"},
		{model{charsmap: "nfkc"}, "precompiled_charsmap"},
		{model{trainer: fields{3: 1}}, "model_type"},
		{model{trainer: fields{35: 0}}, "byte_fallback"},
		{model{trainer: fields{24: 1}}, "treat_whitespace_as_suffix"},
		{model{}.with(piece{"c", 5}), "unused"},
		{model{}.with(piece{"c", 7}), "unknown type 7"},
		{model{}.with(piece{"a", 1}), "pieces 2 and 261"},
		{model{}.with(piece{"", 1}), "piece 261"},
		{model{}.with(piece{"\xff", 1}), "piece 261"},
		{model{}.with(piece{strings.Repeat("c", 1025), 1}), "piece 261"},
	} {
		_, err := fromModel(c.model)
		if err == nil || !containsAll(err.Error(), "tokenizer.model", c.want) {
			t.Errorf("%v, want an error that names %s", err, c.want)
		}
	}
}

func TestDamagedModelIsRefused(t *testing.T) {
	good := model{}.bytes()
	var symbols model
	for i := range 300 {
		symbols = symbols.with(piece{fmt.Sprintf("%03d%s", i, strings.Repeat("x", 1000)), 4})
	}
	for name, data := range map[string][]byte{
		"empty":                 {},
		"cut":                   good[:len(good)-1],
		"a zip":                 []byte("PK\x03\x04 and more"),
		"length past the end":   {0x0a, 0xff, 0xff, 0xff, 0xff, 0x07},
		"too long user symbols": symbols.bytes(),
		"a million pieces":      bytes.Repeat([]byte{0x0a, 0x00}, 1<<20+1),
		"no bytes":              []byte(strings.ReplaceAll(string(good), "<0x7F>", "<0x7f?")),
		// A field of the right number and the wrong encoding is no field.
		"dummy prefix as bytes": append(model{noFields: true}.bytes(), message(nil, 3, message(message(nil, 3, nil), 4, nil))...),
	} {
		if _, err := tokenizer.Open(fstest.MapFS{"tokenizer.model": {Data: data}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBOSOfModelIsAControlPiece(t *testing.T) {
	type fields = map[protowire.Number]uint64
	for _, c := range []struct {
		id   uint64
		want int
		ok   bool
	}{{1, 1, true}, {2, -1, false}, {500, -1, false}, {math.MaxUint64, -1, false}} { // the last is -1
		tok, err := fromModel(model{trainer: fields{41: c.id}})
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := tok.BOS(); id != c.want || ok != c.ok {
			t.Errorf("bos_id %d: BOS() = %d, %t, want %d, %t", c.id, id, ok, c.want, c.ok)
		}
	}
}
