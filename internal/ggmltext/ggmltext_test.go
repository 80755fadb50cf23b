package ggmltext_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/ggmltext"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// printed is what common_debug_print_tensor of llama.cpp prints of a tensor, with the innermost axis first in ne.
func printed(name string, ne [4]int, at func(i3, i2, i1, i0 int) float32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "common_debug_cb_eval: %24s = (f32) %10s(%s{%d, 1, 1, 1}, }) = {%d, %d, %d, %d}\n", name, "SCALE", "a = (b)", ne[0], ne[0], ne[1], ne[2], ne[3])
	sum := float32(0)
	for i3 := range ne[3] {
		for i2 := range ne[2] {
			for i1 := range ne[1] {
				for i0 := range ne[0] {
					sum += at(i3, i2, i1, i0)
				}
			}
		}
	}
	next := func(i *int, n int, mark string) { // what the loops of that function do at their start
		if *i == 3 && n > 6 {
			b.WriteString(mark)
			*i = n - 3
		}
	}
	for i3 := 0; i3 < ne[3]; i3++ {
		b.WriteString("    [\n")
		for i2 := 0; i2 < ne[2]; i2++ {
			next(&i2, ne[2], "        ..., \n")
			b.WriteString("        [\n")
			for i1 := 0; i1 < ne[1]; i1++ {
				next(&i1, ne[1], "            ..., \n")
				b.WriteString("            [")
				for i0 := 0; i0 < ne[0]; i0++ {
					next(&i0, ne[0], "   ..., ")
					fmt.Fprintf(&b, "%12.4f", at(i3, i2, i1, i0))
					if i0 < ne[0]-1 {
						b.WriteString(", ")
					}
				}
				b.WriteString("  ],\n")
			}
			b.WriteString("        ],\n")
		}
		fmt.Fprintf(&b, "    ]\n    sum = %f\n", sum)
	}
	return b.String()
}

func read(t interface {
	Helper()
	Fatal(...any)
}, text string,
) *container.File {
	t.Helper()
	f := &container.File{}
	if !ggmltext.Is(strings.NewReader(text), int64(len(text))) {
		t.Fatal("it is not known")
	}
	if err := ggmltext.Read(strings.NewReader(text), int64(len(text)), f); err != nil {
		t.Fatal(err)
	}
	return f
}

// Every element that is printed is read to half a unit of its last decimal, at its place, whatever part of the tensor is read; every
// other is the mark for what is not there.
func TestElementsAreAtTheirPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ne [4]int
		for i := range ne {
			ne[i] = rapid.IntRange(1, 9).Draw(t, "size")
		}
		seed := rapid.Uint32().Draw(t, "seed")
		n := ne[0] * ne[1] * ne[2] * ne[3]
		values := make([]float32, n)
		for i := range values {
			seed = seed*1664525 + 1013904223
			values[i] = float32(int32(seed)) / float32(uint32(1)<<rapid.IntRange(20, 31).Draw(t, "scale"))
		}
		number := func(i3, i2, i1, i0 int) int { return ((i3*ne[2]+i2)*ne[1]+i1)*ne[0] + i0 }
		text := "a log line\n" + printed("x", ne, func(i3, i2, i1, i0 int) float32 { return values[number(i3, i2, i1, i0)] }) + "another\n"
		f := read(t, text)
		x := f.Tensors[0]
		if x.Name != "x" || fmt.Sprint(x.Shape) != fmt.Sprint([]int{ne[3], ne[2], ne[1], ne[0]}) || x.Printed == nil || x.Printed.Half != 0.00005 {
			t.Fatalf("%+v", x)
		}
		from := rapid.IntRange(0, 4*n-1).Draw(t, "from")
		to := rapid.IntRange(from+1, 4*n).Draw(t, "to")
		all, part := make([]byte, 4*n), make([]byte, to-from)
		if _, err := x.ReadAt(all, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := x.ReadAt(part, int64(from)); err != nil || !bytes.Equal(part, all[from:to]) {
			t.Fatalf("bytes %d to %d are others than in the whole: %v", from, to, err)
		}
		count := int64(0)
		isPrinted := func(i, size int) bool { return size <= 6 || i < 3 || i >= size-3 }
		for i, v := range values {
			at := [3]int{i % ne[0], i / ne[0] % ne[1], i / ne[0] / ne[1] % ne[2]}
			got := all[4*i : 4*i+4]
			if !isPrinted(at[0], ne[0]) || !isPrinted(at[1], ne[1]) || !isPrinted(at[2], ne[2]) {
				if !bytes.Equal(got, container.Elided(hooks.F32)) {
					t.Fatalf("element %v is %x, and is not printed", at, got)
				}
				continue
			}
			count++
			if d := math.Abs(float64(math.Float32frombits(binary.LittleEndian.Uint32(got))) - float64(v)); !(d <= 0.00005+math.Abs(float64(v))*0x1p-24) {
				t.Fatalf("element %v is off by %g", at, d)
			}
		}
		if x.Printed.Elements != count || x.Printed.All != int64(n) || !x.Printed.HasSum {
			t.Fatalf("%+v, of %d printed", x.Printed, count)
		}
	})
}

// A name that comes again is a further firing, the first tensor of the text begins the next pass, and the token ids stand in the log.
func TestNamesPassesAndIDs(t *testing.T) {
	one := func(int, int, int, int) float32 { return 1 }
	pass := printed("embd", [4]int{2, 1, 1, 1}, one) + printed("Qcur-0", [4]int{2, 1, 1, 1}, one) + printed("Qcur-0", [4]int{2, 1, 1, 1}, one)
	f := read(t, "0.00.1 I number of input tokens = 2\n0.00.2 I   5\n0.00.3 I   7\n"+pass+pass)
	var names []string
	for _, x := range f.Tensors {
		names = append(names, x.Name)
	}
	if got, want := strings.Join(names, " "), "input_ids embd Qcur-0 Qcur-0#1 pass1/embd pass1/Qcur-0 pass1/Qcur-0#1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	ids := make([]byte, 16)
	if _, err := f.Tensors[0].ReadAt(ids, 0); err != nil || binary.LittleEndian.Uint64(ids) != 5 || binary.LittleEndian.Uint64(ids[8:]) != 7 {
		t.Errorf("the ids are %x, %v", ids, err)
	}
	for _, log := range []string{"", "number of input tokens = 3\n  5\n  7\n", "number of input tokens = 2\n  5\n  x\n"} {
		if f := read(t, log+pass); f.Tensors[0].Name != "embd" || !strings.Contains(strings.Join(f.Notes, "; "), "no token ids") {
			t.Errorf("%q: the first is %s, and the notes are %q", log, f.Tensors[0].Name, f.Notes)
		}
	}
}

// The program may end before its text is written: what is not whole is left out, wherever the text ends.
func TestCutAnywhere(t *testing.T) {
	at := func(_, _, i1, i0 int) float32 { return float32(i1) + float32(i0)/8 }
	first, second := printed("a", [4]int{8, 2, 1, 1}, at), printed("b", [4]int{8, 2, 1, 1}, at)
	for n := len(first); n < len(first)+len(second); n++ {
		f := read(t, (first + second)[:n])
		whole := strings.Contains(second[:n-len(first)], "\n    ]\n")
		for _, x := range f.Tensors[1:] {
			if !whole {
				t.Fatalf("%d bytes: %s is read of %q", n, x.Name, second[:n-len(first)])
			}
			if x.Printed.HasSum && n < len(first)+len(second)-1 {
				t.Fatalf("%d bytes: a sum that may be cut, %g", n, x.Printed.Sum)
			}
		}
	}
}
