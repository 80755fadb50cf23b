package mappingtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// TB is what a test is asked for.
type TB interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// Counted is a float32 tensor whose elements are from, from+1, ...
func Counted(name string, pass, from int, shape ...int) capture.Source {
	n, _ := hooks.Elements(shape)
	data := make([]byte, 0, 4*n)
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(from+i)))
	}
	return capture.Source{Key: capture.Key(pass, name, 0), Name: name, Pass: pass, DType: hooks.F32, Shape: shape, Data: bytes.NewReader(data)}
}

// IDs are n token ids of a pass, all of them 0.
func IDs(pass int, n int) capture.Source {
	return capture.Source{Name: order.InputIDs, Pass: pass, DType: hooks.I64, Shape: []int{1, n}, Data: bytes.NewReader(make([]byte, 8*n))}
}

// Assembled is a dump of tensors.
func Assembled(t TB, sources ...capture.Source) *capture.Trace {
	t.Helper()
	trace, err := capture.Assemble("dump", sources, capture.Manifest{}, false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Golden is a trace of transformers, and the order of its model.
func Golden(t TB, name string) (*capture.Trace, *order.List) {
	t.Helper()
	data, err := fs.ReadFile(ondisk.Files(), "golden/"+name+".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	trace, err := capture.OpenReader(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ParseCanonical(trace.Manifest().Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return trace, list
}

// Elements reads a float32 tensor of a trace in pieces of several sizes, which have to agree.
func Elements(t TB, trace *capture.Trace, pass int, name string) (shape []int, values []float32) {
	t.Helper()
	r, ok := trace.Lookup(pass, name)
	if !ok {
		t.Fatal("there is no ", name)
	}
	whole := make([]byte, r.Size)
	if _, err := trace.ReadAt(r, whole, 0); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{3, 4, 20} {
		for off := 0; off < len(whole); off += step {
			part := make([]byte, min(step, len(whole)-off))
			if _, err := trace.ReadAt(r, part, int64(off)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(part, whole[off:off+len(part)]) {
				t.Fatal(fmt.Sprintf("%s: bytes %d to %d differ when they are read separately", name, off, off+len(part)))
			}
		}
	}
	for i := 0; i < len(whole); i += 4 {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(whole[i:])))
	}
	return r.Shape, values
}

// Raw are the elements of a tensor as they lie.
func Raw(t TB, trace *capture.Trace, pass int, name string) (capture.Record, []byte) {
	t.Helper()
	r, ok := trace.Lookup(pass, name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	b := make([]byte, r.Size)
	if _, err := trace.ReadAt(r, b, 0); err != nil {
		t.Fatal(err)
	}
	return r, b
}
