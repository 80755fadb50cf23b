// Package gguftest makes GGUF files, good and hostile, with the verdict that is expected of each.
package gguftest

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Builder writes a file as it is told, right or wrong.
type Builder struct {
	Order   binary.AppendByteOrder // nil: little-endian
	Version uint32                 // 0: 3
	Tensors uint64                 // how many there are said to be; 0: as many as there are
	Fields  uint64                 // the same of the metadata

	fields, infos, data []byte
	countF, countT      uint64
}

func (b *Builder) order() binary.AppendByteOrder {
	if b.Order == nil {
		return binary.LittleEndian
	}
	return b.Order
}

func (b *Builder) text(to []byte, s string) []byte {
	return append(b.order().AppendUint64(to, uint64(len(s))), s...)
}

// Field adds a metadata field of a type number with the given bytes.
func (b *Builder) Field(key string, kind uint32, value []byte) *Builder {
	b.fields = append(b.order().AppendUint32(b.text(b.fields, key), kind), value...)
	b.countF++
	return b
}

// Text adds a metadata field that is a string.
func (b *Builder) Text(key, value string) *Builder { return b.Field(key, 8, b.text(nil, value)) }

// Uint32 adds a metadata field that is a number.
func (b *Builder) Uint32(key string, value uint32) *Builder {
	return b.Field(key, 4, b.order().AppendUint32(nil, value))
}

// Array adds a metadata field of count elements of a type, with these bytes.
func (b *Builder) Array(key string, kind uint32, count uint64, elements []byte) *Builder {
	return b.Field(key, 9, append(b.order().AppendUint64(b.order().AppendUint32(nil, kind), count), elements...))
}

// Info describes a tensor: sizes in the file's order, the axis of adjacent elements first.
func (b *Builder) Info(name string, kind uint32, offset uint64, sizes ...uint64) *Builder {
	b.infos = b.order().AppendUint32(b.text(b.infos, name), uint32(len(sizes)))
	for _, n := range sizes {
		b.infos = b.order().AppendUint64(b.infos, n)
	}
	b.infos = b.order().AppendUint64(b.order().AppendUint32(b.infos, kind), offset)
	b.countT++
	return b
}

// Data adds bytes of data.
func (b *Builder) Data(data []byte) *Builder {
	b.data = append(b.data, data...)
	return b
}

// Tensor adds a tensor and its data, aligned to 32.
func (b *Builder) Tensor(name string, kind uint32, data []byte, sizes ...uint64) *Builder {
	b.data = append(b.data, make([]byte, -len(b.data)&31)...)
	return b.Info(name, kind, uint64(len(b.data)), sizes...).Data(data)
}

// Bytes is the file.
func (b *Builder) Bytes() []byte {
	version, tensors, fields := b.Version, b.Tensors, b.Fields
	if version == 0 {
		version = 3
	}
	if tensors == 0 {
		tensors = b.countT
	}
	if fields == 0 {
		fields = b.countF
	}
	head := b.order().AppendUint32([]byte("GGUF"), version)
	head = b.order().AppendUint64(b.order().AppendUint64(head, tensors), fields)
	head = append(append(head, b.fields...), b.infos...)
	return append(append(head, make([]byte, -len(head)&31)...), b.data...)
}

