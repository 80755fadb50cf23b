package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A byte-level vocabulary spells the bytes of UTF-8 by characters that can be seen: those of Latin-1
// that are visible stand for themselves, the 68 others for the characters from U+0100 on, in order. A
// space is "Ġ" and a line break "Ċ". GPT-2 began it.
var (
	byteChars [256]rune
	charBytes = make(map[rune]byte, 256)
)

func init() {
	next := rune(0x100)
	for b := range byteChars {
		r := rune(b)
		if visible := '!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ'; !visible {
			r, next = next, next+1
		}
		byteChars[b] = r
		charBytes[r] = byte(b)
	}
}

// spell returns the characters that spell the bytes of text.
func spell(text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		out.WriteRune(byteChars[b])
	}
	return out.String()
}

// bytesOf returns the bytes spelled by a byte-level piece; ok is false for a piece with a foreign character.
func bytesOf(piece string) (spelled string, ok bool) {
	var out strings.Builder
	for _, r := range piece {
		b, ok := charBytes[r]
		if !ok {
			return "", false
		}
		out.WriteByte(b)
	}
	return out.String(), true
}

// showBytes returns text with every byte that belongs to no character written as "<0xE2>".
func showBytes(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&out, "<0x%02X>", text[0])
		} else {
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}
