// Package tracekey reads and writes the keys of tensors: [pass<k>/]<name>[#<n>]. No other package reads or writes a key.
//
// A trace has each key in the form that [Key.String] writes, and [Parse] reads only this form. A dump of another program may have only
// "pass<k>/" in front of a name of any form, for [CutPass]. A person may write leading zeros, for [Read].
package tracekey

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

const (
	// Gradient begins the name of a gradient. The name of a parameter or tensor follows.
	Gradient = "grad/"
	// PassPattern matches "pass<k>/", as part of a regular expression.
	PassPattern = passWord + `[0-9]+/`

	passWord = "pass"
)

// Key is a key in its parts.
type Key struct {
	Pass   int
	Name   string
	Firing int // of the name in the pass, from 0
}

// String is the key's text, without the part that says 0.
func (k Key) String() string {
	var most [128]byte // keys fit on the stack
	return string(k.Append(most[:0]))
}

// Append appends the key's text.
func (k Key) Append(b []byte) []byte {
	if k.Pass != 0 {
		b = append(b, passWord...)
		b = strconv.AppendInt(b, int64(k.Pass), 10)
		b = append(b, '/')
	}
	b = append(b, k.Name...)
	if k.Firing != 0 {
		b = append(b, '#')
		b = strconv.AppendInt(b, int64(k.Firing), 10)
	}
	return b
}

// Parse is the inverse of [Key.String]; ok is false for a text of another form. Parse does not check the name.
func Parse(text string) (k Key, ok bool) {
	k.Name = text
	if prefix, rest, cut := strings.Cut(text, "/"); cut && prefix+"/" != Gradient {
		digits, _ := strings.CutPrefix(prefix, passWord)
		k.Pass, _ = strconv.Atoi(digits)
		k.Name = rest
	}
	if base, digits, cut := strings.Cut(k.Name, "#"); cut {
		k.Firing, _ = strconv.Atoi(digits)
		k.Name = base
	}
	// A key can be written in one way only. Comparing with this text refuses bad digits, signs, leading zeros and "pass0/".
	var most [128]byte
	if k.Pass < 0 || k.Firing < 0 || string(k.Append(most[:0])) != text {
		return Key{}, false
	}
	return k, true
}

// CutPass cuts "pass<k>/" off a text, "pass0/" too. After "pass<k>/" any name may follow. Without "pass<k>/", and for a number with leading
// zeros or above the largest pass of a trace, the pass is 0, rest is the text and found is false.
func CutPass(text string) (pass int, rest string, found bool) {
	prefix, rest, cut := strings.Cut(text, "/")
	digits, is := strings.CutPrefix(prefix, passWord)
	n, err := strconv.Atoi(digits)
	if !cut || !is || rest == "" || err != nil || n < 0 || n > math.MaxInt32 || strconv.Itoa(n) != digits {
		return 0, text, false
	}
	return n, rest, true
}

// AfterPass returns the rest of a text whose first part begins with "pass": "pass3/", "pass01/" and "pass_1/". [CutPass] reads only "pass3/".
func AfterPass(text string) (rest string, found bool) {
	prefix, rest, cut := strings.Cut(text, "/")
	return rest, cut && strings.HasPrefix(prefix, passWord)
}

var written = regexp.MustCompile(`^(?:` + passWord + `([0-9]+)/)?(.+?)(?:#([0-9]+))?$`)

// Read reads a key that a person wrote: numbers may have leading zeros, and parts that say 0 may stand there. ok is false for no name and for
// a number that is too large.
func Read(text string) (k Key, ok bool) {
	parts := written.FindStringSubmatch(text)
	if parts == nil {
		return Key{}, false
	}
	pass, err := strconv.Atoi("0" + parts[1])
	firing, err2 := strconv.Atoi("0" + parts[3])
	return Key{pass, parts[2], firing}, err == nil && err2 == nil
}
