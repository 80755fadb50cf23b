package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A splitter returns the length of the first piece of text, which is not empty. Pieces are words,
// numbers, runs of white space: the units inside of which a byte-pair encoding merges.
//
// Files give them as regular expressions with a lookahead, \s+(?!\S), which Go's regexp has not for good
// reason: an engine that has takes, on a hostile pattern or text, time without bound. So the published
// patterns are written out here, each recognised by its exact text, in time proportional to the piece;
// any other pattern is refused.
type splitter func(text string) int

// The published patterns. All of them match at every place of every text, so that what their matches
// leave out, which "Isolated" would make pieces of their own, is nothing.
const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// splitters holds the splitters by the patterns that they implement.
var splitters = map[string]splitter{
	gpt2Pattern:   splitGPT2,
	llama3Pattern: func(text string) int { return splitWords(text, 3) },
	qwen2Pattern:  func(text string) int { return splitWords(text, 1) },
}

// splitGPT2 is gpt2Pattern, which is also what the pre-tokenizer ByteLevel splits by on its own.
func splitGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if start < len(text) {
		switch c, _ := classAt(text[start:]); c {
		case letter, number, other:
			return start + run(text[start:], c)
		}
	}
	return splitSpaces(text)
}

// splitWords is llama3Pattern, with at most digits characters in a number, and qwen2Pattern, with one.
func splitWords(text string, digits int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	first, size := classAt(text)
	// One character that is no line break may lead a word.
	if first == letter {
		return run(text, letter)
	}
	if first == space || first == other {
		if n := run(text[size:], letter); n > 0 {
			return size + n
		}
	}
	switch first {
	case number:
		return runOf(text, number, digits)
	case other:
		return symbols(text)
	}
	if text[0] == ' ' {
		if n := symbols(text[1:]); n > 0 {
			return 1 + n
		}
	}
	if n := throughNewline(text); n > 0 {
		return n
	}
	return splitSpaces(text)
}

// symbols returns the length of [^\s\p{L}\p{N}]+[\r\n]* at the start of text, 0 without one.
func symbols(text string) int {
	n := run(text, other)
	if n > 0 {
		n += run(text[n:], newline)
	}
	return n
}

// throughNewline returns the length of \s*[\r\n]+ at the start of text: its white space up to the last
// line break in it, 0 without one.
func throughNewline(text string) int {
	last := 0
	for at := 0; at < len(text); {
		c, size := classAt(text[at:])
		if c != space && c != newline {
			break
		}
		at += size
		if c == newline {
			last = at
		}
	}
	return last
}

// splitSpaces returns the length of \s+(?!\S)|\s+ at the start of text, which is white space: all of it
// at the end of the text, else all but its last character where it has several, else that one.
func splitSpaces(text string) int {
	end, last := 0, 0
	for end < len(text) {
		c, size := classAt(text[end:])
		if c != space && c != newline {
			break
		}
		end, last = end+size, size
	}
	if end < len(text) && end > last {
		return end - last
	}
	return end
}

// classAt returns the class and the length of the first character of text.
func classAt(text string) (class, int) {
	if text[0] < utf8.RuneSelf {
		return classes[text[0]], 1
	}
	r, size := utf8.DecodeRuneInString(text)
	return lookUp(r), size
}

// run returns the length of the characters of class c at the start of text.
func run(text string, c class) int {
	return runOf(text, c, len(text))
}

// runOf is run for at most limit characters.
func runOf(text string, c class, limit int) int {
	n := 0
	for ; n < len(text) && limit > 0; limit-- {
		found, size := classAt(text[n:])
		if found != c {
			break
		}
		n += size
	}
	return n
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of text, 0 without one.
func contraction(text string, anyCase bool) int {
	if text[0] != '\'' || len(text) < 2 {
		return 0
	}
	text = text[1:]
	// The long s is the one letter beyond ASCII that folds into one of these.
	if anyCase && strings.HasPrefix(text, "ſ") {
		return 1 + len("ſ")
	}
	two := text[:min(2, len(text))]
	if anyCase {
		two = lowerASCII(two)
	}
	switch two[0] {
	case 's', 't', 'm', 'd':
		return 2
	}
	switch two {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

// lowerASCII lowers the letters A to Z of text. strings.ToLower would fold the Kelvin sign too.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

// splitSpaceMarks cuts before every "▁": the split of the pre-tokenizer Metaspace.
func splitSpaceMarks(text string) int {
	_, size := utf8.DecodeRuneInString(text)
	if next := strings.Index(text[size:], spaceMark); next >= 0 {
		return size + next
	}
	return len(text)
}
