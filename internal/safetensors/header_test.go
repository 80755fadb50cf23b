package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/safetensors"
)

// eight is an entry of eight bytes at offset 0.
const eight = `{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`

// good are headers that the official reader opens, by the reason for having them.
var good = []struct {
	reason, text string
	want         safetensors.Header
}{
	{"no tensor", `{}`, safetensors.Header{}},
	{"metadata alone", `{"__metadata__":{"a":"1","b":""}}`, safetensors.Header{Metadata: map[string]string{"a": "1", "b": ""}}},
	{"MLX's null metadata", `{"__metadata__":null}`, safetensors.Header{}},
	{"white space wherever JSON has it", "{ \"a\" :\n{ \"dtype\":\"F32\",\t\"shape\" : [ 2 ] ,\r\"data_offsets\":[0 , 8]} } \n ", tensors(two("a"))},
	{"any order of keys", `{"a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"}}`, tensors(two("a"))},
	{"unknown keys of every kind", `{"a":{"x":[1,{"y":"]}\""}],"dtype":"F32","z":null,"u":-1.5e3,"shape":[2],"t":{},"data_offsets":[0,8]}}`, tensors(two("a"))},
	{"escapes", `{"\u0061\ud83d\ude00\"\\\/\b\f\n\r\t":` + eight + `}`, tensors(two("a😀\"\\/\b\f\n\r\t"))},
	{"text beyond ASCII", `{"größe":` + eight + `}`, tensors(two("größe"))},
	{"an empty name", `{"":` + eight + `}`, tensors(two(""))},
	{"a scalar", `{"s":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}}`, tensors(safetensors.Tensor{Name: "s", DType: hooks.Bool, End: 1})},
	{
		"empty tensors, listed behind the one that starts where they are",
		`{"a":` + eight + `,"e":{"dtype":"F64","shape":[3,0],"data_offsets":[0,0]},"d":{"dtype":"F8_E4M3","shape":[0],"data_offsets":[0,0]}}`,
		tensors(safetensors.Tensor{Name: "e", DType: hooks.F64, Shape: []int{3, 0}}, safetensors.Tensor{Name: "d", DType: hooks.F8E4M3, Shape: []int{0}}, two("a")),
	},
	{
		"entries sorted by name, data not",
		`{"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"b":` + eight + `}`,
		tensors(two("b"), safetensors.Tensor{Name: "a", DType: hooks.F32, Shape: []int{1}, Begin: 8, End: 12}),
	},
}

func two(name string) safetensors.Tensor {
	return safetensors.Tensor{Name: name, DType: hooks.F32, Shape: []int{2}, End: 8}
}

func tensors(t ...safetensors.Tensor) safetensors.Header { return safetensors.Header{Tensors: t} }

