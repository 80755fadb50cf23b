package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/floats"
)

// stFile is a safetensors file taken apart, to be put together otherwise. It shares no code with what writes and reads
// traces, and writes whatever it is told: what is wrong with it is for the program under test to find.
type stFile struct {
	meta    map[string]string
	tensors []*stTensor // in the order of the file
	// spoil, if it is not nil, changes the bytes of the whole file at the end.
	spoil func(data []byte) []byte
}

type stTensor struct {
	Key   string
	DType string // as safetensors writes it
	Shape []int
	Data  []byte
}

// readST takes a file apart.
func readST(t *testing.T, data []byte) *stFile {
	t.Helper()
	length := binary.LittleEndian.Uint64(data)
	header, body := data[8:8+length], data[8+length:]
	d := json.NewDecoder(bytes.NewReader(header))
	f := &stFile{}
	_, err := d.Token() // {
	must(t, err)
	for d.More() {
		key, err := d.Token()
		must(t, err)
		if key == "__metadata__" {
			must(t, d.Decode(&f.meta))
			continue
		}
		var entry struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		must(t, d.Decode(&entry))
		f.tensors = append(f.tensors, &stTensor{key.(string), entry.DType, entry.Shape, slices.Clone(body[entry.Offsets[0]:entry.Offsets[1]])})
	}
	return f
}

// bytes puts the file together.
func (f *stFile) bytes() []byte {
	var header bytes.Buffer
	header.WriteByte('{')
	if f.meta != nil {
		// The status stands first, as the writer has it.
		text := jsonText(f.meta)
		if status, ok := f.meta["tracediff.status"]; ok {
			rest := map[string]string{}
			for k, v := range f.meta {
				if k != "tracediff.status" && k != "tracediff.version" {
					rest[k] = v
				}
			}
			first := `{`
			if version, ok := f.meta["tracediff.version"]; ok {
				first += `"tracediff.version":` + jsonText(version) + `,`
			}
			first += `"tracediff.status":` + jsonText(status)
			if len(rest) > 0 {
				first += ","
			}
			text = first + strings.TrimPrefix(jsonText(rest), "{")
		}
		header.WriteString(`"__metadata__":` + text)
	}
	var body []byte
	for i, t := range f.tensors {
		if i > 0 || f.meta != nil {
			header.WriteByte(',')
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		fmt.Fprintf(&header, `%s:{"dtype":%s,"shape":%s,"data_offsets":[%d,%d]}`, jsonText(t.Key), jsonText(t.DType), jsonText(shape), len(body), len(body)+len(t.Data))
		body = append(body, t.Data...)
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(header.Len()))
	out = append(append(out, header.Bytes()...), body...)
	if f.spoil != nil {
		out = f.spoil(out)
	}
	return out
}

// jsonText is a value as JSON.
func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// has reports whether the file has a tensor.
func (f *stFile) has(key string) bool {
	return slices.ContainsFunc(f.tensors, func(t *stTensor) bool { return t.Key == key })
}

// at is a tensor that is there.
func (f *stFile) at(key string) *stTensor {
	for _, t := range f.tensors {
		if t.Key == key {
			return t
		}
	}
	panic("no tensor " + key)
}

// drop takes the tensors out for which gone says so.
func (f *stFile) drop(gone func(key string) bool) {
	f.tensors = slices.DeleteFunc(f.tensors, func(t *stTensor) bool { return gone(t.Key) })
}

// list is a list of names in the manifest.
func (f *stFile) list(key string) []string {
	var names []string
	if err := json.Unmarshal([]byte(f.meta[key]), &names); err != nil {
		panic(err)
	}
	return names
}

// config changes the configuration that the manifest declares.
func (f *stFile) config(change func(c map[string]any)) {
	var c map[string]any
	if err := json.Unmarshal([]byte(f.meta["tracediff.config"]), &c); err != nil {
		panic(err)
	}
	change(c)
	f.meta["tracediff.config"] = jsonText(c)
}

var dtypeSize = map[string]int{"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4}

// values decodes a tensor.
func (t *stTensor) values() []float64 {
	size := dtypeSize[t.DType]
	x := make([]float64, len(t.Data)/size)
	for i := range x {
		b := t.Data[i*size:]
		switch t.DType {
		case "F64":
			x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case "F32":
			x[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case "BF16":
			x[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		case "F16":
			x[i] = float64(floats.FromF16(binary.LittleEndian.Uint16(b)))
		case "I64":
			x[i] = float64(int64(binary.LittleEndian.Uint64(b)))
		case "I32":
			x[i] = float64(int32(binary.LittleEndian.Uint32(b)))
		}
	}
	return x
}

// set gives a tensor other values, in a dtype.
func (t *stTensor) set(dtype string, x []float64) {
	t.DType, t.Data = dtype, nil
	for _, v := range x {
		switch dtype {
		case "F64":
			t.Data = binary.LittleEndian.AppendUint64(t.Data, math.Float64bits(v))
		case "F32":
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(float32(v)))
		case "BF16":
			t.Data = binary.LittleEndian.AppendUint16(t.Data, floats.BF16(float32(v)))
		case "F16":
			t.Data = binary.LittleEndian.AppendUint16(t.Data, floats.F16(float32(v)))
		case "I64":
			t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(int64(v)))
		case "I32":
			t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(int32(v)))
		default:
			panic("no dtype " + dtype)
		}
	}
}

// change gives a tensor other values, made of its own.
func (t *stTensor) change(do func(x []float64)) {
	x := t.values()
	do(x)
	t.set(t.DType, x)
}

// permute moves the slices along an axis: slice i of what becomes is slice p[i] of what was.
func (t *stTensor) permute(axis int, p func(i, n int) int) {
	n, inner := t.Shape[axis], dtypeSize[t.DType]
	for _, size := range t.Shape[axis+1:] {
		inner *= size
	}
	was := slices.Clone(t.Data)
	for from := 0; from < len(was); from += n * inner {
		for i := range n {
			copy(t.Data[from+i*inner:][:inner], was[from+p(i, n)*inner:][:inner])
		}
	}
}

// resize keeps the first rows of an axis, or repeats the last one.
func (t *stTensor) resize(axis, to int) {
	n, inner := t.Shape[axis], dtypeSize[t.DType]
	for _, size := range t.Shape[axis+1:] {
		inner *= size
	}
	var data []byte
	for from := 0; from < len(t.Data); from += n * inner {
		for i := range to {
			data = append(data, t.Data[from+min(i, n-1)*inner:][:inner]...)
		}
	}
	t.Data = data
	t.Shape = slices.Clone(t.Shape)
	t.Shape[axis] = to
}
