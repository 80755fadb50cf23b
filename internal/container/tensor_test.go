package container_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// Any part of a view is what its definition gives: the element with the indexes i lies at Offset + Σ iₙ·Strides[n] elements.
func TestReadAtGathers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]hooks.DType{hooks.U8, hooks.F16, hooks.F32, hooks.I64}).Draw(t, "dtype")
		size := d.Size()
		shape := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "shape")
		x := container.Tensor{Name: "x", DType: d, Shape: shape, Offset: int64(rapid.IntRange(0, 3).Draw(t, "offset") * size)}
		x.Big = rapid.Bool().Draw(t, "big")
		x.Strides = make([]int, len(shape))
		reach := 0
		for i := range shape {
			x.Strides[i] = rapid.IntRange(0, 7).Draw(t, "stride")
			reach += max(0, shape[i]-1) * x.Strides[i]
		}
		storage := make([]byte, int(x.Offset)+(reach+1)*size)
		for i := range storage {
			storage[i] = byte(i*7 + i>>8)
		}
		x.Data = bytes.NewReader(storage)
		if err := x.Check(int64(len(storage))); err != nil {
			t.Fatal(err)
		}
		want := gathered(&x, storage)
		if n, _ := hooks.Elements(shape); n > 0 && x.Check(int64(len(storage)-1)) == nil {
			t.Fatal("a storage that is one byte too short is accepted")
		}
		off := rapid.IntRange(0, len(want)).Draw(t, "off")
		p := make([]byte, rapid.IntRange(0, len(want)+3).Draw(t, "length"))
		n, err := x.ReadAt(p, int64(off))
		if rest := len(want) - off; n != min(len(p), rest) || (len(p) > rest) != errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes, %v of %d from %d on", n, err, len(want), off)
		}
		if !bytes.Equal(p[:n], want[off:off+n]) {
			t.Fatalf("%x, want %x", p[:n], want[off:off+n])
		}
	})
}

// gathered is a view as its definition gives it, element by element.
func gathered(x *container.Tensor, storage []byte) []byte {
	n, _ := hooks.Elements(x.Shape)
	size := x.DType.Size()
	var out []byte
	for k := range n {
		at, rest := int(x.Offset)/size, k
		for i := len(x.Shape) - 1; i >= 0; i-- {
			at += rest % x.Shape[i] * x.Strides[i]
			rest /= x.Shape[i]
		}
		element := bytes.Clone(storage[at*size : (at+1)*size])
		if x.Big {
			for i := range size / 2 {
				element[i], element[size-1-i] = element[size-1-i], element[i]
			}
		}
		out = append(out, element...)
	}
	return out
}

// A tensor that is wide apart in a large storage is read by single reads, and gives the same.
func TestFarApart(t *testing.T) {
	const rows, step = 300, 1 << 16
	storage := make([]byte, rows*step*2)
	for i := range rows {
		storage[i*step], storage[rows*step+i*step] = byte(i), byte(i)+1
	}
	x := container.Tensor{Name: "x", DType: hooks.U8, Shape: []int{rows, 2}, Strides: []int{step, rows * step}, Data: bytes.NewReader(storage)}
	got := make([]byte, x.Size())
	if _, err := x.ReadAt(got, 0); err != nil || !bytes.Equal(got, gathered(&x, storage)) {
		t.Fatalf("%v, %x", err, got[:8])
	}
}

// A file that became shorter is an error, and no zeros.
func TestShorterFile(t *testing.T) {
	x := container.Tensor{Name: "x", DType: hooks.F32, Shape: []int{4, 4}, Strides: []int{1, 4}, Data: bytes.NewReader(make([]byte, 60))}
	if _, err := x.ReadAt(make([]byte, 64), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
}
