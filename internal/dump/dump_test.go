package dump_test

import (
	"archive/zip"
	"bytes"
	"os"
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

// A byte that changed in a member of an archive after it was written is an error where the member is read, and only there, whether the member is
// stored or compressed. So is, in a stored one, a checksum that became 0 beside others that did not.
func TestDamagedMembers(t *testing.T) {
	read := func(data []byte) (errs []error) {
		f := &container.File{}
		defer f.Close()
		if err := dump.Read(bytes.NewReader(data), int64(len(data)), f, "alone"); err != nil {
			return []error{err}
		}
		for i := range f.Tensors {
			x := &f.Tensors[i]
			if x.Unknown != "" {
				continue
			}
			p := make([]byte, x.Size())
			_, err := x.ReadAt(p, 0)
			if _, again := x.ReadAt(p, 0); (again == nil) != (err == nil) {
				t.Errorf("%s: %v, and then %v", x.Name, err, again)
			}
			errs = append(errs, err)
		}
		return errs
	}
	for _, name := range []string{"numpy.npz", "numpy-compressed.npz", "torch.pt"} {
		good, err := os.ReadFile(filepath.Join("../../fixtures/foreign", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range read(good) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		z, err := zip.NewReader(bytes.NewReader(good), int64(len(good)))
		if err != nil {
			t.Fatal(err)
		}
		largest := slices.MaxFunc(z.File, func(a, b *zip.File) int { return int(a.CompressedSize64) - int(b.CompressedSize64) })
		at, err := largest.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range map[string]func(data []byte){
			"a byte": func(data []byte) { data[at+int64(largest.CompressedSize64)*3/4] ^= 1 },
			"its checksum": func(data []byte) {
				entry := bytes.LastIndex(data, append([]byte(largest.Name), largest.Extra...))
				clear(data[entry-46+16:][:4])
			},
		} {
			bad := bytes.Clone(good)
			damage(bad)
			failed := 0
			for _, err := range read(bad) {
				if err != nil {
					failed++
				}
			}
			if largest.Method == zip.Deflate && what == "its checksum" { // which archive/zip takes for one that was not computed
				continue
			}
			if failed == 0 || failed > 3 {
				t.Errorf("%s: %d tensors cannot be read where %s of %s changed", name, failed, what, largest.Name)
			}
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
