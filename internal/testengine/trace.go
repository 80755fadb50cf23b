package testengine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Fire returns an event in pass 0 with these values. The last value is repeated to fill the shape.
func Fire(name string, d hooks.DType, shape []int, values ...float64) hooks.Event {
	n, ok := hooks.Elements(shape)
	if !ok {
		panic(name)
	}
	var data []byte
	for i := range n {
		data = floats.Append(data, d, values[min(i, len(values)-1)])
	}
	return hooks.Event{Name: name, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: data}}
}

// InPass moves an event to another pass.
func InPass(pass int, e hooks.Event) hooks.Event {
	e.Pass = pass
	return e
}

// Manifest is that of a complete trace whose scope is everything.
func Manifest(side string, d hooks.DType) capture.Manifest {
	return capture.Manifest{
		Side: side, Producer: capture.Producer{Name: side + "-engine", Version: "1.2"}, DType: d,
		Scope: capture.Scope{Level: 3}, Passes: 1, Weights: "unknown",
	}
}

// Build writes a complete trace and opens it.
func Build(t testing.TB, m capture.Manifest, events ...hooks.Event) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), m.Side+".safetensors")
	w, err := capture.Create(path, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		m.Passes = max(m.Passes, e.Pass+1)
		if err := w.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return Open(t, path)
}

// Pair is two tensors of one shape and dtype.
type Pair struct {
	Shape            []int
	DType            hooks.DType
	Local, Reference []float64
}

// Traces are a trace of each of the two tensors, which has the name x.
func (p Pair) Traces(t testing.TB) (local, reference *capture.Trace) {
	t.Helper()
	return Build(t, Manifest("local", p.DType), Fire("x", p.DType, p.Shape, p.Local...)),
		Build(t, Manifest("reference", p.DType), Fire("x", p.DType, p.Shape, p.Reference...))
}

// OneTensor opens a file of one tensor, x, from memory: bare safetensors without metadata. side is its path.
func OneTensor(t testing.TB, side string, d hooks.DType, shape []int, data []byte) *capture.Trace {
	t.Helper()
	size, err := json.Marshal(append([]int{}, shape...))
	if err != nil {
		t.Fatal(err)
	}
	names := map[hooks.DType]string{hooks.F8E4M3: "F8_E4M3", hooks.F8E5M2: "F8_E5M2", hooks.F64: "F64", hooks.F32: "F32", hooks.F16: "F16", hooks.BF16: "BF16", hooks.I64: "I64", hooks.U64: "U64"}
	header := fmt.Sprintf(`{"x":{"dtype":%q,"shape":%s,"data_offsets":[0,%d]}}`, names[d], size, len(data))
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	file = append(file, data...)
	tr, err := capture.OpenReader(side, bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Open opens a trace until the test ends.
func Open(t testing.TB, path string) *capture.Trace {
	t.Helper()
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// Rewritten copies a trace, as one of another port. change may alter the manifest. each gets every event in turn, and returns
// the events in its place. Both may be nil.
func Rewritten(t testing.TB, from *capture.Trace, change func(*capture.Manifest), each func(key string, e hooks.Event) []hooks.Event) *capture.Trace {
	t.Helper()
	m := from.Manifest()
	m.Producer = capture.Producer{Name: "a port", Version: "1"}
	if change != nil {
		change(&m)
	}
	path := filepath.Join(t.TempDir(), "rewritten.safetensors")
	w, err := capture.Create(path, m, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range from.Records() {
		x, err := from.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		events := []hooks.Event{{Name: r.Name, Pass: r.Pass, Tensor: x}}
		if each != nil {
			events = each(r.Key, events[0])
		}
		for _, e := range events {
			if err := w.Observe(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return Open(t, path)
}

// Only returns a trace with the tensors whose names end in one of ends, at a dot.
func Only(t testing.TB, from *capture.Trace, ends []string) *capture.Trace {
	t.Helper()
	sources := slices.DeleteFunc(from.Sources(), func(s capture.Source) bool {
		return !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix("."+s.Name, "."+end) })
	})
	trace, err := capture.Assemble("few", sources, capture.Manifest{}, from.Sequence(), nil, from)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// ValuesOf decodes a whole tensor.
func ValuesOf(t hooks.Tensor) []float64 {
	n, _ := hooks.Elements(t.Shape)
	values := make([]float64, n)
	if err := floats.Decode(values, t.DType, t.Data); err != nil {
		panic(err)
	}
	return values
}

// Tampered copies a trace and changes floating-point tensors on the way: change gets the values of a tensor, and returns those to write in its
// place with their dtype, or nil to keep the tensor.
func Tampered(t testing.TB, from *capture.Trace, change func(key string, r capture.Record, data []float64) ([]float64, hooks.DType)) *capture.Trace {
	t.Helper()
	return Rewritten(t, from, nil, func(key string, e hooks.Event) []hooks.Event {
		r, _ := from.Lookup(e.Pass, e.Name)
		if !r.DType.Float() {
			return []hooks.Event{e}
		}
		v, err := from.Value(e.Pass, e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if data, dtype := change(key, r, v.Data); data != nil {
			e.Tensor = hooks.Tensor{DType: dtype, Shape: r.Shape, Data: floats.Append(nil, dtype, data...)}
		}
		return []hooks.Event{e}
	})
}
