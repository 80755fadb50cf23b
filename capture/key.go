package capture

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/safetensors"
	"github.com/tracediff/tracediff/internal/tracekey"
)

// Gradient begins the names of gradients, which a training run records. The name of a parameter or tensor follows: the
// variable of the derivative of the loss.
const Gradient = tracekey.Gradient

// Key returns the key in a trace of the firing-th firing of name in a pass: [pass<k>/]<name>[#<n>], without the
// part that says 0.
func Key(pass int, name string, firing int) string {
	return tracekey.Key{Pass: pass, Name: name, Firing: firing}.String()
}

// ParseKey is the inverse of [Key]; ok is false for a key of another form.
func ParseKey(key string) (pass int, name string, firing int, ok bool) {
	k, err := parseKey(key)
	return k.Pass, k.Name, k.Firing, err == nil
}

// parseKey reads a key. The error says why a text is not a key.
func parseKey(key string) (tracekey.Key, error) {
	k, ok := tracekey.Parse(key)
	if !ok {
		return k, fmt.Errorf("key %s is not of the form pass<k>/<name>#<n>", plain.Quote(key))
	}
	if err := checkName(k.Name); err != nil {
		return tracekey.Key{}, fmt.Errorf("key %s: %w", plain.Quote(key), err)
	}
	return k, nil
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
