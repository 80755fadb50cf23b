package capture_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// tensor returns a tensor of small whole numbers that depend on seed. Every dtype holds them exactly, so that a
// reader in any language can compute them: element i is (7*seed + i) mod 100, of a bool the parity of that.
func tensor(seed int, d hooks.DType, shape ...int) hooks.Tensor {
	n, ok := hooks.Elements(shape)
	if !ok {
		panic(fmt.Sprintf("shape %v", shape))
	}
	var data []byte
	for i := range n {
		data = appendNumber(data, d, (7*seed+i)%100)
	}
	return hooks.Tensor{DType: d, Shape: shape, Data: data}
}

// appendNumber appends a whole number from 0 to 99.
func appendNumber(b []byte, d hooks.DType, v int) []byte {
	single := math.Float32bits(float32(v))
	switch d {
	case hooks.F64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
	case hooks.F32:
		return binary.LittleEndian.AppendUint32(b, single)
	case hooks.BF16:
		return binary.LittleEndian.AppendUint16(b, uint16(single>>16))
	case hooks.F16:
		if v == 0 {
			return append(b, 0, 0)
		}
		// The exponent moves from a bias of 127 to one of 15; 13 bits of the fraction are zero.
		return binary.LittleEndian.AppendUint16(b, uint16((single>>23-127+15)<<10|single>>13&0x3ff))
	case hooks.I64, hooks.U64:
		return binary.LittleEndian.AppendUint64(b, uint64(v))
	case hooks.I32, hooks.U32:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	case hooks.I16, hooks.U16:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case hooks.Bool:
		return append(b, byte(v%2))
	}
	return append(b, byte(v))
}

// event is one firing.
func event(pass int, name string, t hooks.Tensor) hooks.Event {
	return hooks.Event{Name: name, Pass: pass, Tensor: t}
}

// write makes a complete trace of events and returns its path.
func write(t testing.TB, m capture.Manifest, reserve int, events ...hooks.Event) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.safetensors")
	w := create(t, path, m, reserve)
	fire(t, w, events...)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func create(t testing.TB, path string, m capture.Manifest, reserve int) *capture.Writer {
	t.Helper()
	w, err := capture.Create(path, m, reserve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Fail(nil) })
	return w
}

func fire(t testing.TB, w *capture.Writer, events ...hooks.Event) {
	t.Helper()
	for _, e := range events {
		if err := w.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t testing.TB, path string) *capture.Trace {
	t.Helper()
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// sameAsFired fails unless the trace lists exactly these events, in this order and bit for bit, under their keys.
func sameAsFired(t testing.TB, tr *capture.Trace, events []hooks.Event) {
	t.Helper()
	var want, got []fired
	count := map[string]int{}
	for _, e := range events {
		first := capture.Key(e.Pass, e.Name, 0)
		want = append(want, fired{capture.Key(e.Pass, e.Name, count[first]), e.Pass, e.Name, count[first], e.Tensor})
		count[first]++
	}
	for _, r := range tr.Records() {
		x, err := tr.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fired{r.Key, r.Pass, r.Name, r.Firing, x})
		if found, ok := tr.LookupFiring(r.Pass, r.Name, r.Firing); !ok || found.Key != r.Key {
			t.Errorf("%s: looking for it gives %q, %t", r.Key, found.Key, ok)
		}
	}
	if diff := cmp.Diff(want, got, emptyIsNil); diff != "" {
		t.Errorf("fired -, in the trace +\n%s", diff)
	}
}

type fired struct {
	Key    string
	Pass   int
	Name   string
	Firing int
	Tensor hooks.Tensor
}

// emptyIsNil lets a scalar's shape and the data of an empty tensor be nil or not.
var emptyIsNil = cmp.FilterValues(
	func(a, b hooks.Tensor) bool { return true },
	cmp.Comparer(func(a, b hooks.Tensor) bool {
		return a.DType == b.DType && fmt.Sprint(a.Shape) == fmt.Sprint(b.Shape) && string(a.Data) == string(b.Data)
	}),
)

// wantError fails unless err says want.
func wantError(t testing.TB, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", what, err, want)
	}
}

// remains returns the names of the files beside path.
func remains(t testing.TB, path string) []string {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}
