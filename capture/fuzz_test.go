package capture_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/fuzztest"
)

// FuzzOpen looks for a file that opens and then breaks a promise: a record that cannot be read or found, bytes that
// belong to no record of a complete trace, an order that is no order of execution.
func FuzzOpen(f *testing.F) {
	var files [][]byte
	for _, c := range refused {
		files = append(files, c.file)
	}
	for _, c := range unfinished {
		files = append(files, c.file)
	}
	b, err := os.ReadFile(write(f, declared, 0, some...))
	if err != nil {
		f.Fatal(err)
	}
	fuzztest.Files(f, append(files, b), func(t *testing.T, file []byte) {
		tr, err := capture.OpenReader("fuzzed", bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		var data []byte
		pass := 0
		for _, r := range tr.Records() {
			x, err := tr.Read(r)
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if err := x.Check(); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if found, ok := tr.LookupFiring(r.Pass, r.Name, r.Firing); !ok || found.Key != r.Key {
				t.Fatalf("%+v: not found", r)
			}
			if tr.Sequence() && r.Pass < pass {
				t.Fatalf("%+v: after pass %d", r, pass)
			}
			if tr.Sequence() && r.Key != capture.Key(r.Pass, r.Name, r.Firing) {
				t.Fatalf("%+v: another key", r)
			}
			pass = r.Pass
			data = append(data, x.Data...)
		}
		rest, found := bytes.CutPrefix(file[min(len(file), 8+headerOf(file)):], data)
		if !found || tr.Status() == capture.StatusComplete && len(rest) > 0 {
			t.Fatalf("%d bytes of records, %d bytes left", len(data), len(rest))
		}
	})
}

// headerOf returns the length of the header of a file that has opened.
func headerOf(file []byte) int {
	n := 0
	for i := range 8 {
		n |= int(file[i]) << (8 * i)
	}
	return n
}
