package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

// gpt2Pattern is what a ByteLevel splits by on its own.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// A step is a part of the pre-tokenizer. It prepares a piece of text, cuts it, and changes what was cut.
type step struct {
	marks  string   // what spaces become; empty: they stay
	prefix string   // put before a piece that does not begin with it
	first  bool     // put it before the start of the whole text only
	find   finder   // where it is cut; nil: the piece stays whole
	invert bool     // what find does not find is a match, and the reverse
	behave behavior // what becomes of matches
	spells bool     // the bytes of what was cut are spelled as characters
}

// A behavior says what becomes of a match and of what stands between two.
type behavior uint8

// The behaviors, by the names that files have for them.
const (
	isolated behavior = iota
	removed
	contiguous
	mergedWithPrevious
	mergedWithNext
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous, "MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
}

// A span is a part of a text that a step has cut out.
type span struct {
	start, end int
	match      bool
}

// prepare returns a piece with the marks and the prefix of the step. atStart: the piece begins where the whole text begins.
func (s *step) prepare(piece string, atStart bool) string {
	if s.marks != "" {
		piece = strings.ReplaceAll(piece, " ", s.marks)
	}
	if (atStart || !s.first) && !strings.HasPrefix(piece, s.prefix) {
		piece = s.prefix + piece
	}
	return piece
}

// cut returns the parts of text, which is not empty, from left to right.
func (s *step) cut(text string, budget *pattern.Budget) ([]span, error) {
	if s.find == nil {
		return []span{{0, len(text), false}}, nil
	}
	places, err := s.find(text, budget)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	spans := make([]span, 0, len(places)+1)
	done := 0
	for _, p := range places {
		if done < p[0] {
			spans = append(spans, span{done, p[0], s.invert})
		}
		spans = append(spans, span{p[0], p[1], !s.invert})
		done = p[1]
	}
	if done < len(text) {
		spans = append(spans, span{done, len(text), s.invert})
	}
	return s.behave.apply(spans), nil
}

// apply does with matches what a behavior says.
func (b behavior) apply(spans []span) []span {
	out := spans[:0]
	switch b {
	case isolated:
		return spans
	case removed:
		for _, s := range spans {
			if !s.match {
				out = append(out, s)
			}
		}
	case contiguous, mergedWithPrevious:
		before := false
		for _, s := range spans {
			joins := s.match && !before
			if b == contiguous {
				joins = s.match == before
			}
			if n := len(out); joins && n > 0 {
				out[n-1].end = s.end
			} else {
				out = append(out, s)
			}
			before = s.match
		}
	case mergedWithNext:
		for i, s := range spans {
			if n := len(out); n > 0 && i > 0 && spans[i-1].match && !s.match {
				out[n-1].end = s.end
			} else {
				out = append(out, s)
			}
		}
	}
	return out
}

// readPreTokenizer reads the field pre_tokenizer. name describes it in the words of kinds.txt. byteLevel: one of its steps spells bytes.
func readPreTokenizer(raw json.RawMessage) (steps []step, name string, byteLevel bool, err error) {
	if isNull(raw) {
		return nil, "none", false, nil
	}
	parts, err := sequence(raw, "pretokenizers")
	if err != nil {
		return nil, "", false, fmt.Errorf("pre_tokenizer: %w", err)
	}
	var names []string
	for _, part := range parts {
		s, name, err := readStep(part)
		if err == nil && s.first && len(steps) > 0 {
			err = fmt.Errorf(`prepend_scheme "first" of a Metaspace is implemented as the first of a Sequence only; %s`, passIDs)
		}
		if err == nil && s.spells && byteLevel { // each makes a text up to twice as long
			err = fmt.Errorf("more than one ByteLevel is not implemented; %s", passIDs)
		}
		if err != nil {
			return nil, "", false, fmt.Errorf("pre_tokenizer: %w", err)
		}
		steps, names, byteLevel = append(steps, s), append(names, name), byteLevel || s.spells
	}
	if steps == nil {
		return nil, "none", false, nil
	}
	return steps, strings.Join(names, ", "), byteLevel, nil
}

// readStep reads a pre-tokenizer that is no Sequence.
func readStep(raw json.RawMessage) (s step, name string, err error) {
	kind := typeOf(raw)
	switch kind {
	case "Split":
		s, name, err = readSplit(raw)
	case "ByteLevel":
		s, name, err = readByteLevel(raw)
	case "Metaspace":
		s, name, err = readMetaspace(raw)
	case "Digits":
		s, name, err = readDigits(raw)
	case "Punctuation":
		s, name, err = readPunctuation(raw)
	default:
		return step{}, "", fmt.Errorf("%q is not implemented; %s", kind, passIDs)
	}
	if err != nil {
		return step{}, "", fmt.Errorf("%s: %w", kind, err)
	}
	return s, name, nil
}

