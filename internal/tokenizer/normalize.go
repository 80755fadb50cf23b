package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

const (
	// maxSteps bounds the parts of a normaliser and of a pre-tokenizer, for the work on a text grows with them. Known ones have four.
	maxSteps = 16
	// maxText bounds the bytes of a text in the work, which a normaliser makes longer: a byte may take some fifty in the merges.
	maxText = 16 << 20
)

// A normalizer is a part of the normaliser: what it does to a text between added tokens.
type normalizer func(text string, budget *pattern.Budget) (string, error)

// normalizers do their work one after the other.
type normalizers []normalizer

func (n normalizers) apply(text string, budget *pattern.Budget) (string, error) {
	for _, part := range n {
		var err error
		if text, err = part(text, budget); err != nil {
			return "", fmt.Errorf("normalizer: %w", err)
		}
		if len(text) > maxText {
			return "", fmt.Errorf("normalizer: it makes a text of more than %d bytes", maxText)
		}
	}
	return text, nil
}

// readNormalizer reads the field normalizer. name says what it is, in the words of kinds.txt.
func readNormalizer(raw json.RawMessage) (n normalizers, name string, err error) {
	if isNull(raw) {
		return nil, "none", nil
	}
	parts, err := sequence(raw, "normalizers")
	if err != nil {
		return nil, "", fmt.Errorf("normalizer: %w", err)
	}
	var names []string
	for _, part := range parts {
		one, name, err := readNormalizerPart(part)
		if err != nil {
			return nil, "", fmt.Errorf("normalizer: %w", err)
		}
		n, names = append(n, one), append(names, name)
	}
	if n == nil {
		return nil, "none", nil
	}
	return n, strings.Join(names, ", "), nil
}

// readNormalizerPart reads a normaliser that is no Sequence.
func readNormalizerPart(raw json.RawMessage) (n normalizer, name string, err error) {
	kind := typeOf(raw)
	switch kind {
	case "NFC", "NFKC":
		f := nfc
		if kind == "NFKC" {
			f = nfkc
		}
		err = strict(raw, &struct {
			Type string `json:"type"`
		}{})
		n, name = func(text string, _ *pattern.Budget) (string, error) { return f.normalize(text), nil }, kind
	case "Prepend":
		n, name, err = readPrepend(raw)
	case "Replace":
		n, name, err = readReplace(raw)
	default:
		return nil, "", fmt.Errorf("%q is not implemented; %s", kind, passIDs)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", kind, err)
	}
	return n, name, nil
}

// readPrepend reads a Prepend: it puts a prefix before a text, unless the text is empty.
func readPrepend(raw json.RawMessage) (normalizer, string, error) {
	var p struct {
		Type    string  `json:"type"`
		Prepend *string `json:"prepend"`
	}
	if err := strict(raw, &p); err != nil {
		return nil, "", err
	}
	if p.Prepend == nil || len(*p.Prepend) > maxPiece {
		return nil, "", fmt.Errorf("prepend: want a text of at most %d bytes", maxPiece)
	}
	return func(text string, _ *pattern.Budget) (string, error) {
		if text == "" {
			return "", nil
		}
		return *p.Prepend + text, nil
	}, fmt.Sprintf("Prepend %q", *p.Prepend), nil
}

// readReplace reads a Replace.
func readReplace(raw json.RawMessage) (normalizer, string, error) {
	var r struct {
		Type    string      `json:"type"`
		Pattern filePattern `json:"pattern"`
		Content *string     `json:"content"`
	}
	if err := strict(raw, &r); err != nil {
		return nil, "", err
	}
	if r.Content == nil || len(*r.Content) > maxPiece {
		return nil, "", fmt.Errorf("content: want a text of at most %d bytes", maxPiece)
	}
	find, name, err := r.Pattern.read()
	if err != nil {
		return nil, "", err
	}
	content := *r.Content
	return func(text string, budget *pattern.Budget) (string, error) {
		places, err := find(text, budget)
		if err != nil || len(places) == 0 {
			return text, err
		}
		if len(places)*len(content)+len(text) > maxText {
			return "", fmt.Errorf("it makes a text of more than %d bytes", maxText)
		}
		var out strings.Builder
		done := 0
		for _, place := range places {
			out.WriteString(text[done:place[0]])
			out.WriteString(content)
			done = place[1]
		}
		out.WriteString(text[done:])
		return out.String(), nil
	}, fmt.Sprintf("Replace %s by %q", name, content), nil
}

// A finder returns the places of what it looks for in text, from left to right: starts and ends. None is empty.
type finder func(text string, budget *pattern.Budget) ([][2]int, error)

// A filePattern is the field pattern of a Replace or a Split: one of the two.
type filePattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// read returns what finds the pattern, and its name.
func (p *filePattern) read() (finder, string, error) {
	switch {
	case p.String == nil && p.Regex == nil || p.String != nil && p.Regex != nil:
		return nil, "", fmt.Errorf("pattern: want one of String and Regex")
	case p.Regex != nil:
		compiled, err := pattern.Compile(*p.Regex)
		if err != nil {
			return nil, "", fmt.Errorf("pattern %.300q: not implemented: %w; %s", *p.Regex, err, passIDs)
		}
		return compiled.Find, visible(*p.Regex), nil
	}
	text := *p.String
	if text == "" || len(text) > maxPiece {
		return nil, "", fmt.Errorf("pattern: a String of %d bytes, want 1 to %d; %s", len(text), maxPiece, passIDs)
	}
	return findText(text), fmt.Sprintf("%q", text), nil
}

// visible returns an expression on one line, with its syntax's escapes for unprintable characters.
func visible(expression string) string {
	var out strings.Builder
	for _, r := range expression {
		switch escape := strings.IndexRune("\n\r\t", r); {
		case escape >= 0:
			out.WriteString(`\` + "nrt"[escape:escape+1])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\x{%X}`, r)
		}
	}
	return out.String()
}

// findText returns what finds a text.
func findText(want string) finder {
	return func(text string, _ *pattern.Budget) ([][2]int, error) {
		var places [][2]int
		for at := 0; ; {
			next := strings.Index(text[at:], want)
			if next < 0 {
				return places, nil
			}
			at += next + len(want)
			places = append(places, [2]int{at - len(want), at})
		}
	}
}

// findSet returns a finder of single characters of a set.
func findSet(set *pattern.Set) finder {
	return func(text string, _ *pattern.Budget) ([][2]int, error) {
		var places [][2]int
		for at, r := range text {
			if set.Has(r) {
				places = append(places, [2]int{at, at + len(string(r))})
			}
		}
		return places, nil
	}
}

// sequence returns the parts of a Sequence, which are in this field. Any other object is its own only part.
func sequence(raw json.RawMessage, field string) ([]json.RawMessage, error) {
	if typeOf(raw) != "Sequence" {
		return []json.RawMessage{raw}, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	for name := range fields {
		if name != "type" && name != field {
			return nil, fmt.Errorf("a Sequence with the unknown field %.60q", name)
		}
	}
	var parts, all []json.RawMessage
	if err := json.Unmarshal(fields[field], &parts); err != nil || parts == nil {
		return nil, fmt.Errorf("a Sequence without the list %s", field)
	}
	for _, part := range parts {
		if typeOf(part) == "Sequence" {
			return nil, fmt.Errorf("a Sequence in a Sequence is not implemented; %s", passIDs)
		}
	}
	if all = append(all, parts...); len(all) > maxSteps {
		return nil, fmt.Errorf("a Sequence of more than %d", maxSteps)
	}
	return all, nil
}
