package tomlfile_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/tomlfile"
)

type file struct {
	Name string `toml:"name"`
	Item []struct {
		Size float64 `toml:"size"`
	} `toml:"item"`
	On    bool     `toml:"on"`
	Count int      `toml:"count"`
	Words []string `toml:"words"`
}

func TestDecode(t *testing.T) {
	var f file
	if err := tomlfile.Decode([]byte("name = 'x'\n[[item]]\nsize = 2e-3\n"), &f); err != nil || f.Name != "x" || len(f.Item) != 1 || f.Item[0].Size != 2e-3 {
		t.Errorf("%+v, %v", f, err)
	}
}

// Whatever is wrong, the error quotes the line.
func TestErrorsQuoteTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"name = 'x'\nnmae = 'y'\n":           `line 2, "nmae = 'y'": unknown key "nmae"`,
		"[[item]]\nsize = 1\nsise = 2 # two": `line 3, "sise = 2 # two": unknown key "item.sise"`,
		"name = 3":                           `line 1, "name = 3": "name" is an integer, want a string`,
		"name = 'x'\n\n[[item\n":             `line 3, "[[item": `,
	} {
		err := tomlfile.Decode([]byte(text), &file{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A value of the wrong type is told in the words of the file, never in those of the program's types.
func TestTypesAreSaidInWords(t *testing.T) {
	for text, want := range map[string]string{
		"name = [1]":                  `"name" is an array, want a string`,
		"on = 1":                      `"on" is an integer, want true or false`,
		"count = 'x'":                 `"count" is a string, want a whole number`,
		"count = 1.5":                 `"count" is a float, want a whole number`,
		"words = 'x'":                 `"words" is a string, want a list, each a string`,
		"[[item]]\nsize = '1e-3'":     `"item.size" is a string, want a number`,
		"[[item]]\nsize = true":       `"item.size" is a boolean, want a number`,
		"item = 3":                    `"item" is an integer, want a table under a heading in double brackets`,
		"[[item]]\nsize = 1e400":      `unable to parse float: "1e400": value out of range`,
		"name = 'x'\nname = 'y'":      `key name is already defined`,
		"count = 9999999999999999999": `number is too large`,
	} {
		err := tomlfile.Decode([]byte(text), &file{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "toml") || strings.Contains(err.Error(), "struct") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name = 'x'\n[[item]]\nsize = 2e-3\n"))
	f.Add([]byte("nmae = \"\\u0000\"\r\n[a.b]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := tomlfile.Decode(data, &file{}); err != nil && err.Error() == "" {
			t.Error("an error that says nothing")
		}
	})
}
