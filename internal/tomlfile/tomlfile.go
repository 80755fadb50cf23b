// Package tomlfile reads TOML that people write, and quotes text for such files. It is strict: an unknown key is an error, since a misspelt limit would
// limit nothing; and every error quotes the line, for a person who looks into the file.
package tomlfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// Decode reads data into the struct that into points to. The caller bounds the size of data.
func Decode(data []byte, into any) error {
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(into); err != nil {
		return quoted(err, data)
	}
	return nil
}

// Quote is a text as a basic string of TOML, on one line. Invalid UTF-8 becomes the replacement character: TOML has no other text.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoted adds the line to an error of the TOML reader, and names a key that it does not know.
func quoted(err error, data []byte) error {
	var at *toml.DecodeError
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		at = &unknown.Errors[0]
		err = fmt.Errorf("unknown key %.80q", strings.Join(at.Key(), "."))
	} else if errors.As(err, &at) {
		err = inWords(at)
	} else {
		return err
	}
	row, _ := at.Position()
	lines := strings.Split(string(data), "\n")
	if row < 1 || row > len(lines) {
		return err
	}
	return fmt.Errorf("line %d, %.120q: %w", row, strings.TrimSpace(lines[row-1]), err)
}

// mistyped matches the reader's error for a value of the wrong type. The error names a field of a struct, which the file's writer has never
// seen.
var mistyped = regexp.MustCompile(`^toml: cannot decode TOML (.+) into struct field .* of type (\S+)( .*)?$`)

// parsing is what the functions that read numbers call themselves.
var parsing = regexp.MustCompile(`strconv\.\w+: parsing `)

// inWords says what is wrong about a value in the words of the file.
func inWords(err *toml.DecodeError) error {
	m := mistyped.FindStringSubmatch(err.Error())
	if m == nil {
		return errors.New(parsing.ReplaceAllString(strings.TrimPrefix(err.Error(), "toml: "), ""))
	}
	return fmt.Errorf("%.80q is %s, want %s", strings.Join(err.Key(), "."), withArticle(m[1]), wanted(m[2]))
}

func withArticle(kind string) string {
	if strings.ContainsAny(kind[:1], "aeio") {
		return "an " + kind
	}
	return "a " + kind
}

// wanted is a Go type as what is written for it.
func wanted(of string) string {
	switch element, list := strings.CutPrefix(of, "[]"); {
	case list && element == "struct":
		return "a table under a heading in double brackets"
	case list:
		return "a list, each " + wanted(element)
	case of == "struct":
		return "a table"
	case of == "bool":
		return "true or false"
	case strings.HasPrefix(of, "float"):
		return "a number"
	case strings.HasPrefix(of, "int"), strings.HasPrefix(of, "uint"):
		return "a whole number"
	}
	return "a string"
}
