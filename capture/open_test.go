package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// safetensor is a file of a header and data.
func safetensor(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// trace is a trace with these entries, spelled as its writer would. The part of the header behind status and
// sequence is metadata, the rest is entries.
func trace(status, metadata, entries, data string) []byte {
	return safetensor(fmt.Sprintf(`{"__metadata__":{"tracediff.version":"1","tracediff.status":"%-240s","tracediff.sequence":"execution"%s}%s}`, status, metadata, entries), data)
}

// u8 is an entry of bytes from begin to end.
func u8(key string, begin, end int) string {
	return fmt.Sprintf(`,"%s":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}`, key, end-begin, begin, end)
}

// refused are files that do not open, with the text of the error.
var refused = []struct {
	what, want string
	file       []byte
}{
	{"empty", "a file of 0 bytes", nil},
	{"short length", "a file of 7 bytes", make([]byte, 7)},
	{"header beyond the file", "a header of 20 bytes in a file of 10", append(binary.LittleEndian.AppendUint64(nil, 20), `{}`...)},
	{"header beyond the limit", "safetensors allows 100000000", append(binary.LittleEndian.AppendUint64(nil, 1<<40), `{}`...)},
	{"no object", "does not start with '{'", safetensor(`[]`, "")},
	{"bytes", "not valid UTF-8", safetensor("{\"\xc3\":1}", "")},
	{"nul", "want a string", safetensor("{\x00}", "")},

	{"foreign, cut", "ends in the middle", safetensor(`{"__metadata__":{}`+u8("a", 0, 4)+`,"b"   `, "abcd")},
	{"foreign, trailing data", "1 bytes after the last tensor belong to no tensor", safetensor(`{"__metadata__":{}`+u8("a", 0, 4)+`}`, "abcde")},
	{"foreign, truncated", "1 of 4 bytes of data are missing at its end", safetensor(`{"__metadata__":{}`+u8("a", 0, 4)+`}`, "abc")},
	{"foreign, says it is open", `metadata has "tracediff.status" and no tracediff.version`, safetensor(`{"__metadata__":{"tracediff.status":"open"}`+u8("a", 0, 4), "abcd")},

	{"complete, cut in the header", "in a file of 348", trace("complete", "", u8("a", 0, 4)+`,"b"`, "abcd")[:8+340]},
	{"complete, cut entry", "ends in the middle", safetensor(strings.TrimSuffix(string(trace("complete", "", u8("a", 0, 4), "")[8:]), "]}}")+"   ", "abcd")},
	{"complete, trailing data", "1 bytes after the last tensor", trace("complete", "", u8("a", 0, 4), "abcde")},
	{"complete, truncated", "2 of 4 bytes of data are missing", trace("complete", "", u8("a", 0, 4), "ab")},
	{"open, garbage in the header", `want ',' or '}'`, trace("open", "", u8("a", 0, 4)+" x", "abcd")},
	{"open, hole", `tensor "b": 1 bytes before its data`, trace("open", "", u8("a", 0, 4)+u8("b", 5, 6), "abcdef")},
	{"open, overlap", `tensor "b": its data overlap`, trace("open", "", u8("a", 0, 4)+u8("b", 3, 6), "abcdef")},

	{"other version", `trace version "2", this build reads version "1"`, safetensor(`{"__metadata__":{"tracediff.version":"2"}}`, "")},
	{"other sequence", `tracediff.sequence is "sorted", want "execution"`, safetensor(`{"__metadata__":{"tracediff.version":"1","tracediff.sequence":"sorted"}}`, "")},
	{"order of the header", "another order than their data", trace("complete", "", u8("b", 4, 6)+u8("a", 0, 4), "abcdef")},
	{"order of empty tensors", "another order than their data", trace("complete", "", u8("a", 0, 4)+u8("e", 0, 0), "abcd")},
	{"pass 0", `key "pass0/a" is not of the form`, trace("complete", "", u8("pass0/a", 0, 1), "a")},
	{"pass 01", `key "pass01/a" is not of the form`, trace("complete", "", u8("pass01/a", 0, 1), "a")},
	{"pass -1", `key "pass-1/a" is not of the form`, trace("complete", "", u8("pass-1/a", 0, 1), "a")},
	{"pass +1", `key "pass+1/a" is not of the form`, trace("complete", "", u8("pass+1/a", 0, 1), "a")},
	{"pass without a number", `key "pass/a" is not of the form`, trace("complete", "", u8("pass/a", 0, 1), "a")},
	{"pass beyond an int", `is not of the form`, trace("complete", "", u8("pass99999999999999999999/a", 0, 1), "a")},
	{"another prefix", `key "step1/a" is not of the form`, trace("complete", "", u8("step1/a", 0, 1), "a")},
	{"two prefixes", `'/' or '#'`, trace("complete", "", u8("pass1/pass2/a", 0, 1), "a")},
	{"firing 0", `key "a#0" is not of the form`, trace("complete", "", u8("a#0", 0, 1), "a")},
	{"firing without a number", `key "a#" is not of the form`, trace("complete", "", u8("a#", 0, 1), "a")},
	{"no name", `the name is empty`, trace("complete", "", u8("pass1/", 0, 1), "a")},
	{"empty key", `the name is empty`, trace("complete", "", u8("", 0, 1), "a")},
	{"metadata as a name", `keeps this name`, trace("complete", "", u8("pass1/__metadata__", 0, 1), "a")},
	{"second firing alone", `"a#1" comes before firing 0`, trace("complete", "", u8("a#1", 0, 1), "a")},
	{"third after first", `"a#2" comes before firing 1`, trace("complete", "", u8("a", 0, 1)+u8("a#2", 1, 2), "ab")},
	{"saved again by another program", "it was written again by another program: its 2 tensors are sorted by dtype and name", trace("complete", "", u8("pass1/a", 0, 1)+u8("x", 1, 2), "ab")},
	{"passes backwards", `"pass1/b" of pass 1 comes after pass 2`, trace("complete", "", u8("pass2/a", 0, 1)+u8("pass1/b", 1, 2), "ab")},

	{"config", "metadata tracediff.config: not JSON", trace("complete", `,"tracediff.config":"{"`, "", "")},
	{"producer", "metadata tracediff.producer", trace("complete", `,"tracediff.producer":"transformers"`, "", "")},
	{"scope without level", "scope has level 0", trace("complete", `,"tracediff.scope":"{\"layers\":\"3\"}"`, "", "")},
	{"scope level", "scope has level 4", trace("complete", `,"tracediff.scope":"{\"level\":4}"`, "", "")},
	{"unknown limit", `unknown field "heads"`, trace("complete", `,"tracediff.scope":"{\"level\":1,\"heads\":\"3\"}"`, "", "")},
	{"ranges", "range ends before it starts", trace("complete", `,"tracediff.scope":"{\"level\":1,\"layers\":\"3-1\"}"`, "", "")},
	{"entries", "metadata tracediff.entries", trace("complete", `,"tracediff.entries":"{}"`, "", "")},
	{"two values", "more than one JSON value", trace("complete", `,"tracediff.entries":"[] []"`, "", "")},
	{"dtype", `unknown dtype "bf16"`, trace("complete", `,"tracediff.dtype":"bf16"`, "", "")},
	{"passes", "metadata tracediff.passes", trace("complete", `,"tracediff.passes":"many"`, "", "")},
	{"negative passes", "-3 passes", trace("complete", `,"tracediff.passes":"-3"`, "", "")},
}

// A tensor of a dtype that nothing here reads is refused, but where a file is only looked into: there it is left out by name,
// and a trace, which has none, is refused all the same.
func TestUnknownDType(t *testing.T) {
	const entry = `"c":{"dtype":"C64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}`
	foreign, ours := safetensor("{"+entry+"}", "12345678ab"), safetensor(`{"__metadata__":{"tracediff.version":"1"},`+entry+"}", "12345678ab")
	path := filepath.Join(t.TempDir(), "x.safetensors")
	for what, file := range map[string][]byte{"foreign": foreign, "ours": ours} {
		_, err := openBytes(file)
		wantError(t, what, err, `tensor "c": unknown dtype "C64"`)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		tr, err := capture.Look(path)
		if what == "ours" {
			wantError(t, what, err, `tensor "c": unknown dtype "C64"`)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		a, err := tr.Read(tr.Records()[0])
		if err != nil || string(a.Data) != "ab" || len(tr.Records()) != 1 || len(tr.Notes()) != 1 || !strings.Contains(tr.Notes()[0], `"c" left out: shape [1], 8 bytes of dtype "C64"`) {
			t.Errorf("%v, records %v, notes %q, error %v", a, tr.Records(), tr.Notes(), err)
		}
	}
}

func openBytes(b []byte) (*capture.Trace, error) {
	return capture.OpenReader("test", bytes.NewReader(b), int64(len(b)))
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		_, err := openBytes(c.file)
		wantError(t, c.what, err, c.want)
		if err != nil && !strings.HasPrefix(err.Error(), "trace test: ") {
			t.Errorf("%s: error %q does not name the trace", c.what, err)
		}
	}
}

// unfinished are traces that were not completed, with what is left of them.
var unfinished = []struct {
	what string
	keys string
	note string // empty: none
	file []byte
}{
	{"between appends", "a b", "", trace("open", "", u8("a", 0, 4)+u8("b", 4, 6), "abcdef")},
	{"failed", "a", "", trace("failed: why", "", u8("a", 0, 4), "abcd")},
	{"data without entry", "a", "2 bytes after the last tensor left out", trace("open", "", u8("a", 0, 4), "abcdef")},
	{"entry in the making", "a", "cut off after tensor 1", safetensor(strings.TrimSuffix(string(trace("open", "", u8("a", 0, 4)+`,"b":{"dtype":"U8","shape":[1`, "")[8:]), "}")+"    ", "abcde")},
	{"header without its brace", "a", "cut off after tensor 1", safetensor(strings.TrimSuffix(string(trace("open", "", u8("a", 0, 4), "")[8:]), "}")+" ", "abcd")},
	{"a status in the making", "a", `status "compl" is not one that a run leaves`, trace("compl", "", u8("a", 0, 4), "abcd")},
	{"a status cut within a rune", "a", "", trace("failed: gr\xc3", "", u8("a", 0, 4), "abcd")},
	{"shorter than its header says", "a", "2 tensors left out: their data lie beyond", trace("open", "", u8("a", 0, 4)+u8("b", 4, 6)+u8("c", 6, 7), "abcde")},
}

func TestUnfinished(t *testing.T) {
	for _, c := range unfinished {
		tr, err := openBytes(c.file)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		var keys []string
		for _, r := range tr.Records() {
			keys = append(keys, r.Key)
		}
		if got := strings.Join(keys, " "); got != c.keys {
			t.Errorf("%s: tensors %q, want %q", c.what, got, c.keys)
		}
		if notes := strings.Join(tr.Notes(), "\n"); (notes == "") != (c.note == "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q, want %q", c.what, notes, c.note)
		}
		if tr.Status() == capture.StatusComplete {
			t.Errorf("%s: complete", c.what)
		}
	}
}