func TestGoodHeaders(t *testing.T) {
	for _, c := range good {
		h, err := safetensors.Parse([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if _, err := h.Layout(); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		if diff := cmp.Diff(c.want, h); diff != "" {
			t.Errorf("%s: want -, got +\n%s", c.reason, diff)
		}
	}
}

// bad are headers that no reader should open, with the text of the error.
var bad = []struct{ text, want string }{
	{``, "does not start with '{'"},
	{` {}`, "does not start with '{'"},
	{`[]`, "does not start with '{'"},
	{`null`, "does not start with '{'"},
	{`{`, "ends in the middle"},
	{`{"a"`, "ends in the middle"},
	{`{} x`, "header byte 3: want nothing after the header's closing brace"},
	{`{}{}`, "want nothing after"},
	{"{}\x00", "want nothing after"},
	{`{"a":` + eight + `,}`, "want a string"},
	{`{"a":` + eight + ` "b":` + eight + `}`, "want ',' or '}'"},
	{`{"a" ` + eight + `}`, "want ':' after a key"},
	{`{"a":1}`, `tensor "a": header byte 5: want an object`},
	{`{"a":null}`, "want an object"},
	{`{"a":` + eight + `,"a":` + eight + `}`, `the header has "a" twice`},
	{`{"a":` + eight + `,"\u0061":` + eight + `}`, `the header has "a" twice`},
	{`{"__metadata__":null,"__metadata__":{}}`, `the header has "__metadata__" twice`},
	{`{"__metadata__":{"k":"1","k":"1"}}`, `metadata has "k" twice`},
	{`{"__metadata__":{"k":1}}`, `metadata "k": header byte 21: want a string`},
	{`{"__metadata__":{"k":null}}`, `metadata "k"`},
	{`{"__metadata__":[]}`, "want an object"},
	{"{\"a\xff\":" + eight + "}", "not valid UTF-8"},
	{"{\"a\x00\":" + eight + "}", "a control character in a string"},
	{"{\"a\n\":" + eight + "}", "a control character in a string"},
	{`{"\ud800":` + eight + `}`, "an invalid escape"},
	{`{"\ude00\ud83d":` + eight + `}`, "an invalid escape"},
	{`{"\ud83d\n":` + eight + `}`, "an invalid escape"},
	{`{"\ud83d\u00":` + eight + `}`, "an invalid escape"},
	{`{"\x41":` + eight + `}`, "an invalid escape"},
	{`{"\u00g0":` + eight + `}`, "an invalid escape"},
	{`{"a":{"dtype":"F32","shape":[2]}}`, `tensor "a": no data_offsets`},
	{`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, `tensor "a": no shape`},
	{`{"a":{"shape":[2],"data_offsets":[0,8]}}`, `tensor "a": no dtype`},
	{`{"a":{"DType":"F32","shape":[2],"data_offsets":[0,8]}}`, `no dtype`},
	{`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, `tensor "a": "dtype" twice`},
	{`{"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}}`, `dtype: header byte 14: want a string`},
	{`{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, "want a whole number"},
	{`{"a":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}`, "want a whole number"},
	{`{"a":{"dtype":"F32","shape":[02],"data_offsets":[0,8]}}`, "want a whole number"},
	{`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, "want a whole number that is not negative"},
	{`{"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}}`, "want a whole number"},
	{`{"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}}`, "want a list of numbers"},
	{`{"a":{"dtype":"F32","shape":null,"data_offsets":[0,8]}}`, "want a list of numbers"},
	{`{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}}`, "number too large"},
	{`{"a":{"dtype":"F32","shape":[9223372036854775807,2],"data_offsets":[0,8]}}`, "more elements than a file can hold"},
	{`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, "more elements than a file can hold"},
	{`{"a":{"dtype":"F32","shape":[` + strings.Repeat("1,", 64) + `2],"data_offsets":[0,8]}}`, "want at most 64 numbers"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, "want at most 2 numbers"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8]}}`, "data_offsets has 1 numbers, want 2"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, "end before they start"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}`, `F32 of shape [2] takes 8 bytes, data_offsets give it 9`},
	{`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,8]}}`, "takes 0 bytes"},
	{`{"a":{"x":[1,2,"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, "want a value"},
	{`{"a":{"x":tru,"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, "want a value"},
	{`{"a":{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, "want a value"},
	{`{"a":{"dtype":"","shape":[2],"data_offsets":[0,8]}}`, "the dtype has no name"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, `tensor "a": 4 bytes before its data belong to no tensor`},
	{`{"a":` + eight + `,"b":{"dtype":"U8","shape":[1],"data_offsets":[9,10]}}`, `tensor "b": 1 bytes before its data`},
	{`{"a":` + eight + `,"b":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}}`, `tensor "b": its data overlap another tensor's by 1 bytes`},
	{`{"a":` + eight + `,"b":` + eight + `}`, `tensor "b": its data overlap another tensor's by 8 bytes`},
	{`{"` + strings.Repeat("n", 500) + `":1}`, strings.Repeat("n", 120) + `"...: header byte`},
}

func TestBadHeaders(t *testing.T) {
	for _, c := range bad {
		h, err := safetensors.Parse([]byte(c.text))
		if err == nil {
			_, err = h.Layout()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: error %v, want %q", c.text, err, c.want)
		}
	}
}

// A dtype that nothing here reads is no reason to read nothing else; who wants its data is refused.
func TestUnknownDTypes(t *testing.T) {
	for _, name := range []string{"C64", "F4", "F8_E8M0", "float32"} {
		h, err := safetensors.Parse([]byte(`{"a":` + eight + `,"b":{"dtype":"` + name + `","shape":[2],"data_offsets":[8,9]}}`))
		if err != nil || len(h.Tensors) != 2 || h.Tensors[0].Readable() != nil {
			t.Fatalf("%s: %+v, error %v", name, h.Tensors, err)
		}
		if err := h.Tensors[1].Readable(); err == nil || err.Error() != `tensor "b": unknown dtype "`+name+`"` {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A header cut anywhere, with spaces or nothing behind the cut, gives the entries that are whole and an error
// that says it ended early.
func TestCutHeader(t *testing.T) {
	text := `{"__metadata__":{"k":"v"},"a":` + eight + `,"b\"é":{"dtype":"BF16","shape":[3,1],"data_offsets":[8,14]}}`
	ends := []int{strings.Index(text, `,"b`), len(text) - 1}
	for cut := 1; cut < len(text); cut++ {
		whole := 0
		for _, end := range ends {
			if cut >= end {
				whole++
			}
		}
		for _, rest := range []string{"", strings.Repeat(" ", 20)} {
			h, err := safetensors.Parse([]byte(text[:cut] + rest))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%q: error %v, want one that wraps io.ErrUnexpectedEOF", text[:cut]+rest, err)
			}
			if len(h.Tensors) != whole {
				t.Fatalf("%q: %d tensors, want %d", text[:cut]+rest, len(h.Tensors), whole)
			}
		}
	}
}

// file is a safetensors file of which only the header matters.
func file(length uint64, text string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, length), text...)
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		file []byte
		want string // of the error
	}{
		{nil, "a file of 0 bytes"},
		{[]byte("1234567"), "a file of 7 bytes"},
		{file(3, `{}`), "a header of 3 bytes in a file of 10"},
		{file(100_000_001, `{}`), "a header of 100000001 bytes: safetensors allows 100000000"},
		{file(1<<64-1, `{}`), "a header of 18446744073709551615 bytes"},
	} {
		if _, err := safetensors.Text(bytes.NewReader(c.file), int64(len(c.file))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.file, err, c.want)
		}
	}
	text, err := safetensors.Text(bytes.NewReader(file(2, `{}data`)), 14)
	if err != nil || string(text) != `{}` {
		t.Errorf("text %q, error %v", text, err)
	}
	// The size was 100 when somebody asked; the file has 10 bytes by now.
	if _, err := safetensors.Text(bytes.NewReader(file(50, `{}`)), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file shorter than its size: error %v", err)
	}
}
