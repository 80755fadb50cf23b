package tokenizer

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
)

// namesWithCapitals lists the field names that have capitals. Other field names have small letters and "_" only.
var namesWithCapitals = []string{"String", "Regex", "SpecialToken", "Sequence", "Fixed"}

// checkSpelling returns an error where encoding/json reads a tokenizer.json, which is valid JSON, otherwise than `tokenizers` does: it takes
// "Merges" for "merges", and half of a surrogate pair for U+FFFD.
func checkSpelling(data []byte) error {
	var free []bool // of each object or list around: its names may be any
	name, next := "", false
	for at := 0; at < len(data); at++ {
		switch data[at] {
		case '{', '[':
			free, next = append(free, next), false
		case '}', ']':
			free = free[:max(0, len(free)-1)]
		case '"':
			size := stringEnd(data[at+1:])
			quoted := data[at+1 : at+1+size]
			at += size + 1
			if bytes.IndexByte(quoted, '\\') >= 0 {
				if err := checkSurrogates(quoted); err != nil {
					return err
				}
			}
			next = false
			if rest := bytes.TrimLeft(data[at+1:], " \t\r\n"); len(rest) == 0 || rest[0] != ':' || free[len(free)-1] {
				continue
			}
			name = string(quoted)
			if bytes.ContainsFunc(quoted, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) && !slices.Contains(namesWithCapitals, name) {
				return fmt.Errorf("the field %.60q is not known", name)
			}
			next = name == "vocab" || name == "special_tokens"
		}
	}
	return nil
}

// checkSurrogates returns an error if a quoted string of valid JSON has the escape of a surrogate without its partner.
func checkSurrogates(quoted []byte) error {
	unit := func(at int) rune {
		if at+6 > len(quoted) || quoted[at] != '\\' || quoted[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(quoted[at+2:at+6]), 16, 16) // valid, as the string is
		return rune(n)
	}
	for at := 0; at < len(quoted); at++ {
		if quoted[at] != '\\' {
			continue
		}
		switch r := unit(at); {
		case !utf16.IsSurrogate(r):
			at++
		case utf16.DecodeRune(r, unit(at+6)) == '\uFFFD':
			return fmt.Errorf("the escape %s of a surrogate has no pair", quoted[at:at+6])
		default:
			at += 11
		}
	}
	return nil
}
