package tokenizer_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/tracediff/tracediff/internal/tokenizer"
)

// A family is a tokenizer.json that fixtures/tokenizer/families.py has compared with Python: a file of its own, or another's with fields
// exchanged.
type family struct {
	file string
	edit map[string]json.RawMessage
}

// families are those with a file of their own, and those of edits.json.
var families = sync.OnceValue(func() map[string]family {
	all := map[string]family{
		"gemma":  {file: fixture + "tokenizer.json"},
		"llama3": {file: "testdata/llama3/tokenizer.json"},
		"qwen2":  {file: "testdata/qwen2/tokenizer.json"},
	}
	data, err := os.ReadFile("testdata/edits.json")
	if err != nil {
		panic(err)
	}
	var edits map[string][2]json.RawMessage
	if err := json.Unmarshal(data, &edits); err != nil {
		panic(err)
	}
	for name, edit := range edits {
		var source string
		fields := map[string]json.RawMessage{}
		if err := errors.Join(json.Unmarshal(edit[0], &source), json.Unmarshal(edit[1], &fields)); err != nil {
			panic(err)
		}
		all[name] = family{all[source].file, fields}
	}
	return all
})

// familyJSON returns the tokenizer.json of a family.
func familyJSON(t testing.TB, name string) []byte {
	t.Helper()
	family, ok := families()[name]
	if !ok {
		t.Fatalf("no family %s", name)
	}
	data, err := os.ReadFile(family.file)
	if err != nil {
		t.Fatal(err)
	}
	return exchange(t, data, family.edit)
}

// exchange returns a JSON object with some of its fields exchanged.
func exchange(t testing.TB, object []byte, fields map[string]json.RawMessage) []byte {
	t.Helper()
	if len(fields) == 0 {
		return object
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		all[name] = value
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func openFamily(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	return open(t, fstest.MapFS{"tokenizer.json": {Data: familyJSON(t, name)}})
}

// unpack returns the content of a gzipped file of testdata.
func unpack(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mixedLines returns the lines of all scripts that lines.py made.
func mixedLines(t testing.TB) []string {
	t.Helper()
	var all []string
	for scan := bufio.NewScanner(bytes.NewReader(unpack(t, "lines.jsonl.gz"))); scan.Scan(); {
		var line string
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if len(all) != 10_000 {
		t.Fatalf("%d lines, want 10,000", len(all))
	}
	return all
}

// goldenIDs returns the ids of the first lines by the `tokenizers` package.
func goldenIDs(t testing.TB, family string) [][]int {
	t.Helper()
	in := bytes.NewReader(unpack(t, family+".ids.gz"))
	next := func() int {
		n, err := binary.ReadUvarint(in)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	var all [][]int
	for in.Len() > 0 {
		ids := make([]int, next())
		for i := range ids {
			ids[i] = next()
		}
		all = append(all, ids)
	}
	return all
}

// TestFamiliesEqualPython compares every line of mixed scripts, code, emoji and control text.
func TestFamiliesEqualPython(t *testing.T) {
	texts := mixedLines(t)
	if len(families()) < 15 {
		t.Fatalf("only %d families", len(families()))
	}
	for name, family := range families() {
		t.Run(name, func(t *testing.T) {
			tok := openFamily(t, name)
			golden := goldenIDs(t, name)
			if want := len(texts); len(golden) != want && (family.edit == nil || len(golden) != want/4) {
				t.Fatalf("golden ids of %d lines", len(golden))
			}
			failed := 0
			for i, want := range golden {
				if got := encode(t, tok, texts[i]); !equal(got, want) && failed < 5 {
					failed++
					t.Errorf("line %d: Encode(%q) = %v, want %v", i, texts[i], got, want)
				}
			}
		})
	}
}
