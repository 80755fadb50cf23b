// Package dumptest makes dump files, good and hostile, with the verdict that is expected of each.
package dumptest

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// Specimen is a file with the verdict that is expected of it.
type Specimen struct {
	Name string
	Data []byte
	Want string // a part of the error; empty: it is read
}

// Corpus has a good file and the bad ones of each format.
func Corpus(t testing.TB) []Specimen {
	var all []Specimen
	for _, of := range []func(testing.TB) []Specimen{npyCorpus, npzCorpus, torchCorpus, pickleCorpus, polygraphyCorpus, ggmlCorpus, otherCorpus} {
		all = append(all, of(t)...)
	}
	return all
}

// npy is a .npy file with a header of this text, which is padded as numpy pads it.
func npy(header string, data []byte) []byte {
	text := header + strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	return append(append(out, text...), data...)
}

// array is a .npy file of a shape and a dtype, with as many bytes of data as are given.
func array(descr, shape string, data int) []byte {
	return npy(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape), make([]byte, data))
}

func npyCorpus(testing.TB) []Specimen {
	long := []byte("\x93NUMPY\x02\x00\x00\x00\x00\x40")
	return []Specimen{
		{"npy", array("<f4", "(2, 3)", 24), ""},
		{"npy, scalar", array("<f8", "()", 8), ""},
		{"npy, empty", array("<f2", "(0, 5)", 0), ""},
		{"npy, big-endian", array(">i8", "(1,)", 8), ""},
		{"npy, Fortran order", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", make([]byte, 16)), ""},
		{"npy, long of Python 2", array("<f4", "(2L, 3L)", 24), ""},
		{"npy, version 3", append([]byte("\x93NUMPY\x03\x00\x3c\x00\x00\x00"), fmt.Appendf(nil, "%-59s\n", "{'descr': '<u1', 'fortran_order': False, 'shape': (0,)}")...), ""},
		{"npy, void", array("|V2", "(4,)", 8), ""},
		{"npy, version 9", []byte("\x93NUMPY\x09\x00\x10\x00{}              "), "version 9.0"},
		{"npy, header of a gigabyte", append(long, bytes.Repeat([]byte("{"), 4000)...), "header of 1073741824 bytes, more than 65536"},
		{"npy, header beyond the file", []byte("\x93NUMPY\x01\x00\xff\x7f{'descr': "), "the file ends in it"},
		{"npy, 2^62 elements", array("<f4", "(4611686018427387904,)", 16), "more elements than a file can hold"},
		{"npy, 2^62 elements by factors", array("|u1", "(2147483648, 2147483648)", 16), "more elements than a file can hold"},
		{"npy, size beyond an integer", array("<f4", "(99999999999999999999,)", 16), "a size that is a whole number"},
		{"npy, negative size", array("<f4", "(-3,)", 16), "not negative"},
		{"npy, too many axes", array("<f4", "("+strings.Repeat("1,", 70)+")", 4), "more than 64 axes"},
		{"npy, cut data", array("<f4", "(2, 3)", 23), "takes 24 bytes"},
		{"npy, data beyond", array("<f4", "(2, 3)", 25), "1 bytes after the array"},
		{"npy, objects", array("|O", "(2,)", 16), "Python objects, which is a pickle"},
		{"npy, objects in a structure", npy("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (2,), }", make([]byte, 16)), "Python objects"},
		{"npy, key twice", npy("{'descr': '<f4', 'shape': (2,), 'shape': (1,), 'fortran_order': False}", make([]byte, 4)), "twice"},
		{"npy, no shape", npy("{'descr': '<f4', 'fortran_order': False}", make([]byte, 4)), "wants descr"},
		{"npy, code for a header", npy("{'descr': __import__('os').system('id'), 'fortran_order': False, 'shape': ()}", make([]byte, 4)), "want a string"},
	}
}

// member is a file of an archive.
type member struct {
	name   string
	data   []byte
	method uint16
}

func archive(t testing.TB, members ...member) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: m.method, CRC32: crc32.ChecksumIEEE(m.data), UncompressedSize64: uint64(len(m.data)), CompressedSize64: uint64(len(m.data))}
		create := w.CreateHeader
		if m.method == zip.Store {
			create = w.CreateRaw
		}
		f, err := create(h)
		if err == nil {
			_, err = f.Write(m.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is an archive whose one member claims to unpack to size bytes.
func bomb(t testing.TB, name string, data []byte, size uint64) []byte {
	raw := archive(t, member{name, data, zip.Deflate})
	at := bytes.LastIndex(raw, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(raw[at+24:], uint32(size))
	return raw
}

// changed is an archive with the checksum of one array and the compressed bytes of another array.
func changed(t testing.TB, written, is []byte) []byte {
	raw := archive(t, member{"a.npy", is, zip.Deflate})
	binary.LittleEndian.PutUint32(raw[bytes.LastIndex(raw, []byte("PK\x01\x02"))+16:], crc32.ChecksumIEEE(written))
	return raw
}

// overlapping is an archive with two directory entries of one member's bytes.
func overlapping(t testing.TB) []byte {
	raw := archive(t, member{"a.npy", array("<f4", "(64,)", 256), zip.Store})
	at, end := bytes.LastIndex(raw, []byte("PK\x01\x02")), bytes.LastIndex(raw, []byte("PK\x05\x06"))
	entry := bytes.Clone(raw[at:end])
	copy(entry[46:], "b")
	out := append(append(bytes.Clone(raw[:end]), entry...), raw[end:]...)
	tail := out[len(out)-22:]
	binary.LittleEndian.PutUint16(tail[8:], 2)
	binary.LittleEndian.PutUint16(tail[10:], 2)
	binary.LittleEndian.PutUint32(tail[12:], uint32(2*len(entry)))
	return out
}

func npzCorpus(t testing.TB) []Specimen {
	good := array("<f4", "(2, 3)", 24)
	many := make([]member, 40)
	for i := range many {
		many[i] = member{fmt.Sprintf("layers.%d.npy", i), good, zip.Store}
	}
	zeros := array("<f4", "(1000000,)", 4_000_000)
	return []Specimen{
		{"npz", archive(t, many...), ""},
		{"npz, compressed", archive(t, member{"a.npy", good, zip.Deflate}, member{"b.npy", zeros, zip.Deflate}), ""},
		{"npz, other file", archive(t, member{"a.npy", good, zip.Store}, member{"readme", []byte("hello"), zip.Store}), ""},
		{"npz, a damaged header", patched(archive(t, member{"a.npy", good, zip.Store}), "descr", 0, 'D'), `zip member "a.npy" is damaged`},
		{"npz, a damaged compressed header", changed(t, good, patched(bytes.Clone(good), "descr", 0, 'D')), `zip member "a.npy" is damaged`},
		{"npz, one name twice", archive(t, member{"a.npy", good, zip.Store}, member{"a.npy", good, zip.Store}), "twice"},
		{"npz, no array in it", archive(t, member{"a.npy", []byte("hello, world"), zip.Store}), "not a .npy file"},
		{"npz, bomb", bomb(t, "a.npy", zeros, 4_000_000_000), "a zip bomb"},
		{"npz, without checksums", unsummed(archive(t, member{"a.npy", good, zip.Store}, member{"b.npy", good, zip.Store})), ""},
		{"npz, members over one another", overlapping(t), "overlap"},
		{"npz, cut", archive(t, many...)[:1500], "zip archive: zip: not a valid zip file"},
		{"npz, method 93", patched(archive(t, member{"a.npy", good, zip.Store}), "PK\x01\x02", 10, 93), "method 93"},
		{"npz, encrypted", patched(archive(t, member{"a.npy", good, zip.Store}), "PK\x01\x02", 8, 1), "encrypted"},
		{"npz, member beyond the file", patched(archive(t, member{"a.npy", good, zip.Store}), "PK\x01\x02", 45, 0x7f), "zip"},
	}
}

// unsummed sets each checksum of an archive to 0, as torch.save does after set_crc32_options(False).
func unsummed(data []byte) []byte {
	const mark, sum = "PK\x01\x02", 16
	for at := 0; ; {
		next := bytes.Index(data[at:], []byte(mark))
		if next < 0 {
			return data
		}
		at += next + len(mark)
		clear(data[at-len(mark)+sum:][:4])
	}
}

// patched sets a byte at a place after the last occurrence of a mark.
func patched(data []byte, mark string, at int, to byte) []byte {
	data[bytes.LastIndex(data, []byte(mark))+at] = to
	return data
}

// tensorPickle is the pickle of {"x": tensor}: a view of storage 0, which has n elements of a class.
func tensorPickle(class string, n, offset int32, shape, strides []int64) []byte {
	var b bytes.Buffer
	integers := func(v []int64) {
		b.WriteByte('(')
		for _, x := range v {
			b.WriteString("\x8a\x08")
			_ = binary.Write(&b, binary.LittleEndian, x)
		}
		b.WriteByte('t')
	}
	text := func(s string) { fmt.Fprintf(&b, "X%s%s", []byte{byte(len(s)), 0, 0, 0}, s) }
	number := func(n int32) { b.WriteByte('J'); _ = binary.Write(&b, binary.LittleEndian, n) }
	b.WriteString("\x80\x02}q\x00")
	text("x")
	b.WriteString("ctorch._utils\n_rebuild_tensor_v2\n((")
	text("storage")
	fmt.Fprintf(&b, "ctorch\n%s\n", class)
	text("0")
	text("cpu")
	number(n)
	b.WriteString("tQ")
	number(offset)
	integers(shape)
	integers(strides)
	b.WriteString("\x89ccollections\nOrderedDict\n)RtRs.")
	return b.Bytes()
}

func torchArchive(t testing.TB, pickle []byte, storage int) []byte {
	return archive(t, member{"run/data.pkl", pickle, zip.Store}, member{"run/byteorder", []byte("little"), zip.Store}, member{"run/data/0", make([]byte, storage), zip.Store})
}

func torchCorpus(t testing.TB) []Specimen {
	view := func(shape, strides []int64) []byte {
		return torchArchive(t, tensorPickle("FloatStorage", 6, 0, shape, strides), 24)
	}
	return []Specimen{
		{"torch", view([]int64{2, 3}, []int64{3, 1}), ""},
		{"torch, transposed", view([]int64{3, 2}, []int64{1, 3}), ""},
		{"torch, expanded", view([]int64{4, 6}, []int64{0, 1}), ""},
		{"torch, bfloat16", torchArchive(t, tensorPickle("BFloat16Storage", 6, 2, []int64{2, 2}, []int64{2, 1}), 12), ""},
		{"torch, compressed again", archive(t, member{"run/data.pkl", tensorPickle("FloatStorage", 6, 0, []int64{6}, []int64{1}), zip.Deflate}, member{"run/data/0", make([]byte, 24), zip.Deflate}), ""},
		{"torch, negative strides", view([]int64{2, 3}, []int64{-3, 1}), "a negative one"},
		{"torch, strides beyond the storage", view([]int64{2, 3}, []int64{4, 1}), "reaches beyond its storage"},
		{"torch, offset beyond the storage", torchArchive(t, tensorPickle("FloatStorage", 6, 7, []int64{1}, []int64{1}), 24), "begins at element 7"},
		{"torch, negative offset", torchArchive(t, tensorPickle("FloatStorage", 6, -1, []int64{1}, []int64{1}), 24), "begins at element -1"},
		{"torch, 2^62 elements", view([]int64{1 << 62}, []int64{0}), "more elements than a file can hold"},
		{"torch, 2^62 elements by factors", view([]int64{1 << 31, 1 << 31}, []int64{0, 0}), "more elements than a file can hold"},
		{"torch, a view repeats 4 bytes", view([]int64{1 << 20, 1 << 20}, []int64{0, 0}), "repeats a storage"},
		{"torch, a view repeats 4 bytes until they are a gigabyte", view([]int64{1 << 28}, []int64{0}), "repeats a storage"},
		{"torch, strides that overflow", view([]int64{3, 3}, []int64{1 << 62, 1 << 62}), "reaches beyond its storage"},
		{"torch, negative size", view([]int64{-2}, []int64{1}), "more elements than a file can hold"},
		{"torch, other storage size", torchArchive(t, tensorPickle("FloatStorage", 6, 0, []int64{6}, []int64{1}), 20), "has 20 bytes, not 6 elements"},
		{"torch, without checksums", unsummed(torchArchive(t, tensorPickle("FloatStorage", 6, 0, []int64{6}, []int64{1}), 24)), ""},
		{"torch, a damaged pickle", patched(torchArchive(t, tensorPickle("FloatStorage", 6, 0, []int64{6}, []int64{1}), 24), "FloatStorage", 0, 'f'), `zip member "run/data.pkl" is damaged`},
		{"torch, no storage", archive(t, member{"run/data.pkl", tensorPickle("FloatStorage", 6, 0, []int64{6}, []int64{1}), zip.Store}), "not in the archive"},
		{"torch, calls a program", torchArchive(t, []byte("\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R."), 24), `a pickle that calls "os.system": refused`},
		{"torch, evaluates", torchArchive(t, []byte("\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R."), 24), `"builtins.eval": refused`},
		{"torch, no byte order", archive(t, member{"a/data.pkl", []byte("\x80\x02}."), zip.Store}, member{"a/byteorder", []byte("middle"), zip.Store}), `the byte order "middle"`},
		{"torch, a program", archive(t, member{"m/data.pkl", []byte("\x80\x02N."), zip.Store}, member{"m/code/m.py", []byte("x"), zip.Store}), "TorchScript"},
		{"torch, no tensor", archive(t, member{"a/data.pkl", []byte("\x80\x02}."), zip.Store}), "it has no tensors"},
		{"torch, legacy, cut", []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."), "ends in the middle"},
		{"torch, legacy, calls a program", []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02cposix\nsystem\n."), `"posix.system": refused`},
	}
}

// deep is a pickle of pairs of pairs: one tuple, met 2^n times.
func deep(n int) []byte {
	b := []byte("\x80\x02K\x01\x85")
	for range n {
		b = append(b, "2\x86"...)
	}
	return append(b, '.')
}

func pickleCorpus(testing.TB) []Specimen {
	return []Specimen{
		{"pickle, bomb of lists", append([]byte("\x80\x02"), append(bytes.Repeat([]byte("]"), 2<<20), '.')...), "a pickle bomb"},
		{"pickle, bomb of one value", append([]byte("\x80\x02K\x01"), append(bytes.Repeat([]byte("2"), 2<<20), '.')...), "a pickle bomb: more than 1048576 values wait on its stack"},
		{"pickle, bomb of what is remembered", append([]byte("\x80\x02]"), append(bytes.Repeat([]byte("\x94"), 1<<20), '.')...), "it has no tensors"},
		{"pickle, one list in many places", deep(40), "a pickle bomb"},
		{"pickle, one list in some thousand places", deep(14), "a pickle bomb"},
		{"pickle, list in itself", []byte("\x80\x02]q\x00h\x00a."), "a pickle bomb"},
		{"pickle, length of 2^62", append([]byte("\x80\x04\x8e"), 0, 0, 0, 0, 0, 0, 0, 0x40, '.'), "ends in the middle"},
		{"pickle, length of 2^64", append([]byte("\x80\x04\x8d"), 255, 255, 255, 255, 255, 255, 255, 255, '.'), "a length of"},
		{"pickle, nothing on the stack", []byte("\x80\x02R."), "more from its stack"},
		{"pickle, no mark", []byte("\x80\x02t."), "more from its stack"},
		{"pickle, nothing remembered", []byte("\x80\x02h\x05."), "nothing was remembered as 5"},
		{"pickle, other instruction", []byte("\x80\x02\xfe."), "unknown instruction 0xfe"},
		{"pickle, extension registry", []byte("\x80\x02\x82\x01."), "unknown instruction 0x82"},
		{"pickle, buffer outside", []byte("\x80\x05\x97."), "unknown instruction 0x97"},
		{"pickle, without an end", []byte("\x80\x02]]]"), "ends in the middle"},
		{"pickle, by its name on the stack", []byte("\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R."), `"posix.system": refused`},
		{"pickle, instance", []byte("\x80\x02(S'id'\nios\nsystem\n."), `"os.system": refused`},
		{"pickle, a file after it", []byte("\x80\x02}.hello"), "5 bytes after the pickle"},
		{"pickle of the oldest protocol", []byte("cposix\nsystem\np0\n(Vid\np1\ntp2\nRp3\n."), `"posix.system": refused`},
	}
}

// results is a document of Polygraphy with one output of one iteration.
func results(class, array string) []byte {
	return fmt.Appendf(nil, `{"lst": [["onnxrt", [{"outputs": {"x": {"array": "%s", "polygraphy_class": "%s"}}, "runtime": 0.5, "polygraphy_class": "IterationResult"}]]], "polygraphy_class": "RunResults"}`, array, class)
}

func polygraphyCorpus(testing.TB) []Specimen {
	small := base64.StdEncoding.EncodeToString(array("<f4", "(2, 3)", 24))
	large := base64.StdEncoding.EncodeToString(array("<f4", "(100, 100)", 40000))
	whole := results("ndarray", small)
	return []Specimen{
		{"polygraphy", whole, ""},
		{"polygraphy, an array that stays in the file", results("ndarray", large), ""},
		{"polygraphy, cut", whole[:len(whole)-40], "JSON that ends early"},
		{"polygraphy, a tensor of torch", results("Tensor", small), "not a numpy array"},
		{"polygraphy, no base64", results("ndarray", "$$$$"+small[4:]), "not base64"},
		{"polygraphy, a cut array", results("ndarray", large[:5000]), "takes 40000 bytes"},
		{"polygraphy, objects", results("ndarray", base64.StdEncoding.EncodeToString(array("|O", "(1,)", 8))), "Python objects"},
		{"polygraphy, two runners", []byte(`{"lst": [["a", []], ["b", []]], "polygraphy_class": "RunResults"}`), "2 runners"},
		{"polygraphy, lists in lists", append([]byte(`{"lst": `), bytes.Repeat([]byte("["), 1000)...), "deeper ones"},
		{"polygraphy, a bomb of values", append([]byte(`{"lst": [`), bytes.Repeat([]byte("0,"), 3<<20)...), "more values"},
	}
}

func otherCorpus(t testing.TB) []Specimen {
	st := func(header string, data int) []byte {
		return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), make([]byte, data)...)
	}
	return []Specimen{
		{"safetensors", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), ""},
		{"safetensors, cut", st(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 7), "7 bytes of data"},
		{"empty", nil, "an empty file"},
		{"zip of Python source", archive(t, member{"pkg/__init__.py", []byte("import os"), zip.Store}), `a zip of Python source, with "pkg/__init__.py"`},
		{"zip of an article", archive(t, member{"word/document.xml", []byte("<x/>"), zip.Store}), "a zip of 1 files"},
		{"zip of dumps", archive(t, member{"README", nil, zip.Store}, member{"a.npz", []byte("x"), zip.Store}), "some may be dumps"},
		{"zip without files", archive(t), "an empty zip archive"},
		{"gguf", []byte("GGUF\x03\x00\x00\x00"), "a GGUF file"},
		{"gzip", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), "a gzip file"},
		{"hdf5", []byte("\x89HDF\r\n\x1a\n\x00"), "an HDF5 file"},
		{"onnx", []byte("\x08\x0a\x12\x07pytorch\x1a\x062.15.0"), "an ONNX model"},
		{"tar", append(append(make([]byte, 257), "ustar\x0000"...), make([]byte, 248)...), "a tar archive"},
		{"text", []byte("logits: 0.5 0.25\n"), `plain text, which is not a dump of tensors; it begins with "logits: 0.5 0.25"`},
		{"html", []byte("<!DOCTYPE html>\n<html>"), "a page of HTML or XML"},
		{"git lfs", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "a pointer of Git LFS"},
		{"json", []byte(`{"logits": [0.5]}`), "JSON that is not a dump of tensors"},
		{"toml", []byte("[tensors]\nemb = \"embed_tokens\"\n"), "TOML, which is not a dump of tensors"},
		{"text of eval-callback", []byte("common_debug_cb_eval:                inp_embd = (f32)   GET_ROWS(token_embd.weight{16, 160, 1, 1}, inp_tokens{5, 1, 1, 1}}) = {16, 5, 1, 1}\n"), "llama.cpp's eval-callback"},
		{"a script", []byte("#!/bin/sh\n"), "a script"},
		{"numbers without a header", bytes.Repeat([]byte{0xcd, 0xcc, 0x4c, 0x3e}, 16), "64 bytes that are not a dump of tensors, beginning with cd cc 4c 3e"},
	}
}
