package names

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/internal/spelling"
)

var between = regexp.MustCompile(`[^\pL\pN]+`)

// layerItself is the end of a name that says no more than the layer: what the module of the layer returns.
var layerItself = regexp.MustCompile(`(?i)(?:` + spelling.LayerWords + `)[-_./]?(?:\{L\}|[0-9]+)$`)

// wordsOf are the meanings of the words in a name; what has none is left out.
func wordsOf(name string) map[string]bool {
	words := map[string]bool{}
	if layerItself.MatchString(name) {
		words["out"] = true
	}
	for _, part := range between.Split(name, -1) {
		for _, w := range camels(part) {
			of := spelling.Meanings(w)
			if of == nil { // a number that counts has no meaning: ln2
				of = spelling.Meanings(strings.TrimRight(w, "0123456789"))
			}
			for _, meaning := range of {
				words[meaning] = true
			}
		}
	}
	return words
}

// camels are the words of a name such as qProj.
func camels(name string) (words []string) {
	from := 0
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			words, from = append(words, name[from:i]), i
		}
	}
	return append(words, name[from:])
}

// Alikeness is how alike the words of a tensor's name and of an entry's are, from 0 to 1.
func Alikeness(name, role string) float64 {
	last := LastPart(role)
	other := role
	if more, ok := spelling.Implied(last); ok {
		other = strings.TrimSuffix(role, last) + more
	}
	a, b := wordsOf(name), wordsOf(strings.ReplaceAll(other, "self_attn", "attn"))
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	return float64(both) / math.Sqrt(float64(len(a)*len(b)))
}

// LastPart is what follows the last dot of a name.
func LastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
