package tokenizer

import (
	_ "embed"
	"slices"
	"strings"
)

// checkedKinds are the parts of files that were compared with `tokenizers` on random texts, a line each. fixtures/tokenizer/random_strings.py makes
// the comparison, and the file.
//
//go:embed kinds.txt
var checkedKinds string

// unchecked are those of some parts that were not compared.
func unchecked(kinds []string) string {
	checked := strings.Split(checkedKinds, "\n")
	var parts []string
	for _, kind := range kinds {
		if !slices.Contains(checked, kind) {
			parts = append(parts, shortened(kind))
		}
	}
	return strings.Join(parts, "; ")
}

// shortened cuts a part that would fill a screen.
func shortened(kind string) string {
	const most = 300
	if len(kind) <= most {
		return kind
	}
	return strings.ToValidUTF8(kind[:most], "") + " ..."
}
