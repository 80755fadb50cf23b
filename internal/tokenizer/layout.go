package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// The normalisers that are read. Everything else is refused, among it the same steps in another order.
const (
	// gemmaNormalizer is what Gemma has.
	gemmaNormalizer = `{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}`
	// llama2Normalizer is what files converted from SentencePiece with a dummy prefix have.
	llama2Normalizer = `{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, ` + gemmaNormalizer + `]}`
	// qwenNormalizer is what Qwen has.
	qwenNormalizer = `{"type": "NFC"}`
)

// gemmaPreTokenizer never does anything, for Gemma's normaliser has left no space to split at.
const gemmaPreTokenizer = `{"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}`

// readNormalizer returns what the normaliser does to a text between added tokens.
func (f *file) readNormalizer() (func(string) string, error) {
	for _, known := range []struct {
		json      string
		normalize func(string) string
	}{
		{"null", func(text string) string { return text }},
		{gemmaNormalizer, markSpaces},
		{llama2Normalizer, func(text string) string {
			if text == "" {
				return ""
			}
			return spaceMark + markSpaces(text)
		}},
		{qwenNormalizer, nfc},
	} {
		if sameJSON(f.Normalizer, known.json) {
			return known.normalize, nil
		}
	}
	return nil, fmt.Errorf("normalizer: only null, %s, %s and %s are implemented; %s",
		qwenNormalizer, gemmaNormalizer, llama2Normalizer, passIDs)
}

// markSpaces is Gemma's only normaliser.
func markSpaces(text string) string {
	return strings.ReplaceAll(text, " ", spaceMark)
}

// maxSteps bounds the parts of a pre-tokenizer, for the work on a text grows with them. Known ones have
// two or three.
const maxSteps = 16

// A step is a part of the pre-tokenizer. It prepares a piece of text and cuts it.
type step struct {
	marks  bool     // spaces become "▁"
	prefix string   // put before a piece that does not begin with it
	first  bool     // put it before the start of the whole text only
	split  splitter // nil: the piece stays whole
}

// prepare returns piece as it is cut. atStart says that it begins where the whole text does.
func (s step) prepare(piece string, atStart bool) string {
	if s.marks {
		piece = markSpaces(piece)
	}
	if (atStart || !s.first) && !strings.HasPrefix(piece, s.prefix) {
		piece = s.prefix + piece
	}
	return piece
}

// readPreTokenizer returns the steps of the pre-tokenizer, and whether it spells bytes.
func (f *file) readPreTokenizer() (steps []step, byteLevel bool, err error) {
	if isNull(f.PreTokenizer) {
		return nil, false, nil
	}
	if sameJSON(f.PreTokenizer, gemmaPreTokenizer) && sameJSON(f.Normalizer, gemmaNormalizer) {
		return nil, false, nil
	}
	parts := []json.RawMessage{f.PreTokenizer}
	if typeOf(f.PreTokenizer) == "Sequence" {
		var sequence struct {
			Type          string            `json:"type"`
			PreTokenizers []json.RawMessage `json:"pretokenizers"`
		}
		if err := strict(f.PreTokenizer, &sequence); err != nil {
			return nil, false, fmt.Errorf("pre_tokenizer: %w", err)
		}
		if len(sequence.PreTokenizers) > maxSteps {
			return nil, false, fmt.Errorf("pre_tokenizer: a Sequence of more than %d", maxSteps)
		}
		parts = sequence.PreTokenizers
	}
	for i, part := range parts {
		s, spells, err := readStep(part)
		if err != nil {
			return nil, false, fmt.Errorf("pre_tokenizer: %w", err)
		}
		// After it the text is no text any more, and patterns would find nothing in it.
		if spells && i != len(parts)-1 {
			return nil, false, fmt.Errorf("pre_tokenizer: ByteLevel is implemented as the last of a Sequence only; %s", passIDs)
		}
		steps, byteLevel = append(steps, s), spells
	}
	return steps, byteLevel, nil
}

