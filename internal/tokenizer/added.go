package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// An addedToken is a line of tokenizer.json's added_tokens: text that becomes one token wherever it
// stands, before any merge. Whether it is special matters only for decoding.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only between word boundaries: refused
	LStrip     bool   `json:"lstrip"`      // swallows the white space before it: refused
	RStrip     bool   `json:"rstrip"`      // swallows the white space after it: refused
	Normalized bool   `json:"normalized"`  // looked for after the normaliser, itself normalised
	Special    bool   `json:"special"`
}

// unsupported returns an error that names what the token asks for and this package does not do. Gemma
// uses none of it, and each would change the text around the token.
func (a addedToken) unsupported() error {
	for _, flag := range []struct {
		name string
		set  bool
	}{{"single_word", a.SingleWord}, {"lstrip", a.LStrip}, {"rstrip", a.RStrip}} {
		if flag.set {
			return fmt.Errorf("added_tokens: %q has %s, which is not implemented; %s", a.Content, flag.name, passIDs)
		}
	}
	return nil
}

// A matcher finds the leftmost of a set of strings in a text and, of those that start there, the
// longest. For every first byte it knows the lengths that can follow: Gemma's 6,400 added tokens have
// some thirty, so a place in the text costs a few map lookups and mostly none.
type matcher struct {
	ids     map[string]int
	lengths [256][]int // by first byte, longest first
}

// add makes content a token of m. The content is not empty.
func (m *matcher) add(content string, id int) {
	if m.ids == nil {
		m.ids = make(map[string]int)
	}
	m.ids[content] = id
	lengths := &m.lengths[content[0]]
	at, found := slices.BinarySearchFunc(*lengths, len(content), func(a, b int) int { return b - a })
	if !found {
		*lengths = slices.Insert(*lengths, at, len(content))
	}
}

// next cuts text at its first token: what stands before it, its id and what stands after it. Without
// a token, before is the whole text and ok is false. Comparing bytes is enough: in valid UTF-8 a
// character never starts inside of another.
func (m *matcher) next(text string) (before string, id int, after string, ok bool) {
	for i := range len(text) {
		for _, n := range m.lengths[text[i]] {
			if i+n > len(text) {
				continue
			}
			if id, ok := m.ids[text[i:i+n]]; ok {
				return text[:i], id, text[i+n:], true
			}
		}
	}
	return text, 0, "", false
}

// normalize is Gemma's only normaliser.
func normalize(text string) string {
	return strings.ReplaceAll(text, " ", space)
}
