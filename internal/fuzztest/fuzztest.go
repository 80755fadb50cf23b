// Package fuzztest makes the inputs of fuzz targets that read files.
//
// Go minimises every input that reaches new code, by leaving out each range of its bytes: a file of some kilobytes takes the minute that is allowed, in which
// nothing new is tried. Here files stay out of the input. An input is the number of a file and a few edits of it, which take a second to minimise.
package fuzztest

import (
	"encoding/binary"
	"slices"
	"testing"
)

const (
	editSize = 5            // bytes: what is done, where in three, and an argument
	maxEdits = 4 * editSize // bytes of an input that count
)

// Files fuzzes a target that reads files. check gets an edited copy of one of the files, and may change the copy.
func Files(f *testing.F, files [][]byte, check func(t *testing.T, data []byte)) {
	f.Helper()
	if len(files) == 0 {
		f.Fatal("no files")
	}
	for i := range files {
		f.Add(uint16(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, number uint16, edits []byte) {
		check(t, Edited(files[int(number)%len(files)], edits[:min(len(edits), maxEdits)]))
	})
}

// tokens are pieces of texts that readers act on.
var tokens = []string{
	"{", "}", "[", "]", "\"", ":", ",", "\\", "\n", "\x00", "\xff", "null", "true", "-1", "0.5", "1e999", "NaN", "99999999999999999999", "\\u0000", "\\ud800", "{}", "[]", "[[]]",
	"\"\"", "{\"a\":", "é", "\u2028", "=", "#", "../",
}

// numbers are values at the edges of types.
var numbers = []uint64{0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 53, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// Edited returns a copy of data with edits. A place is counted modulo the length; an edit that is cut short is left out.
func Edited(data, edits []byte) []byte {
	data = slices.Clone(data)
	for ; len(edits) >= editSize; edits = edits[editSize:] {
		at := (int(edits[1]) | int(edits[2])<<8 | int(edits[3])<<16) % (len(data) + 1)
		arg, rest := edits[4], len(data)-at
		switch edits[0] % 8 {
		case 0:
			if rest > 0 {
				data[at] = arg
			}
		case 1:
			if rest > 0 {
				data[at] ^= 1 << (arg % 8)
			}
		case 2:
			data = slices.Insert(data, at, arg)
		case 3:
			data = slices.Delete(data, at, at+min(rest, int(arg)+1))
		case 4:
			data = data[:at]
		case 5:
			data = slices.Insert(data, at, slices.Clone(data[at:at+min(rest, int(arg)+1)])...)
		case 6:
			number := binary.LittleEndian.AppendUint64(nil, numbers[int(arg/4)%len(numbers)])
			copy(data[at:], number[:1<<(arg%4)])
		case 7:
			data = slices.Insert(data, at, []byte(tokens[int(arg)%len(tokens)])...)
		}
	}
	return data
}
