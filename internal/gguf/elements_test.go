package gguf_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/gguf/gguftest"
)

// Elements are read when they are asked for, and what has none of a kind is an error or nothing.
func TestElements(t *testing.T) {
	texts := []byte("\x01\x00\x00\x00\x00\x00\x00\x00a\x03\x00\x00\x00\x00\x00\x00\x00\xc4\xa0b\x00\x00\x00\x00\x00\x00\x00\x00")
	floats := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(-1.5)), math.Float32bits(3))
	b := (&gguftest.Builder{}).Array("texts", 8, 3, texts).Text("between", "x").Array("floats", 6, 2, floats).Array("bools", 7, 1, []byte{1}).
		Array("damaged", 8, 1, []byte("\x01\x00\x00\x00\x00\x00\x00\x00\xff"))
	data := b.Bytes()
	f, err := gguf.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := f.Texts("texts"); err != nil || !slices.Equal(got, []string{"a", "Ġb", ""}) {
			t.Errorf("texts: %q, %v", got, err)
		}
		if got, err := f.Numbers("floats"); err != nil || !slices.Equal(got, []float64{-1.5, 3}) {
			t.Errorf("floats: %v, %v", got, err)
		}
	}
	for _, c := range []struct {
		key, want string
		read      func(string) (int, error)
	}{
		{"floats", "elements of float32, want strings", func(key string) (int, error) { all, err := f.Texts(key); return len(all), err }},
		{"texts", "elements of string, want numbers", func(key string) (int, error) { all, err := f.Numbers(key); return len(all), err }},
		{"damaged", "not UTF-8", func(key string) (int, error) { all, err := f.Texts(key); return len(all), err }},
		{"none", "", func(key string) (int, error) { all, err := f.Texts(key); return len(all), err }},
		{"between", "", func(key string) (int, error) { all, err := f.Numbers(key); return len(all), err }},
	} {
		n, err := c.read(c.key)
		if c.want == "" && (n > 0 || err != nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d elements, %v, want %q", c.key, n, err, c.want)
		}
	}
}
