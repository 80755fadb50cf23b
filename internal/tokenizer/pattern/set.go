package pattern

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Set is a set of characters.
type Set struct {
	ascii  [utf8.RuneSelf]bool
	ranges [][2]rune // first and last, sorted, none touching another
}

// NewSet returns the set of the characters of some ranges, each given by its first and last, in any order.
func NewSet(ranges ...[2]rune) *Set {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b [2]rune) int { return int(a[0]) - int(b[0]) })
	s := &Set{}
	for _, r := range ranges {
		if n := len(s.ranges); n > 0 && r[0] <= s.ranges[n-1][1]+1 {
			s.ranges[n-1][1] = max(s.ranges[n-1][1], r[1])
		} else {
			s.ranges = append(s.ranges, r)
		}
	}
	for _, r := range s.ranges {
		for c := r[0]; c <= r[1] && c < utf8.RuneSelf; c++ {
			s.ascii[c] = true
		}
	}
	return s
}

// union returns the set of the characters of several.
func union(sets ...*Set) *Set {
	var all [][2]rune
	for _, s := range sets {
		all = append(all, s.ranges...)
	}
	return NewSet(all...)
}

// complement returns the set of all other characters.
func (s *Set) complement() *Set {
	var all [][2]rune
	next := rune(0)
	for _, r := range s.ranges {
		if next < r[0] {
			all = append(all, [2]rune{next, r[0] - 1})
		}
		next = r[1] + 1
	}
	if next <= utf8.MaxRune {
		all = append(all, [2]rune{next, utf8.MaxRune})
	}
	return NewSet(all...)
}

// Has reports whether a character is in the set.
func (s *Set) Has(r rune) bool {
	if 0 <= r && r < utf8.RuneSelf {
		return s.ascii[r]
	}
	_, found := slices.BinarySearchFunc(s.ranges, r, func(pair [2]rune, r rune) int {
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

// start reports whether text begins with a character of the set, and its length.
func (s *Set) start(text string) (size int, ok bool) {
	if text == "" {
		return 0, false
	}
	if c := text[0]; c < utf8.RuneSelf {
		return 1, s.ascii[c]
	}
	r, size := utf8.DecodeRuneInString(text)
	return size, s.Has(r)
}

// classesFile holds the classes of characters of the engines in `tokenizers`, one range a line: the name, the first and the
// last character, in decimal. fixtures/tokenizer/families.py asks `tokenizers`: its tables have another age than Go's, and several ages among
// themselves.
//
//go:embed classes.txt.gz
var classesFile []byte

// classes maps a name to a set of characters: a general category of Oniguruma, such as "Lu", or "space", which is \s of Oniguruma.
var classes = sync.OnceValue(func() map[string]*Set {
	zip, err := gzip.NewReader(bytes.NewReader(classesFile))
	if err != nil {
		panic(err) // it is a part of the program
	}
	ranges := map[string][][2]rune{}
	for scan := bufio.NewScanner(zip); scan.Scan(); {
		words := strings.Fields(scan.Text())
		first, err1 := strconv.Atoi(words[1])
		last, err2 := strconv.Atoi(words[2])
		if err := errors.Join(err1, err2); err != nil {
			panic(err)
		}
		ranges[words[0]] = append(ranges[words[0]], [2]rune{rune(first), rune(last)})
	}
	sets := map[string]*Set{}
	for name, list := range ranges {
		sets[name] = NewSet(list...)
	}
	return sets
})

// Class returns one of the classes that no general category has:
//
//	word         \w of the Rust crate regex
//	space        white space, on which all engines agree
//	numeric      char::is_numeric of Rust
//	punctuation  what the pre-tokenizer Punctuation takes for it
func Class(name string) *Set {
	return classes()[name]
}

// category returns the set of a general category by its two letters, or the union of the categories with a first letter. It returns nil for an
// unknown name.
func category(name string) *Set {
	if len(name) == 2 && 'A' <= name[0] && name[0] <= 'Z' {
		return classes()[name]
	}
	if len(name) != 1 {
		return nil
	}
	var all []*Set
	for other, s := range classes() {
		if len(other) == 2 && other[0] == name[0] {
			all = append(all, s)
		}
	}
	if all == nil {
		return nil
	}
	return union(all...)
}