// readStep reads a pre-tokenizer that is no Sequence.
func readStep(raw json.RawMessage) (s step, byteLevel bool, err error) {
	kind := typeOf(raw)
	switch kind {
	case "Split":
		s, err = readSplit(raw)
	case "ByteLevel":
		s, err = readByteLevel(raw)
	case "Metaspace":
		s, err = readMetaspace(raw)
	default:
		return step{}, false, fmt.Errorf("%q is not implemented; %s", kind, passIDs)
	}
	if err != nil {
		return step{}, false, fmt.Errorf("%s: %w", kind, err)
	}
	return s, kind == "ByteLevel", nil
}

// readSplit reads a Split by one of the published patterns.
func readSplit(raw json.RawMessage) (step, error) {
	var split struct {
		Type    string `json:"type"`
		Pattern struct {
			Regex  string  `json:"Regex"`
			String *string `json:"String"`
		} `json:"pattern"`
		Behavior string `json:"behavior"`
		Invert   bool   `json:"invert"`
	}
	if err := strict(raw, &split); err != nil {
		return step{}, err
	}
	cut, known := splitters[split.Pattern.Regex]
	switch {
	case split.Pattern.String != nil || !known:
		return step{}, fmt.Errorf("pattern %.200q is not one of those that are implemented: GPT-2's, Llama 3's and Qwen2's; %s",
			split.Pattern.Regex, passIDs)
	case split.Behavior != "Isolated" || split.Invert:
		return step{}, fmt.Errorf("behavior %q, invert %t: only \"Isolated\", false is implemented; %s",
			split.Behavior, split.Invert, passIDs)
	}
	return step{split: cut}, nil
}

// readByteLevel reads a ByteLevel, which splits by GPT-2's pattern unless it says otherwise.
func readByteLevel(raw json.RawMessage) (step, error) {
	level := struct {
		Type           string `json:"type"`
		AddPrefixSpace bool   `json:"add_prefix_space"`
		TrimOffsets    bool   `json:"trim_offsets"` // of no consequence for ids
		UseRegex       bool   `json:"use_regex"`
	}{UseRegex: true}
	if err := strict(raw, &level); err != nil {
		return step{}, err
	}
	var s step
	if level.AddPrefixSpace {
		s.prefix = " "
	}
	if level.UseRegex {
		s.split = splitGPT2
	}
	return s, nil
}

// readMetaspace reads a Metaspace, the pre-tokenizer of newer files converted from SentencePiece.
func readMetaspace(raw json.RawMessage) (step, error) {
	meta := struct {
		Type           string `json:"type"`
		Replacement    string `json:"replacement"`
		StrRep         string `json:"str_rep"`          // the same again, in old files
		AddPrefixSpace *bool  `json:"add_prefix_space"` // in old files: prepend_scheme never or always
		PrependScheme  string `json:"prepend_scheme"`
		Split          bool   `json:"split"`
	}{PrependScheme: "always", Split: true}
	if err := strict(raw, &meta); err != nil {
		return step{}, err
	}
	if meta.Replacement != spaceMark {
		return step{}, fmt.Errorf("replacement %q: only %q is implemented; %s", meta.Replacement, spaceMark, passIDs)
	}
	if meta.AddPrefixSpace != nil {
		return step{}, fmt.Errorf("add_prefix_space is not implemented, prepend_scheme is; %s", passIDs)
	}
	s := step{marks: true}
	if meta.Split {
		s.split = splitSpaceMarks
	}
	switch meta.PrependScheme {
	case "always", "first":
		s.prefix, s.first = spaceMark, meta.PrependScheme == "first"
	case "never":
	default:
		return step{}, fmt.Errorf("prepend_scheme %q is not one of always, first and never", meta.PrependScheme)
	}
	return s, nil
}

// isNull reports whether a field is absent or null.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || sameJSON(raw, "null")
}

// typeOf returns the field type of an object, "" where there is none.
func typeOf(raw json.RawMessage) string {
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return ""
	}
	return head.Type
}

// strict decodes one JSON value and refuses fields that v does not have.
func strict(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("data after the end of the JSON value")
	}
	return nil
}

// sameJSON reports whether raw has the value that want spells, whatever the layout and the order of
// the keys.
func sameJSON(raw json.RawMessage, want string) bool {
	var a, b any
	if json.Unmarshal(raw, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}
