package tokenizer

import (
	"slices"
	"unicode"
)

// A class is what the patterns of the pre-tokenizers can tell apart of a character.
type class uint8

const (
	other   class = iota // [^\s\p{L}\p{N}]
	letter               // \p{L}
	number               // \p{N}
	space                // \s, but no line break
	newline              // \r or \n
)

// classes holds the classes of ASCII, of which most text is.
var classes = func() (table [128]class) {
	for r := range table {
		table[r] = lookUp(rune(r))
	}
	return table
}()

// lookUp finds the class of r in the tables of Unicode. White space is the property White_Space in
// both engines.
func lookUp(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r) || newLetters.has(r):
		return letter
	case unicode.IsNumber(r) || newNumbers.has(r):
		return number
	}
	return other
}

// isWord reports whether r is one of the characters between which an added token with single_word is
// not found: \w of the Rust crate regex.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control) || newLetters.has(r) || newWords.has(r)
}

// ranges is a sorted list of first and last characters.
type ranges [][2]rune

func (t ranges) has(r rune) bool {
	if r < t[0][0] {
		return false
	}
	_, found := slices.BinarySearchFunc(t, r, func(pair [2]rune, r rune) int {
		switch {
		case pair[1] < r:
			return -1
		case pair[0] > r:
			return 1
		}
		return 0
	})
	return found
}

// What the engines know and Go's tables, of Unicode 15.0, do not: the characters of 15.1 and 16.0. A
// test compares all of Unicode with the engines, so a Go with newer tables fails it where it differs.
var (
	newLetters = ranges{
		{0x1c89, 0x1c8a},
		{0xa7cb, 0xa7cd},
		{0xa7da, 0xa7dc},
		{0x105c0, 0x105f3},
		{0x10d4a, 0x10d65},
		{0x10d6f, 0x10d85},
		{0x10ec2, 0x10ec4},
		{0x11380, 0x11389},
		{0x1138b, 0x1138b},
		{0x1138e, 0x1138e},
		{0x11390, 0x113b5},
		{0x113b7, 0x113b7},
		{0x113d1, 0x113d1},
		{0x113d3, 0x113d3},
		{0x11bc0, 0x11be0},
		{0x13460, 0x143fa},
		{0x16100, 0x1611d},
		{0x16d40, 0x16d6c},
		{0x18cff, 0x18cff},
		{0x1e5d0, 0x1e5ed},
		{0x1e5f0, 0x1e5f0},
		{0x2ebf0, 0x2ee5d},
	}
	newNumbers = ranges{
		{0x10d40, 0x10d49},
		{0x116d0, 0x116e3},
		{0x11bf0, 0x11bf9},
		{0x16130, 0x16139},
		{0x16d70, 0x16d79},
		{0x1ccf0, 0x1ccf9},
		{0x1e5f1, 0x1e5fa},
	}
	// newWords are the new decimal digits, marks and connectors.
	newWords = ranges{
		{0x897, 0x897},
		{0x10d40, 0x10d49},
		{0x10d69, 0x10d6d},
		{0x10efc, 0x10efc},
		{0x113b8, 0x113c0},
		{0x113c2, 0x113c2},
		{0x113c5, 0x113c5},
		{0x113c7, 0x113ca},
		{0x113cc, 0x113d0},
		{0x113d2, 0x113d2},
		{0x113e1, 0x113e2},
		{0x116d0, 0x116e3},
		{0x11bf0, 0x11bf9},
		{0x11f5a, 0x11f5a},
		{0x1611e, 0x16139},
		{0x16d70, 0x16d79},
		{0x1ccf0, 0x1ccf9},
		{0x1e5ee, 0x1e5ef},
		{0x1e5f1, 0x1e5fa},
	}
)
