package capture

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/safetensors"
)

// Gradient begins the names of gradients, which a training run records. The name of a parameter or tensor follows: the
// variable of the derivative of the loss.
const Gradient = "grad/"

// Key returns the key in a trace of the firing-th firing of name in a pass: [pass<k>/]<name>[#<n>], without the
// part that says 0.
func Key(pass int, name string, firing int) string {
	var most [128]byte // keys fit on the stack
	return string(appendKey(most[:0], pass, name, firing))
}

func appendKey(b []byte, pass int, name string, firing int) []byte {
	if pass != 0 {
		b = append(b, "pass"...)
		b = strconv.AppendInt(b, int64(pass), 10)
		b = append(b, '/')
	}
	b = append(b, name...)
	if firing != 0 {
		b = append(b, '#')
		b = strconv.AppendInt(b, int64(firing), 10)
	}
	return b
}

// parseKey is the inverse of Key.
func parseKey(key string) (pass int, name string, firing int, err error) {
	name = key
	if prefix, rest, ok := strings.Cut(key, "/"); ok && prefix+"/" != Gradient {
		digits, _ := strings.CutPrefix(prefix, "pass")
		pass, _ = strconv.Atoi(digits)
		name = rest
	}
	if base, digits, ok := strings.Cut(name, "#"); ok {
		firing, _ = strconv.Atoi(digits)
		name = base
	}
	// A key can be written in one way only. Comparing with that text refuses bad digits, signs, leading zeros and
	// "pass0/".
	var most [128]byte
	if pass < 0 || firing < 0 || string(appendKey(most[:0], pass, name, firing)) != key {
		return 0, "", 0, fmt.Errorf("key %s is not of the form pass<k>/<name>#<n>", quote(key))
	}
	if err := checkName(name); err != nil {
		return 0, "", 0, fmt.Errorf("key %s: %w", quote(key), err)
	}
	return pass, name, firing, nil
}

// checkName returns why name cannot stand in a key.
func checkName(name string) error {
	name, _ = strings.CutPrefix(name, Gradient)
	switch {
	case name == "":
		return errors.New("the name is empty")
	case name == safetensors.MetadataKey:
		return errors.New("safetensors keeps this name for its metadata")
	case strings.ContainsAny(name, "/#"):
		return errors.New("the name contains '/' or '#', which separate pass and firing in a trace (only the prefix " + Gradient + " may)")
	case !utf8.ValidString(name):
		return errors.New("the name is not valid UTF-8")
	}
	return nil
}

// HeaderBytes returns the bytes that an entry takes in the header of a trace below 1 TB. A caller who knows the
// tensors of a run adds up their bytes for [Create].
func HeaderBytes(key string, d hooks.DType, shape []int) int {
	const far = 999_999_999_999
	return len(appendEntry(nil, key, d, shape, far, far)) - len("}") // the brace that closes the header was there before
}

// appendEntry appends the text that replaces the closing brace of the header. The writer has the key as bytes, and
// HeaderBytes has the key as a string.
func appendEntry[K []byte | string](b []byte, key K, d hooks.DType, shape []int, begin, end int64) []byte {
	b = append(b, ',')
	b = appendString(b, key)
	b = append(b, `:{"dtype":"`...)
	b = append(b, d.Safetensors()...)
	b = append(b, `","shape":[`...)
	for i, size := range shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(size), 10)
	}
	b = append(b, `],"data_offsets":[`...)
	b = strconv.AppendInt(b, begin, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, end, 10)
	return append(b, `]}}`...)
}

// appendString appends s, valid UTF-8, as a JSON string. It runs for every tensor and does not allocate;
// encoding/json would.
func appendString[S []byte | string](b []byte, s S) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // of the text that has not been appended yet
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		if c >= ' ' {
			b = append(b, '\\', c)
		} else {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// quote is %q, shortened: a key of a hostile file can be as long as the header.
func quote(key string) string {
	const most = 120
	if len(key) > most {
		return fmt.Sprintf("%q...", key[:most])
	}
	return fmt.Sprintf("%q", key)
}

// ParseKey is the inverse of [Key]; ok is false for a key of another form.
func ParseKey(key string) (pass int, name string, firing int, ok bool) {
	pass, name, firing, err := parseKey(key)
	return pass, name, firing, err == nil
}
