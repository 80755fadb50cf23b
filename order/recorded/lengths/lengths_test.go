package lengths

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/tracediff/tracediff/internal/seeds"
	"github.com/tracediff/tracediff/order/recorded"
)

func readLengths(t *testing.T, path string) *recorded.Program {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := recorded.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What is made for a length that was recorded, from the other lengths alone, is what was recorded: each size, each stride, each view,
// each earlier value that is read, and each number of each constant.
func TestProgramOfALengthThatWasLeftOut(t *testing.T) {
	paths, err := filepath.Glob("../../../fixtures/lengths/*/recorded.program.json")
	if err != nil || len(paths) < 4 {
		t.Fatal("no programs", err)
	}
	made := 0
	for _, path := range paths {
		runs, err := readLengths(t, path).Runs()
		if err != nil {
			t.Fatal(err)
		}
		for n, run := range runs {
			p := readLengths(t, path)
			others, err := p.Runs()
			if err != nil {
				t.Fatal(err)
			}
			var lengths []int
			for _, pass := range run {
				lengths = append(lengths, pass.Tokens)
			}
			to, err := from(p, slices.Delete(others, n, n+1), lengths)
			if err != nil {
				if !errors.Is(err, ErrLengths) {
					t.Errorf("%s: %v", path, err)
				}
				continue
			}
			made++
			got, want := describe(to, to.Passes), describe(p, run)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s, %d tokens: line %d is\n%s\nand was recorded as\n%s", path, lengths[0], i, got[i], want[i])
				}
			}
		}
	}
	if made < 5 {
		t.Errorf("%d runs were made from the others: nothing was shown", made)
	}
}

// describe writes the lines of passes, with values counted from the first one and constants by their digests.
func describe(p *recorded.Program, passes []recorded.Pass) []string {
	var out []string
	first := passes[0].First
	ref := func(r recorded.Ref) string {
		switch r.Kind {
		case recorded.ToValue:
			r.Index -= first
		case recorded.ToConstant:
			c := p.Constants[r.Index]
			numbers := fmt.Sprint(c.Numbers)
			r.Index = 0
			return fmt.Sprintf("%+v %s %v %s %s", r, c.DType, c.Shape, c.Is, numbers)
		}
		for a, n := range r.Shape { // the stride of an axis of one element says nothing
			if r.Stride = slices.Clone(r.Stride); n == 1 {
				r.Stride[a] = 0
			}
		}
		return fmt.Sprintf("%+v", r)
	}
	for _, pass := range passes {
		out = append(out, fmt.Sprint(pass.Tokens, " after ", pass.Past))
		for _, l := range pass.Lines {
			var b strings.Builder
			if l.Name != nil {
				fmt.Fprintf(&b, "%d %s %d %s", l.Layer, l.Name.Name, l.Name.Level, ref(l.Name.Of))
			} else {
				fmt.Fprintf(&b, "%d %s %v %d", l.Layer, l.Step.Op, l.Step.Attr, l.Step.First-first)
				for _, in := range l.Step.In {
					b.WriteString("\n  " + ref(in))
				}
				for _, v := range l.Step.Out {
					fmt.Fprintf(&b, "\n  %s %v", v.DType, v.Shape)
				}
			}
			out = append(out, b.String())
		}
	}
	return append(out, "end")
}

// A size is found again from as many lengths as its polynomial has coefficients, and one more; from no number of lengths is a size
// found that none of them has.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SliceOfN(rapid.IntRange(-50, 50), 1, maxDegree+1).Draw(t, "coefficients")
		xs := rapid.SliceOfNDistinct(rapid.IntRange(1, 400), maxDegree+2, 8, rapid.ID).Draw(t, "lengths")
		at := func(x int) int {
			y := 0
			for _, k := range c {
				y = y*x + k
			}
			return y
		}
		slices.Sort(xs)
		var samples []sample
		var sizes []int
		for _, x := range xs {
			samples, sizes = append(samples, sample{x: x}), append(sizes, at(x))
		}
		x := rapid.IntRange(1, 400).Draw(t, "x")
		if got, err := sizeAt(samples, sizes, x); err != nil || got != at(x) {
			t.Fatalf("%d, %v for %d, want %d", got, err, x, at(x))
		}
		sizes[rapid.IntRange(0, len(sizes)-1).Draw(t, "other")] += rapid.IntRange(1, 9).Draw(t, "more")
		if got, err := sizeAt(samples, sizes, x); err == nil {
			for i, y := range sizes {
				if again, err := sizeAt(samples, sizes, xs[i]); err != nil || again != y {
					t.Fatalf("%d is %d for %v, and %d in what it is made of", got, again, xs[i], y)
				}
			}
		}
	})
}

// Three lengths tell the strides of a square matrix where it has no gaps, and tell none that are as large for another reason.
func TestStridesOfSquares(t *testing.T) {
	s := &stretcher{samples: []sample{{x: 5}, {x: 7}, {x: 15}}}
	var shapes, strides, others [][]int
	for _, one := range s.samples {
		n := one.x
		shapes, strides, others = append(shapes, []int{4, n, n}), append(strides, []int{n * n, n, 1}), append(others, []int{n*n + 1, n, 1})
	}
	shape, stride, err := s.layout(shapes, strides, 11)
	if err != nil || !slices.Equal(shape, []int{4, 11, 11}) || !slices.Equal(stride, []int{121, 11, 1}) {
		t.Errorf("%v %v, %v", shape, stride, err)
	}
	if _, stride, err = s.layout(shapes, others, 11); !errors.Is(err, errSizes) {
		t.Errorf("strides that three lengths do not tell are %v, %v", stride, err)
	}
}

// Where passes of other lengths have other operations, the error names the line of source with which that begins: of a loop over
// chunks, what the longer one does more.
func TestWherePassesPart(t *testing.T) {
	p := &recorded.Program{Sources: []recorded.Source{{Line: "net.py:1"}, {Line: "net.py:2"}, {Line: "net.py:3"}}}
	lines := func(steps ...int) *recorded.Pass {
		var all []recorded.Line
		for _, n := range steps {
			all = append(all, recorded.Line{Step: &recorded.Step{Op: []string{"mul", "sub", "add"}[n], Source: n}})
		}
		return &recorded.Pass{Lines: all}
	}
	s := &stretcher{from: p}
	for _, c := range []struct {
		a, b *recorded.Pass
		want string
	}{
		{lines(0, 1, 2), lines(0, 1, 1, 2), "sub at net.py:2"},
		{lines(0, 1, 0, 2), lines(0, 2), "sub at net.py:2"},
		{lines(0, 1), lines(0, 1, 2), "add at net.py:3"},
	} {
		if got := s.parting(c.a, c.b); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
