package quant_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/quant"
)

// parts makes the tensors of one packed weight: their shapes are of drawn sizes, and their bytes are raw over and over.
type parts struct{ raw []byte }

func (p parts) of(name string, d hooks.DType, shape ...int64) container.Tensor {
	x := container.Tensor{Name: name, DType: d}
	size := int64(d.Size())
	for _, n := range shape {
		x.Shape = append(x.Shape, int(n))
		size *= n
	}
	data := make([]byte, size)
	for i := range data {
		if len(p.raw) > 0 {
			data[i] = p.raw[i%len(p.raw)]
		}
	}
	x.Data = bytes.NewReader(data)
	return x
}

// fuzzPacked looks for parts that make a reader panic: shapes, settings and an index of groups that disagree. What is found is read whole,
// and by its groups.
func fuzzPacked(f *testing.F, config string, made func(p parts, rows, cols, groups int64) []container.Tensor) {
	for _, s := range [][3]int64{{8, 16, 4}, {64, 2, 4}, {4, 8, 2}, {4, 8, 1}, {0, 0, 0}} {
		f.Add([]byte(config), s[0], s[1], s[2], []byte("codes and scales"))
		f.Add([]byte(config), s[0], s[1], s[2], []byte{0, 0x7c, 0xff})
	}
	f.Fuzz(func(t *testing.T, config []byte, rows, cols, groups int64, raw []byte) {
		const most = 1 << 6
		if min(rows, cols, groups) < 0 || max(rows, cols, groups) > most {
			return
		}
		found, _, err := quant.Find(made(parts{raw}, rows, cols, groups), config)
		if err != nil {
			return
		}
		for _, q := range found {
			d := q.Dense()
			if _, err := d.ReadAt(make([]byte, d.Size()), 0); err != nil {
				t.Fatalf("%s %v: %v", q.Scheme.Name, q.Shape, err)
			}
			var c quant.Codes
			n := int(q.Elements()) / q.Unit * q.Unit
			if err := q.Reader().Codes(&c, 0, n); err != nil {
				t.Fatalf("%s %v: %v", q.Scheme.Name, q.Shape, err)
			}
			for _, code := range c.Code {
				if int(code) < c.Lo || int(code) > c.Hi {
					t.Fatalf("%s: code %d", q.Scheme.Name, code)
				}
			}
			q.Usual(&c, nil)
		}
	})
}

func FuzzMLX(f *testing.F) {
	fuzzPacked(f, `{"quantization": {"bits": 4, "group_size": 32}}`, func(p parts, rows, cols, groups int64) []container.Tensor {
		return []container.Tensor{p.of("b.weight", hooks.U32, rows, cols), p.of("b.scales", hooks.BF16, rows, groups), p.of("b.biases", hooks.BF16, rows, groups)}
	})
}

func FuzzGPTQ(f *testing.F) {
	fuzzPacked(f, string(hf(`{"quant_method": "gptq", "bits": 4, "group_size": 16}`)), func(p parts, rows, cols, groups int64) []container.Tensor {
		return []container.Tensor{p.of("a.qweight", hooks.I32, rows, cols), p.of("a.qzeros", hooks.I32, groups, cols/8), p.of("a.scales", hooks.F16, groups, cols), p.of("a.g_idx", hooks.I32, rows*8)}
	})
}

func FuzzAWQ(f *testing.F) {
	fuzzPacked(f, string(hf(`{"quant_method": "awq", "bits": 4, "group_size": 16}`)), func(p parts, rows, cols, groups int64) []container.Tensor {
		return []container.Tensor{p.of("a.qweight", hooks.I32, rows, cols), p.of("a.qzeros", hooks.I32, groups, cols), p.of("a.scales", hooks.F16, groups, cols*8)}
	})
}

func FuzzCompressedTensors(f *testing.F) {
	fuzzPacked(f, string(hf(`{"quant_method": "compressed-tensors", "format": "pack-quantized"}`)), func(p parts, rows, cols, groups int64) []container.Tensor {
		shape := p.of("d.weight_shape", hooks.I64, 2)
		shape.Data = bytes.NewReader(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(rows)), uint64(cols*8)))
		return []container.Tensor{p.of("d.weight_packed", hooks.I32, rows, cols), p.of("d.weight_scale", hooks.F32, rows, groups), shape}
	})
}

func FuzzInt8(f *testing.F) {
	fuzzPacked(f, `{}`, func(p parts, rows, cols, groups int64) []container.Tensor {
		return []container.Tensor{p.of("c.weight", hooks.I8, rows, cols), p.of("c.weight_scale", hooks.F32, rows, groups), p.of("c.weight_zero_point", hooks.I8, rows, groups)}
	})
}

func FuzzBitsAndBytes(f *testing.F) {
	fuzzPacked(f, string(hf(`{"quant_method": "bitsandbytes", "load_in_8bit": true}`)), func(p parts, rows, cols, groups int64) []container.Tensor {
		all := []container.Tensor{p.of("e.weight", hooks.I8, rows, cols), p.of("e.SCB", hooks.F32, rows)}
		if groups > 0 {
			all = append(all, p.of("e.weight_format", hooks.U8))
		}
		return all
	})
}