// Floats are the bytes of numbers in float32.
func Floats(values ...float32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// Specimen is a file with the verdict that is expected of it.
type Specimen struct {
	Name string
	Data []byte
	Want string // a part of the error; empty: it is read
}

// Corpus has good files and bad ones.
func Corpus() []Specimen {
	file := func() *Builder { return (&Builder{}).Text("general.architecture", "llama") }
	four := Floats(1, 2, 3, 4)
	good := file().Uint32("general.alignment", 32).Array("tokenizer.ggml.tokens", 8, 2, []byte("\x01\x00\x00\x00\x00\x00\x00\x00a\x00\x00\x00\x00\x00\x00\x00\x00")).
		Array("tokenizer.ggml.scores", 6, 2, make([]byte, 8)).Tensor("a.weight", 0, four, 2, 2).Tensor("b.weight", 8, make([]byte, 34), 32).Bytes()
	const huge = 1 << 62
	var many Builder
	for range 70_000 {
		many.Array(string(binary.LittleEndian.AppendUint32(nil, uint32(many.countF)|0x40404040)), 0, 0, nil)
	}
	return []Specimen{
		{"good", good, ""},
		{"version 2", (&Builder{Version: 2}).Tensor("a", 0, four, 4).Bytes(), ""},
		{"no tensors", file().Bytes(), ""},
		{"a scalar", file().Tensor("a", 0, four[:4]).Bytes(), ""},
		{"an empty tensor", file().Tensor("a", 0, nil, 0, 7).Bytes(), ""},
		{"every type of metadata", everyKind(file()).Bytes(), ""},
		{"a type that is not read", file().Tensor("a", 10, make([]byte, 84), 256).Bytes(), ""},
		{"bytes after the last tensor", append(bytes.Clone(good), make([]byte, 100)...), ""},

		{"empty", nil, "not a GGUF file"},
		{"only the magic", []byte("GGUF"), "the file ends in the header"},
		{"another magic", []byte("GGJT\x03\x00\x00\x00"), "not a GGUF file"},
		{"version 1", (&Builder{Version: 1}).Bytes(), "GGUF version 1; versions 2 and 3 are read"},
		{"version 4", (&Builder{Version: 4}).Bytes(), "GGUF version 4"},
		{"big-endian", (&Builder{Order: binary.BigEndian}).Tensor("a", 0, four, 4).Bytes(), "a big-endian GGUF file"},
		{"cut in the metadata", good[:60], "the file ends"},
		{"cut in the tensors", good[:220], "the file ends in the header"},
		{"cut in the data", good[:len(good)-1], `tensor "b.weight": 34 bytes from byte 32 of the data, which have 65`},
		{"cut before the data", good[:len(good)-66], "bytes from byte 0 of the data, which have 0"},
		{"2^64 tensors", (&Builder{Tensors: math.MaxUint64}).Bytes(), "18446744073709551615 tensors, more than"},
		{"2^62 tensors", (&Builder{Tensors: huge}).Bytes(), "tensors, more than"},
		{"2^40 fields", (&Builder{Fields: 1 << 40}).Bytes(), "metadata fields, more than"},
		{"more fields than are there", (&Builder{Fields: 1 << 15}).Bytes(), "metadata field 0: it has no name"},
		{"more tensors than are there", (&Builder{Tensors: 1 << 15}).Bytes(), "tensor 0: "},
		{"70,000 fields", many.Bytes(), "70000 metadata fields, more than 65536"},
		{"a key of 2^60 bytes", (&Builder{Fields: 1}).raw(1 << 60).Bytes(), "a string of 1152921504606846976 bytes, but the file ends before that"},
		{"a key of 2^64 bytes", (&Builder{Fields: 1}).raw(math.MaxUint64).Bytes(), "a string of 18446744073709551615 bytes"},
		{"a key of a megabyte", file().Text(string(bytes.Repeat([]byte("k"), 1<<20)), "").Bytes(), "a string of 1048576 bytes, more than 4096"},
		{"a string of 2 megabytes", file().Text("k", string(make([]byte, 2<<20))).Bytes(), "a string of 2097152 bytes, more than 1048576"},
		{"ten strings of a megabyte", texts(10, 1<<20).Bytes(), "names and strings of more than 8388608 bytes"},
		{"a key twice", file().Text("general.architecture", "x").Bytes(), `a second "general.architecture"`},
		{"no key", file().Text("", "x").Bytes(), "it has no name"},
		{"a key with an escape", file().Text("k\x1b[2J", "x").Bytes(), `its name "k\x1b[2J" has control characters`},
		{"a key that is no UTF-8", file().Text("k\xff", "x").Bytes(), "not UTF-8"},
		{"a value of another type", file().Field("k", 13, make([]byte, 64)).Bytes(), "unknown type 13"},
		{"an array of another type", file().Array("k", 99, 1, make([]byte, 64)).Bytes(), "unknown type 99"},
		{"an array of 2^60 strings", file().Array("k", 8, 1<<60, make([]byte, 64)).Bytes(), "an array of 1152921504606846976 strings"},
		{"an array of 2^60 bytes", file().Array("k", 0, 1<<60, make([]byte, 64)).Bytes(), "an array of 1152921504606846976 elements"},
		{"an array of 2^61 float64", file().Array("k", 12, 1<<61, make([]byte, 64)).Bytes(), "an array of 2305843009213693952 elements"},
		{"an array of 2^64 − 1 numbers", file().Array("k", 4, math.MaxUint64, make([]byte, 64)).Bytes(), "an array of 18446744073709551615 elements"},
		{"arrays of arrays", file().Array("k", 9, 1<<30, bytes.Repeat([]byte{9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 1000)).Bytes(), "an array of arrays"},
		{"a string in an array of 2^63 bytes", file().Array("k", 8, 1, binary.LittleEndian.AppendUint64(nil, 1<<63)).Bytes(), "a string of 9223372036854775808 bytes"},
		{"3 million empty strings", file().Array("k", 8, 3<<20, make([]byte, 8*3<<20)).Bytes(), "arrays of more than 2097152 strings"},
		{"alignment of zero", file().Uint32("general.alignment", 0).Tensor("a", 0, four, 4).Bytes(), "general.alignment is 0"},
		{"alignment of 24", file().Uint32("general.alignment", 24).Tensor("a", 0, four, 4).Bytes(), "general.alignment is 24"},
		{"alignment of 2^31", file().Uint32("general.alignment", 1<<31).Tensor("a", 0, four, 4).Bytes(), "general.alignment is 2147483648"},
		{"alignment that is a text", file().Text("general.alignment", "32").Tensor("a", 0, four, 4).Bytes(), `general.alignment is "32", not a number`},
		{"alignment with an escape", file().Text("general.alignment", "\x1b[2J\x00").Tensor("a", 0, four, 4).Bytes(), `general.alignment is "\x1b[2J\x00", not a number`},

		{"a tensor twice", file().Tensor("a", 0, four, 4).Tensor("a", 0, four, 4).Bytes(), `a second "a"`},
		{"a tensor without a name", file().Tensor("", 0, four, 4).Bytes(), "it has no name"},
		{"a name with control characters", file().Tensor("a\nb\x1b]0;x\a", 0, four, 4).Bytes(), `its name "a\nb\x1b]0;x\a" has control characters`},
		{"five axes", file().Tensor("a", 0, four, 1, 1, 1, 1, 4).Bytes(), `"a": 5 axes`},
		{"2^32 − 1 axes", file().infoOf("a", math.MaxUint32).Bytes(), "4294967295 axes"},
		{"2^62 elements", file().Tensor("a", 0, four, huge).Bytes(), "more elements than a file can hold"},
		{"2^62 elements by factors", file().Tensor("a", 24, four, 1<<31, 1<<31).Bytes(), "more elements than a file can hold"},
		{"2^64 elements by factors", file().Tensor("a", 0, four, 1<<32, 1<<32).Bytes(), "more elements than a file can hold"},
		{"2^64 − 1 elements", file().Tensor("a", 0, four, math.MaxUint64).Bytes(), "a size of 18446744073709551615"},
		{"2^40 elements", file().Tensor("a", 8, make([]byte, 34), 1<<40).Bytes(), "bytes from byte 0 of the data, which have 34"},
		{"rows of less than a block", file().Tensor("a", 8, make([]byte, 34), 16, 2).Bytes(), "rows of 16 elements of Q8_0, whose blocks have 32"},
		{"rows of no whole super-blocks", file().Tensor("a", 12, make([]byte, 144), 128, 2).Bytes(), "rows of 128 elements of Q4_K, whose blocks have 256"},
		{"a scalar of blocks", file().Tensor("a", 8, make([]byte, 34)).Bytes(), "rows of 1 elements of Q8_0"},
		{"a block too few", file().Tensor("a", 8, make([]byte, 34), 64).Bytes(), "68 bytes from byte 0 of the data, which have 34"},
		{"a type of ggml's past", file().Tensor("a", 4, four, 4).Bytes(), "type 4, which ggml does not have"},
		{"a type that does not exist", file().Tensor("a", math.MaxUint32, four, 4).Bytes(), "type 4294967295, which ggml does not have"},
		{"an offset of 2^63", file().Info("a", 0, 1<<63, 4).Data(four).Bytes(), "an offset of 9223372036854775808"},
		{"an offset of 2^63 − 32", file().Info("a", 0, 1<<63-32, 4).Data(four).Bytes(), "bytes from byte 9223372036854775776 of the data"},
		{"an offset that is not aligned", file().Info("a", 0, 8, 2).Data(four).Bytes(), "begin at byte 8, not a multiple of the alignment 32"},
		{"an offset beyond the file", file().Info("a", 0, 64, 4).Data(four).Bytes(), "16 bytes from byte 64 of the data, which have 16"},
		{"two tensors in one place", file().Info("a", 0, 0, 4).Info("b", 0, 0, 4).Data(four).Bytes(), `tensor "b": its data overlap those of "a" by 16 bytes`},
		{"a tensor in another", file().Info("a", 0, 0, 40).Info("b", 0, 32, 4).Data(make([]byte, 160)).Bytes(), `tensor "b": its data overlap those of "a" by 128 bytes`},
	}
}

// everyKind adds a field of each type of metadata.
func everyKind(b *Builder) *Builder {
	for kind, size := range map[uint32]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8} {
		b.Field(string(rune('a'+kind)), kind, bytes.Repeat([]byte{1}, size))
		b.Array(string(rune('A'+kind)), kind, 3, make([]byte, 3*size))
	}
	return b
}

func texts(n, size int) *Builder {
	b := &Builder{}
	for i := range n {
		b.Text(string(rune('a'+i)), string(bytes.Repeat([]byte("x"), size)))
	}
	return b
}

// raw begins a field with a key of the given size and writes no byte of the key.
func (b *Builder) raw(size uint64) *Builder {
	b.fields = binary.LittleEndian.AppendUint64(b.fields, size)
	return b
}

// infoOf begins a tensor of so many axes, and has none of them.
func (b *Builder) infoOf(name string, axes uint32) *Builder {
	b.infos = binary.LittleEndian.AppendUint32(b.text(b.infos, name), axes)
	b.countT++
	return b
}
