package dump_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/dump/dumptest"
	"github.com/tracediff/tracediff/internal/floats"
)

// Each file of the corpus gets its verdict; of those that are read, all data are.
func TestCorpus(t *testing.T) {
	for _, c := range dumptest.Corpus(t) {
		f := &container.File{}
		err := dump.Read(bytes.NewReader(c.Data), int64(len(c.Data)), f, "alone")
		switch {
		case c.Want == "" && err != nil:
			t.Errorf("%s: %v", c.Name, err)
		case c.Want != "" && (err == nil || !strings.Contains(err.Error(), c.Want)):
			t.Errorf("%s: %v, want %q", c.Name, err, c.Want)
		case c.Want != "" && strings.Count(err.Error(), "\n") > 0:
			t.Errorf("%s: an error of several lines: %v", c.Name, err)
		}
		for i := range f.Tensors {
			x := &f.Tensors[i]
			if c.Want != "" || x.Unknown != "" {
				continue
			}
			if n, err := x.ReadAt(make([]byte, x.Size()), 0); err != nil {
				t.Errorf("%s: %s: %d bytes, %v", c.Name, x.Name, n, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// What torch writes of float8 has the numbers that torch says it has, by both of its writers, as it lies and turned.
func TestFloat8OfTorch(t *testing.T) {
	for _, name := range []string{"float8.pt", "float8-legacy.pt"} {
		values := fixture(t, name)
		for _, kind := range []string{"e4m3fn", "e5m2"} {
			got, want, turned := values[kind], values[kind+"_wide"], values[kind+"_turned"]
			if len(got) != 256 || len(want) != 256 || len(turned) != 256 {
				t.Fatalf("%s: %d, %d and %d elements of %s", name, len(got), len(want), len(turned), kind)
			}
			for i, x := range want {
				if y, z := got[i], turned[i%16*16+i/16]; y != x && (y == y || x == x) || z != x && (z == z || x == x) {
					t.Errorf("%s: byte %02x of %s is %v, turned %v, torch has %v", name, i, kind, y, z, x)
				}
			}
		}
	}
}

// What numpy writes to an archive without knowing its size has the sizes of zip64.
func TestZip64OfNumpy(t *testing.T) {
	values := fixture(t, "zip64.npz")
	if a, b := values["a"], values["b"]; !slices.Equal(a, []float64{0, 1, 2, 3, 4, 5}) || !slices.Equal(b, []float64{0, 1, 2, 3}) {
		t.Errorf("%v", values)
	}
}

// fixture has the elements of the tensors of a file in fixtures/foreign.
func fixture(t *testing.T, name string) map[string][]float64 {
	t.Helper()
	f, err := dump.Open(filepath.Join("../../fixtures/foreign", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]float64{}
	for i := range f.Tensors {
		x := &f.Tensors[i]
		raw := make([]byte, x.Size())
		if _, err := x.ReadAt(raw, 0); err != nil {
			t.Fatal(err)
		}
		all[x.Name] = make([]float64, len(raw)/x.DType.Size())
		if err := floats.Decode(all[x.Name], x.DType, raw); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