// Files of other writers open with any keys, and nobody is told that they are in the order of execution.
func TestForeign(t *testing.T) {
	tr, err := openBytes(safetensor(`{"__metadata__":null`+u8("pass0/b#x", 1, 3)+u8("", 0, 1)+`}`, "abc"))
	if err != nil {
		t.Fatal(err)
	}
	if tr.Sequence() || tr.Status() != "" {
		t.Errorf("sequence %t, status %q", tr.Sequence(), tr.Status())
	}
	r, ok := tr.Lookup(0, "pass0/b#x")
	x, err := tr.Read(r)
	if !ok || err != nil || string(x.Data) != "bc" || r.Key != r.Name || tr.Records()[0].Key != "" {
		t.Errorf("found %t, %+v, data %q, error %v", ok, r, x.Data, err)
	}
	// A trace that a tool wrote anew without our promise is not trusted for order either.
	tr, err = openBytes(safetensor(`{"__metadata__":{"tracediff.version":"1"}`+u8("pass3/b", 2, 3)+u8("a#1", 0, 2)+`}`, "abc"))
	if err != nil || tr.Sequence() {
		t.Errorf("undeclared sequence: error %v", err)
	}
	// Nor is it taken for one that is complete.
	if tr.Status() != capture.StatusOpen || len(tr.Notes()) != 1 || !strings.Contains(tr.Notes()[0], "no tracediff.status") {
		t.Errorf("undeclared status: %q, notes %q", tr.Status(), tr.Notes())
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	_, err := capture.Open(dir)
	wantError(t, "directory", err, "not a regular file")
	path := filepath.Join(dir, "run.safetensors")
	_, err = capture.Open(path)
	wantError(t, "missing", err, "no such file")
	create(t, path, capture.Manifest{}, 0)
	_, err = capture.Open(path)
	wantError(t, "unfinished", err, "there is an unfinished one, "+path+".part")
	tr := open(t, path+".part")
	if tr.Path() != path+".part" || tr.Status() != capture.StatusOpen {
		t.Errorf("path %q, status %q", tr.Path(), tr.Status())
	}
}

func TestReadAt(t *testing.T) {
	path := write(t, capture.Manifest{}, 0, some...)
	tr := open(t, path)
	r, _ := tr.Lookup(0, "twice")
	want := some[3].Tensor.Data // ten bytes
	for off := range int64(11) {
		for n := range 12 {
			p := make([]byte, n)
			got, err := tr.ReadAt(r, p, off)
			expect := want[off:min(off+int64(n), 10)]
			if !bytes.Equal(p[:got], expect) || (err == io.EOF) != (len(expect) < n) {
				t.Errorf("%d bytes from %d: %v, error %v", n, off, p[:got], err)
			}
		}
	}
	for _, off := range []int64{-1, 11} {
		_, err := tr.ReadAt(r, make([]byte, 1), off)
		wantError(t, "outside", err, fmt.Sprintf("offset %d of 10 bytes", off))
	}
	_, err := tr.Read(capture.Record{Key: "made up", Size: 1 << 20})
	wantError(t, "a record of no trace", err, `no record of it: "made up"`)
	r.Size = 1 << 40
	_, err = tr.Read(r)
	wantError(t, "a record made larger", err, "more than the 4294967296 that are read at once")
	_, err = tr.ReadAt(r, make([]byte, 1), 0)
	wantError(t, "a record made larger", err, "no record of it")
}

// A part of a tensor has the elements that all of it has, and no part reaches beyond it.
func TestPart(t *testing.T) {
	tr := open(t, write(t, capture.Manifest{}, 0, some...))
	for _, r := range tr.Records() {
		if r.Firing > 0 {
			continue
		}
		all, err := tr.Value(r.Pass, r.Name)
		if err != nil {
			t.Fatal(err)
		}
		for at := range len(all.Data) + 1 {
			for n := range len(all.Data) - at + 1 {
				got, err := tr.Part(r.Pass, r.Name, at, n)
				same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
				if err != nil || !slices.EqualFunc(got.Data, all.Data[at:at+n], same) {
					t.Errorf("%d elements of %s from %d on: %v, %v", n, r.Key, at, got.Data, err)
				}
			}
		}
		for _, outside := range [][2]int{{-1, 1}, {0, -1}, {0, len(all.Data) + 1}, {len(all.Data), 1}, {1, math.MaxInt}} {
			_, err := tr.Part(r.Pass, r.Name, outside[0], outside[1])
			wantError(t, "outside", err, "no elements")
		}
	}
	_, err := tr.Part(0, "nothing", 0, 1)
	wantError(t, "missing", err, `no tensor "nothing"`)
}

// Several goroutines may read one trace.
func TestReadConcurrently(t *testing.T) {
	tr := open(t, write(t, capture.Manifest{}, 0, some...))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { sameAsFired(t, tr, some) })
	}
	wg.Wait()
}

