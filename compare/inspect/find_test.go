package inspect_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/hooks"
)

// passes is a trace of three passes, in which "mlp" is fired twice a pass and "late" in the last two alone.
func passes(t testing.TB) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.safetensors")
	w, err := capture.Create(path, capture.Manifest{Axes: map[string]string{"mlp": "b c"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for pass := range 3 {
		for _, name := range []string{"norm", "mlp", "mlp", "late"} {
			if name == "late" && pass == 0 {
				continue
			}
			x := tensor(name, hooks.F32, []int{1, 2}, float64(pass), 9).Tensor
			if err := w.Observe(hooks.Event{Pass: pass, Name: name, Tensor: x}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func ranges(t testing.TB, text string) capture.Ranges {
	t.Helper()
	r, err := capture.ParseRanges(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a name and --pass show: "= key" one tensor in full, else a list.
func TestWhatIsNamed(t *testing.T) {
	tr := passes(t)
	for _, c := range []struct{ name, pass, want string }{
		{"", "", "norm mlp mlp#1 pass1/norm pass1/mlp pass1/mlp#1 pass1/late pass2/norm pass2/mlp pass2/mlp#1 pass2/late"},
		{"", "1", "pass1/norm pass1/mlp pass1/mlp#1 pass1/late"},
		{"norm", "", "= norm also in 1-2"},
		{"late", "", "= pass1/late also in 2"},
		{"norm", "2", "= pass2/norm also in 0-1"},
		{"norm", "0,2", "norm pass2/norm"},
		{"mlp", "", "= mlp also in 1-2"},
		{"mlp", "1", "= pass1/mlp also in 0,2"},
		{"mlp#1", "", "= mlp#1 also in 1-2"},
		{"pass1/mlp#1", "", "= pass1/mlp#1 also in 0,2"},
		{"*", "0", "norm mlp mlp#1"},
		{"l*", "", "pass1/late pass2/late"},
		{"pass2/*", "", "pass2/norm pass2/mlp pass2/mlp#1 pass2/late"},
		{"lat?", "2", "pass2/late"},
	} {
		r, err := inspect.Run(context.Background(), tr, inspect.Options{Name: c.name, Passes: ranges(t, c.pass)})
		if err != nil {
			t.Errorf("%q in %q: %v", c.name, c.pass, err)
			continue
		}
		var got []string
		for _, x := range r.Tensors {
			got = append(got, "= "+x.Line.Key+" also in "+x.Passes)
		}
		for _, l := range r.List {
			got = append(got, l.Key)
		}
		if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q in %q\n%s", c.name, c.pass, d)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	tr := passes(t)
	for _, c := range []struct{ name, pass, what, hint string }{
		{"nrom", "", `has no tensor "nrom"`, `lists all 11`},
		{"norms", "", `has no tensor "norms"`, `did you mean "norm"?`},
		{"lat", "", `has no tensor "lat"`, `did you mean "late"?`},
		{"late", "0", `has no tensor "late" in pass 0`, `it has passes 0 to 2`},
		{"", "7", `--pass 7: `, `it has passes 0 to 2`},
		{"[", "", `has no tensor "["`, `* stands for`},
	} {
		_, err := inspect.Run(context.Background(), tr, inspect.Options{Name: c.name, Passes: ranges(t, c.pass)})
		var option *inspect.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), c.what) || !strings.Contains(option.Hint(), c.hint) {
			t.Errorf("%q in %q: %v", c.name, c.pass, err)
		}
	}
	_, err := inspect.Pair(context.Background(), tr, tr, inspect.Options{Name: "m*"})
	if !errors.As(err, new(*inspect.OptionError)) || !strings.Contains(err.Error(), "names 6 tensors") {
		t.Errorf("a pattern of two files: %v", err)
	}
}

// A name may be anything in a file of another writer: what looks like a pattern is first looked up as it is, and no name is
// printed as it came.
func TestNamesOfAnyCharacter(t *testing.T) {
	hostile := "a\x1b[31m" + strings.Repeat("x", 300)
	tr := open(t, file(tensor("experts[0].*", hooks.F32, []int{2}, 1), tensor("experts[1].w", hooks.F32, []int{2}, 1), tensor(hostile, hooks.F32, nil, 1)))
	if x := one(t, tr, inspect.Options{Name: "experts[0].*"}); x.Line.Key != "experts[0].*" {
		t.Errorf("%q", x.Line.Key)
	}
	_, err := inspect.Run(context.Background(), tr, inspect.Options{Name: "a\x1b[31mxxx"})
	var option *inspect.OptionError
	if !errors.As(err, &option) || strings.Contains(err.Error()+option.Hint(), "\x1b") || len(option.Hint()) > 300 {
		t.Errorf("%v", err)
	}
}

// Without a promise nothing is said of order, passes or axes.
func TestFilesOfOthers(t *testing.T) {
	tr := open(t, file(tensor("pass1/x", hooks.F32, []int{1, 2}, 1), tensor("y", hooks.F32, []int{1, 2}, 1)))
	r, err := inspect.Run(context.Background(), tr, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Files[0]
	if f.Sequence || f.Status != "" || f.Passes != 1 || f.Tensors != 2 || f.Bytes != 16 || r.List[0].Name != "pass1/x" {
		t.Errorf("%+v %+v", f, r.List)
	}
	if x := one(t, tr, inspect.Options{Name: "y"}); fmt.Sprint(x.Axes) != "[axis 0 axis 1]" {
		t.Errorf("axes %q", x.Axes)
	}
	if x := one(t, passes(t), inspect.Options{Name: "mlp"}); fmt.Sprint(x.Axes) != "[batch channel]" || x.Channels == nil {
		t.Errorf("axes %q", x.Axes)
	}
}

// headerOnly is a file whose data cannot be read.
type headerOnly struct {
	data []byte
	end  int64 // of the header
}

var errData = errors.New("the data were read")

func (h headerOnly) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > h.end {
		return 0, errData
	}
	return copy(p, h.data[off:]), nil
}

// With Header no data are read; without, the error of reading them is what comes back.
func TestHeaderReadsNoData(t *testing.T) {
	data := file(tensor("w", hooks.F32, []int{2}, 1), tensor("v", hooks.F32, []int{2}, 1))
	tr, err := capture.OpenReader("x", headerOnly{data, 8 + int64(binary.LittleEndian.Uint64(data))}, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := inspect.Run(context.Background(), tr, inspect.Options{Header: true})
	if err != nil || len(r.List) != 2 || r.List[0].Stats != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, o := range []inspect.Options{{}, {Name: "w"}, {Name: "w", Slice: "0"}} {
		if _, err := inspect.Run(context.Background(), tr, o); !errors.Is(err, errData) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