// readSplit reads a Split, by a text or an expression.
func readSplit(raw json.RawMessage) (step, string, error) {
	var split struct {
		Type     string      `json:"type"`
		Pattern  filePattern `json:"pattern"`
		Behavior string      `json:"behavior"`
		Invert   bool        `json:"invert"`
	}
	if err := strict(raw, &split); err != nil {
		return step{}, "", err
	}
	behave, known := behaviors[split.Behavior]
	if !known {
		return step{}, "", fmt.Errorf("behavior %.60q is unknown", split.Behavior)
	}
	find, name, err := split.Pattern.read()
	if err != nil {
		return step{}, "", err
	}
	name = fmt.Sprintf("Split %s %s", name, split.Behavior)
	if split.Invert {
		name += " inverted"
	}
	return step{find: find, invert: split.Invert, behave: behave}, name, nil
}

// readDigits reads a Digits, which cuts out numbers, or each of their characters.
func readDigits(raw json.RawMessage) (step, string, error) {
	var digits struct {
		Type       string `json:"type"`
		Individual *bool  `json:"individual_digits"`
	}
	if err := strict(raw, &digits); err != nil {
		return step{}, "", err
	}
	s, name := step{find: findSet(pattern.Class("numeric")), behave: contiguous}, "Digits"
	switch {
	case digits.Individual == nil:
		return step{}, "", fmt.Errorf("no individual_digits")
	case *digits.Individual:
		s.behave, name = isolated, "Digits, individual"
	}
	return s, name, nil
}

// readPunctuation reads a Punctuation.
func readPunctuation(raw json.RawMessage) (step, string, error) {
	punctuation := struct {
		Type     string `json:"type"`
		Behavior string `json:"behavior"`
	}{Behavior: "Isolated"}
	if err := strict(raw, &punctuation); err != nil {
		return step{}, "", err
	}
	behave, known := behaviors[punctuation.Behavior]
	if !known {
		return step{}, "", fmt.Errorf("behavior %.60q is unknown", punctuation.Behavior)
	}
	return step{find: findSet(pattern.Class("punctuation")), behave: behave}, "Punctuation " + punctuation.Behavior, nil
}

// readByteLevel reads a ByteLevel, which splits by GPT-2's pattern unless it says otherwise.
func readByteLevel(raw json.RawMessage) (step, string, error) {
	level := struct {
		Type           string `json:"type"`
		AddPrefixSpace bool   `json:"add_prefix_space"`
		TrimOffsets    bool   `json:"trim_offsets"` // of no consequence for ids
		UseRegex       bool   `json:"use_regex"`
	}{UseRegex: true}
	if err := strict(raw, &level); err != nil {
		return step{}, "", err
	}
	s, name := step{spells: true}, "ByteLevel"
	if level.AddPrefixSpace {
		s.prefix, name = " ", name+" with a space before"
	}
	if level.UseRegex {
		compiled, err := pattern.Compile(gpt2Pattern)
		if err != nil {
			return step{}, "", err
		}
		s.find, name = compiled.Find, name+" split"
	}
	return s, name, nil
}

// readMetaspace reads a Metaspace, the pre-tokenizer of newer files converted from SentencePiece.
func readMetaspace(raw json.RawMessage) (step, string, error) {
	meta := struct {
		Type           string `json:"type"`
		Replacement    string `json:"replacement"`
		StrRep         string `json:"str_rep"`          // the same again, in old files
		AddPrefixSpace *bool  `json:"add_prefix_space"` // in old files; prepend_scheme counts
		PrependScheme  string `json:"prepend_scheme"`
		Split          bool   `json:"split"`
	}{PrependScheme: "always", Split: true}
	if err := strict(raw, &meta); err != nil {
		return step{}, "", err
	}
	mark := meta.Replacement
	if utf8.RuneCountInString(mark) != 1 {
		return step{}, "", fmt.Errorf("replacement %.60q is not one character", mark)
	}
	if meta.AddPrefixSpace != nil && !*meta.AddPrefixSpace && meta.PrependScheme != "never" {
		return step{}, "", fmt.Errorf("add_prefix_space is false, and prepend_scheme %.60q", meta.PrependScheme)
	}
	s, name := step{marks: mark}, "Metaspace "+meta.PrependScheme
	if mark != spaceMark {
		name += fmt.Sprintf(" %q", mark)
	}
	if meta.Split {
		s.find, s.behave, name = findText(mark), mergedWithNext, name+" split"
	}
	switch meta.PrependScheme {
	case "always", "first":
		s.prefix, s.first = mark, meta.PrependScheme == "first"
	case "never":
	default:
		return step{}, "", fmt.Errorf("prepend_scheme %q is not one of always, first and never", meta.PrependScheme)
	}
	return s, name, nil
}
