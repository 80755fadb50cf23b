package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

// An addedToken is a line of tokenizer.json's added_tokens: text that becomes one token wherever it
// stands, before any merge.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no word goes on before or after it
	LStrip     bool   `json:"lstrip"`      // swallows the white space before it
	RStrip     bool   `json:"rstrip"`      // swallows the white space after it
	Normalized bool   `json:"normalized"`  // looked for after the normaliser, itself normalised
	Special    bool   `json:"special"`     // of consequence for decoding only

	listed int // the id in the file; ID is the one that `tokenizers` uses
}

// A matcher finds the leftmost of a set of strings in a text and, of those that start there, the
// longest. For every first byte it knows the lengths that can follow: Gemma's 6,400 added tokens have
// some thirty, so a place in the text costs a few map lookups and mostly none.
type matcher struct {
	tokens  map[string]addedToken
	lengths [256][]int // by first byte, longest first
}

// add makes content, which is not empty, the text by which token is found.
func (m *matcher) add(content string, token addedToken) {
	if m.tokens == nil {
		m.tokens = make(map[string]addedToken)
	}
	m.tokens[content] = token
	lengths := &m.lengths[content[0]]
	at, found := slices.BinarySearchFunc(*lengths, len(content), func(a, b int) int { return b - a })
	if !found {
		*lengths = slices.Insert(*lengths, at, len(content))
	}
}

// has reports whether content is found as a token.
func (m *matcher) has(content string) bool {
	_, ok := m.tokens[content]
	return ok
}

// split cuts text at its added tokens. It calls token with the id of each token, and plain with each text between two tokens, which is not
// empty, and with whether that text begins the whole text. A token with lstrip is dropped if a token with rstrip has taken its text. If the
// dropped token ended first, split returns an error, as `tokenizers` does.
func (m *matcher) split(text string, plain func(text string, atStart bool), token func(id int)) error {
	done := 0      // how far plain and token have been called
	swallowed := 0 // the end of the last white space that a token has taken
	for at := 0; at < len(text); {
		found, size := m.at(text[at:])
		if size == 0 {
			at++
			continue
		}
		start, end := at, at+size
		// Whatever the surroundings do to the match, the search goes on after its text.
		at = end
		if found.SingleWord && (endsWord(text[:start]) || startsWord(text[end:])) {
			continue
		}
		switch {
		case found.LStrip && done < start:
			start = done + len(strings.TrimRightFunc(text[done:start], unicode.IsSpace))
		case found.LStrip:
			start = done
		}
		if found.RStrip {
			if end >= swallowed {
				swallowed = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			}
			end = swallowed
		}
		switch {
		case start > end:
			return fmt.Errorf("added_tokens: %q is in the white space that another token takes: transformers fails on this text too", found.Content)
		case start == end:
			continue
		}
		if done < start {
			plain(text[done:start], done == 0)
		}
		token(found.ID)
		done = end
	}
	if done < len(text) {
		plain(text[done:], done == 0)
	}
	return nil
}

// at returns the longest token that text begins with and its length, 0 without one. Comparing bytes is
// enough: in valid UTF-8 a character never starts inside of another.
func (m *matcher) at(text string) (token addedToken, size int) {
	for _, n := range m.lengths[text[0]] {
		if n > len(text) {
			continue
		}
		if token, ok := m.tokens[text[:n]]; ok {
			return token, n
		}
	}
	return addedToken{}, 0
}

// endsWord and startsWord report whether text ends or starts inside of a word.
func endsWord(text string) bool {
	r, size := utf8.DecodeLastRuneInString(text)
	return size > 0 && pattern.Class("word").Has(r)
}

func startsWord(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	return size > 0 && pattern.Class("word").Has(r)
}
