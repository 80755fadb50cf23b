package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

// A form is a normalisation form of Unicode that composes, C or KC, with the form that decomposes in the same way, D or KD.
type form struct{ composed, apart norm.Form }

var (
	nfc  = form{norm.NFC, norm.NFD}
	nfkc = form{norm.NFKC, norm.NFKD}
)

// normalize returns text in a normalisation form, as the `tokenizers` package computes it.
//
// The data is that of x/text, the algorithm is not: norm.NFC.String breaks up more than thirty marks in
// a row (the Stream-Safe Text Process), which `tokenizers` does not, and its tables are newer. The
// latter is what unnormalized says.
func (f form) normalize(text string) string {
	var out strings.Builder
	done := 0 // what stands before is in out
	for at := 0; at < len(text); {
		size, _ := f.boundary(text[at:])
		end := at + size
		for end < len(text) {
			size, starts := f.boundary(text[end:])
			if starts {
				break
			}
			end += size
		}
		// Most characters do not combine and have no decomposition.
		if segment := text[at:end]; end > at+size || !f.isPlain(segment) {
			if composed := f.compose(segment); composed != segment {
				out.WriteString(text[done:at])
				out.WriteString(composed)
				done = end
			}
		}
		at = end
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// boundary returns the length of the first character of text and whether no normalisation joins it to
// what stands before.
func (f form) boundary(text string) (size int, starts bool) {
	if text[0] < 0xcc { // the first byte of U+0300, the first combining mark
		return utf8Len(text[0]), true
	}
	p := f.composed.PropertiesString(text)
	if parts := p.Decomposition(); parts != nil {
		// Package norm takes U+314F for a boundary. Its decomposition U+1161 composes with the character before.
		return p.Size(), norm.NFC.Properties(parts).BoundaryBefore() || isUnnormalized(text)
	}
	return p.Size(), p.BoundaryBefore() || isUnnormalized(text)
}

// utf8Len returns the length of a character below U+0300 by its first byte.
func utf8Len(first byte) int {
	if first < utf8.RuneSelf {
		return 1
	}
	return 2
}

// isPlain reports whether normalisation leaves the single character of text unchanged.
func (f form) isPlain(text string) bool {
	return text[0] < utf8.RuneSelf || f.composed.PropertiesString(text).Decomposition() == nil || isUnnormalized(text)
}

// isUnnormalized reports whether the first character of text is unnormalized.
func isUnnormalized(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unnormalized.Has(r)
}

// A mark is a character with its canonical combining class; that of a starter is 0.
type mark struct {
	r     rune
	class uint8
}

// compose returns segment, which begins at a boundary and has no other, in the form: decomposed, the
// marks after each starter sorted by class, and composed again.
func (f form) compose(segment string) string {
	marks := f.decompose(segment)
	for i := 0; i < len(marks); {
		run := i
		for run < len(marks) && marks[run].class != 0 {
			run++
		}
		slices.SortStableFunc(marks[i:run], func(a, b mark) int { return int(a.class) - int(b.class) })
		i = run + 1
	}
	out := marks[:0]
	starter, last := -1, uint8(0) // the starter of a following mark, and the class of the last mark
	for _, m := range marks {
		if starter >= 0 && (starter == len(out)-1 || last < m.class) {
			if r, ok := pairOf(out[starter].r, m.r); ok {
				out[starter].r = r
				continue
			}
		}
		if m.class == 0 {
			starter = len(out)
		}
		last = m.class
		out = append(out, m)
	}
	var text strings.Builder
	for _, m := range out {
		text.WriteRune(m.r)
	}
	return text.String()
}

// decompose returns the full decomposition of text. A Hangul syllable stays whole: taking it
// apart and joining it again changes nothing.
func (f form) decompose(text string) []mark {
	marks := make([]mark, 0, len(text)/2+1)
	for len(text) > 0 {
		p := f.apart.PropertiesString(text)
		r, size := utf8.DecodeRuneInString(text)
		switch parts := p.Decomposition(); {
		case unnormalized.Has(r):
			marks = append(marks, mark{r: r})
		case parts == nil:
			marks = append(marks, mark{r, p.CCC()})
		default:
			for _, r := range string(parts) {
				marks = append(marks, mark{r, norm.NFD.PropertiesString(string(r)).CCC()})
			}
		}
		text = text[size:]
	}
	return marks
}

// pairOf returns the character that a starter and the character after it compose to.
func pairOf(a, b rune) (r rune, ok bool) {
	if unnormalized.Has(a) || unnormalized.Has(b) {
		return 0, false
	}
	var buf, src [4 * utf8.UTFMax]byte
	composed := norm.NFC.Append(buf[:0], utf8.AppendRune(utf8.AppendRune(src[:0], a), b)...)
	r, size := utf8.DecodeRune(composed)
	// Package norm looks pairs up by the lower 16 bits of both: U+E0041 with U+0301 would be Á.
	return r, size == len(composed) && norm.NFD.String(string(r)) == norm.NFD.String(string([]rune{a, b}))
}

// unnormalized are the characters with a combining class or a decomposition newer than Unicode 9.0, the age of the tables of `tokenizers`,
// which takes them for starters without composition.
var unnormalized = pattern.NewSet([][2]rune{
	{0x7fd, 0x7fd},
	{0x898, 0x89f},
	{0x8ca, 0x8d3},
	{0x9fe, 0x9fe},
	{0xc3c, 0xc3c},
	{0xd3b, 0xd3c},
	{0xeba, 0xeba},
	{0x1715, 0x1715},
	{0x1abf, 0x1ace},
	{0x1df6, 0x1dfa},
	{0x32ff, 0x32ff},
	{0xa7f2, 0xa7f4},
	{0xa82c, 0xa82c},
	{0xab69, 0xab69},
	{0x10781, 0x10785},
	{0x10787, 0x107b0},
	{0x107b2, 0x107ba},
	{0x10d24, 0x10d27},
	{0x10eab, 0x10eac},
	{0x10efd, 0x10eff},
	{0x10f46, 0x10f50},
	{0x10f82, 0x10f85},
	{0x11070, 0x11070},
	{0x1133b, 0x1133b},
	{0x1145e, 0x1145e},
	{0x11839, 0x1183a},
	{0x11930, 0x11930},
	{0x11938, 0x11938},
	{0x1193d, 0x1193e},
	{0x11943, 0x11943},
	{0x119e0, 0x119e0},
	{0x11a34, 0x11a34},
	{0x11a47, 0x11a47},
	{0x11a99, 0x11a99},
	{0x11d42, 0x11d42},
	{0x11d44, 0x11d45},
	{0x11d97, 0x11d97},
	{0x11f41, 0x11f42},
	{0x16ff0, 0x16ff1},
	{0x1e030, 0x1e06d},
	{0x1e08f, 0x1e08f},
	{0x1e130, 0x1e136},
	{0x1e2ae, 0x1e2ae},
	{0x1e2ec, 0x1e2ef},
	{0x1e4ec, 0x1e4ef},
	{0x1f16c, 0x1f16c},
	{0x1fbf0, 0x1fbf9},
}...)