// A file that shrinks after it was opened is an error that names the tensor.
func TestShrinkingFile(t *testing.T) {
	path := write(t, capture.Manifest{}, 0, some...)
	tr := open(t, path)
	last := tr.Records()[6] // the last one with data
	if err := os.Truncate(path, int64(headerLength(t, path)+8+3)); err != nil {
		t.Fatal(err)
	}
	_, err := tr.Read(last)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	wantError(t, "shrunk", err, `read tensor "pass2/twice": the file has become shorter since it was opened`)
	_, err = capture.Open(path)
	wantError(t, "opened again", err, "bytes of data are missing at its end")
}

// Opening reads the header and nothing else, however much data there is.
func TestOpenCostsTheHeader(t *testing.T) {
	path := write(t, capture.Manifest{}, 0, event(0, "large", tensor(0, hooks.U8, 1<<20)))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reads := &ranges{ReaderAt: f}
	if _, err := capture.OpenReader(path, reads, 8+int64(headerLength(t, path))+1<<20); err != nil {
		t.Fatal(err)
	}
	if want := int64(8 + headerLength(t, path)); slices.Max(reads.ends) != want {
		t.Errorf("opening reads up to byte %d, the header ends at %d", slices.Max(reads.ends), want)
	}
}

// ranges remembers where reads ended.
type ranges struct {
	io.ReaderAt
	ends []int64
}

func (r *ranges) ReadAt(p []byte, off int64) (int, error) {
	r.ends = append(r.ends, off+int64(len(p)))
	return r.ReaderAt.ReadAt(p, off)
}
