package foreign_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/fuzztest"
)

// array is a .npy file of two float32.
var array = npy("<f4", "(2,)", 8)

func npy(descr, shape string, data int) string {
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text + strings.Repeat("\x00", data)
}

// one is a safetensors file of two float32 of a name.
func one(name string) string {
	header := fmt.Sprintf(`{%q:{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, name)
	return string([]byte{byte(len(header)), byte(len(header) >> 8), 0, 0, 0, 0, 0, 0}) + header + "12345678"
}

// folders have a verdict each: a part of the error, or the keys of the tensors that are read.
var folders = []struct {
	name  string
	files map[string]string
	want  string
	keys  []string
}{
	{"arrays", map[string]string{"layers.0.out.npy": array, "norm.npy": array}, "", []string{"layers.0.out", "norm"}},
	{"arrays of passes", map[string]string{"pass0/norm.npy": array, "pass1/norm.npy": array}, "", []string{"norm", "pass1/norm"}},
	{"arrays of ranks", map[string]string{"rank0/norm.npy": array, "rank1/norm.npy": array}, "", []string{"rank0.norm", "rank1.norm"}},
	{"a pass a file", map[string]string{"step_1.safetensors": one("norm"), "step_2.safetensors": one("norm")}, "", []string{"norm", "pass1/norm"}},
	{"a rank a file", map[string]string{"rank0.safetensors": one("norm"), "rank1.safetensors": one("norm")}, "", []string{"rank0.norm", "rank1.norm"}},
	{"a rank a file, in a folder of the run", map[string]string{"run/TP_0.safetensors": one("norm"), "run/TP_1.safetensors": one("norm")}, "", []string{"run.TP_0.norm", "run.TP_1.norm"}},
	{"a layer a file", map[string]string{"layer-1.safetensors": one("norm"), "layer-2.safetensors": one("norm")}, "", []string{"layer-1.norm", "layer-2.norm"}},
	{"a rank a file, with passes", map[string]string{"rank0.safetensors": one("pass1/norm"), "rank1.safetensors": one("pass1/norm"), "rank2.safetensors": one("norm")}, "", []string{"pass1/rank0.norm", "pass1/rank1.norm", "rank2.norm"}},
	{"a pass that is missing", map[string]string{"step_0.safetensors": one("norm"), "step_2.safetensors": one("norm")}, "is missing", nil},
	{"two files of one pass", map[string]string{"step_1.safetensors": one("norm"), "step_01.safetensors": one("norm")}, "have the same number", nil},
	{"nothing", map[string]string{"notes.txt": "To whom it may concern"}, "has no dump of tensors", nil},
	{"a file that is cut", map[string]string{"norm.npy": array, "logits.npy": array[:len(array)-1]}, "logits.npy", nil},
	{"a pickle that calls", map[string]string{"norm.npy": array, "x.pt": "cos\nsystem\n(S'id'\ntR."}, "os.system", nil},
	{"shards", map[string]string{"a.safetensors.index.json": `{"weight_map":{"norm":"b.safetensors"}}`, "b.safetensors": one("norm")}, "", []string{"norm"}},
	{"a shard elsewhere", map[string]string{"a.safetensors.index.json": `{"weight_map":{"norm":"../b.safetensors"}}`, "b.safetensors": one("norm")}, "is not in the folder of the index", nil},
	{"a shard that is not there", map[string]string{"a.safetensors.index.json": `{"weight_map":{"norm":"c.safetensors"}}`, "b.safetensors": one("norm")}, "is not there", nil},
	{"a shard of another name", map[string]string{"a.safetensors.index.json": `{"weight_map":{"logits":"b.safetensors"}}`, "b.safetensors": one("norm")}, "elsewhere or not at all", nil},
	{"SGLang's dumper", map[string]string{"step=0___rank=0___dump_index=1___name=norm.pt": array, "step=1___rank=0___dump_index=2___name=norm.pt": array}, "", []string{"norm", "pass1/norm"}},
	{"SGLang's dumper, two ranks", map[string]string{"step=0___rank=0___dump_index=1___name=norm.pt": array, "step=0___rank=1___dump_index=1___name=norm.pt": array}, "tensors of 2 ranks", nil},
	{"SGLang's dumper, a step that is missing", map[string]string{"step=0___rank=0___dump_index=1___name=norm.pt": array, "step=3___rank=0___dump_index=1___name=norm.pt": array}, "its steps are 0 to 3", nil},
	{"SGLang's dumper, a step that is no number", map[string]string{"step=x___rank=0___dump_index=1___name=norm.pt": array}, "want a step, a dump_index and one tensor", nil},
	{"SGLang's dumper, two tensors", map[string]string{"step=0___rank=0___dump_index=1___name=norm.pt": one("a")}, "want a step, a dump_index and one tensor", nil},
	{"SGLang's hooks without ids", map[string]string{"Pass00000.pt": one("norm"), "Pass00001.pt": one("norm")}, "", []string{"norm", "pass1/norm"}},
	{"SGLang's hooks of two ranks", map[string]string{"TP0/Pass00000.pt": one("model.forward_batch_info.input_ids"), "TP1/Pass00000.pt": one("model.forward_batch_info.input_ids")}, "tensors of 2 ranks", nil},
	{"a debug tree", map[string]string{"M_debug_tree_FULL_TENSORS.json": "{}", "M.model.norm_outputs.safetensors": one("data")}, "", []string{"model.norm"}},
	{"a debug tree with another file", map[string]string{"M_debug_tree_FULL_TENSORS.json": "{}", "norm.npy": array}, "is not a file of a debug tree of M", nil},
	{"a debug tree of two tensors", map[string]string{"M_debug_tree_FULL_TENSORS.json": "{}", "M.norm_outputs.safetensors": one("norm")}, "is not a file of a debug tree of M", nil},
	{"msprobe", map[string]string{"step0/rank0/dump_tensor_data/Module.model.norm.Norm.forward.0.output.0.npy": array}, "", []string{"model.norm"}},
	{"msprobe of two ranks", map[string]string{"step0/rank0/dump_tensor_data/Module.norm.Norm.forward.0.output.0.npy": array, "step0/rank1/dump_tensor_data/Module.norm.Norm.forward.0.output.0.npy": array}, "tensors of 2 ranks", nil},
	{"msprobe, a call beyond numbers", map[string]string{"step0/dump_tensor_data/Module.norm.Norm.forward.99999999999999999999.output.0.npy": array}, "not a number", nil},
	{"msprobe, a step beyond numbers", map[string]string{"step99999999999999999999/dump_tensor_data/Module.norm.Norm.forward.0.output.0.npy": array}, "not a number", nil},
	{"msprobe, a call without those before", map[string]string{"step0/dump_tensor_data/Module.embed_tokens.E.forward.70000.output.0.npy": array}, "the last pass of a trace is", nil},
	{"complex numbers alone", map[string]string{"freqs_cis.npy": npy("<c8", "(2,)", 16)}, `has dtype "<c8", which is not read`, nil},
	{"complex numbers beside others", map[string]string{"freqs_cis.npy": npy("<c8", "(2,)", 16), "norm.npy": array}, "", []string{"norm"}},
}

// Each folder gets its verdict, in one line, and of those that are read all data are.
func TestFolders(t *testing.T) {
	for _, c := range folders {
		t.Run(c.name, func(t *testing.T) {
			trace, err := foreign.Open(written(t, c.files))
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
				t.Fatalf("%v, want %q", err, c.want)
			case c.want != "":
				return
			case err != nil:
				t.Fatal(err)
			}
			defer trace.Close()
			if keys := sound(t, trace); !slices.Equal(keys, c.keys) {
				t.Errorf("%q, want %q", keys, c.keys)
			}
		})
	}
}

// sound reads all tensors of a trace, and returns their keys.
func sound(t *testing.T, trace *capture.Trace) (keys []string) {
	t.Helper()
	for _, r := range trace.Records() {
		n, ok := hooks.Elements(r.Shape)
		if !ok || !r.DType.Valid() || r.Size != int64(n*r.DType.Size()) {
			t.Fatalf("an impossible tensor %q %v %v", r.Key, r.DType, r.Shape)
		}
		if _, err := trace.ReadAt(r, make([]byte, min(r.Size, 1<<20)), 0); err != nil {
			t.Fatalf("%q: %v", r.Key, err)
		}
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	return keys
}

func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
			t.Skip(err) // a name that no file can have
		}
	}
	return dir
}

// Each scheme has a target, which begins with the folders of the table that are its own, and one that the tool itself wrote.

func FuzzSGLangDumper(f *testing.F) { fuzz(f, "SGLang's dumper", "sglang-dumper") }
func FuzzSGLangHooks(f *testing.F)  { fuzz(f, "SGLang's hooks", "sglang-passes") }
func FuzzDebugTree(f *testing.F)    { fuzz(f, "a debug tree", "debug-tree") }
func FuzzMsprobe(f *testing.F)      { fuzz(f, "msprobe", "msprobe") }

// FuzzFolder begins with the other folders: files of passes, of tensors, shards.
func FuzzFolder(f *testing.F) { fuzz(f, "", "torch-passes", "numpy-folder", "sharded") }

var schemes = []string{"SGLang's dumper", "SGLang's hooks", "a debug tree", "msprobe"}

// fuzz looks for a folder that makes a scheme panic, or that has a tensor which cannot be. A line of the input is a file: its name,
// and behind a tab what is in it, where "=" stands for an array and "=NAME" for a tensor of that name.
func fuzz(f *testing.F, scheme string, dirs ...string) {
	var seeds [][]byte
	for _, c := range folders {
		own := slices.IndexFunc(schemes, func(s string) bool { return strings.HasPrefix(c.name, s) })
		if own < 0 != (scheme == "") || own >= 0 && schemes[own] != scheme {
			continue
		}
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(c.files)) { // an input is the same edits of the same text in each process
			data := c.files[name]
			switch {
			case data == array:
				data = "="
			case strings.HasPrefix(data, one("data")[:1]) && strings.Contains(data, `"dtype"`):
				data = "=" + data[10:10+strings.IndexByte(data[10:], '"')]
			}
			fmt.Fprintf(&b, "%s\t%s\n", name, strings.ReplaceAll(data, "\n", " "))
		}
		seeds = append(seeds, []byte(b.String()))
	}
	for _, dir := range dirs {
		seeds = append(seeds, []byte(listing(f, filepath.Join("../../fixtures/foreign", dir))))
	}
	fuzztest.Files(f, seeds, func(t *testing.T, text []byte) {
		files := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, data, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if !filepath.IsLocal(name) || len(files) == 64 || len(name) > 200 {
				continue
			}
			switch of, ok := strings.CutPrefix(data, "="); {
			case ok && of == "":
				data = array
			case ok && len(of) < 100:
				data = one(of)
			}
			files[name] = data
		}
		trace, err := foreign.Open(written(t, files))
		if err != nil {
			if len(err.Error()) > 4000 {
				t.Fatalf("an error of %d characters", len(err.Error()))
			}
			return
		}
		defer trace.Close()
		sound(t, trace)
	})
}

// listing has the first files of a folder as fuzz has them, with arrays in place of their tensors: all of them take some ms to write.
func listing(f *testing.F, dir string) string {
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if b.Len() < 1<<10 {
			fmt.Fprintf(&b, "%s\t=\n", filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return b.String()
}

// Of a safetensors file of another writer complex numbers alone are left out: a dtype that nobody knows is none of them.
func TestComplexNumbers(t *testing.T) {
	file := func(dtype string) string {
		header := fmt.Sprintf(`{"norm":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"cis":{"dtype":%q,"shape":[1],"data_offsets":[8,16]}}`, dtype)
		return string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + "1234567812345678"
	}
	dir := written(t, map[string]string{"c.safetensors": file("C64"), "x.safetensors": file("X64")})
	trace, err := foreign.Open(filepath.Join(dir, "c.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	if keys, notes := sound(t, trace), trace.Notes(); !slices.Equal(keys, []string{"norm"}) || len(notes) != 1 || !strings.Contains(notes[0], `"cis" left out`) {
		t.Errorf("%q, %q", keys, notes)
	}
	if _, err := foreign.Open(filepath.Join(dir, "x.safetensors")); err == nil || !strings.Contains(err.Error(), `tensor "cis": unknown dtype "X64"`) {
		t.Error(err)
	}
}

// Passes are what names begin with, whatever stands behind: counted from 0, or from 1 where nothing is of pass 0.
func TestPassesOfNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  []string // pass and name
	}{
		{[]string{"h0/x", "pass1/h0/x", "pass2/rank1/h0/x#1"}, []string{"0 h0/x", "1 h0/x", "2 rank1/h0/x#1"}},
		{[]string{"pass0/h0/x", "pass1/h0/x"}, []string{"0 h0/x", "1 h0/x"}},
		{[]string{"pass1/h0/x", "pass2/h0/x"}, []string{"0 h0/x", "1 h0/x"}},
		{[]string{"pass2/x", "pass3/x"}, []string{"2 x", "3 x"}},
		{[]string{"x", "pass01/x", "pass/x", "pass-1/x", "pass1/"}, []string{"0 x", "0 pass01/x", "0 pass/x", "0 pass-1/x", "0 pass1/"}},
	} {
		path := filepath.Join(t.TempDir(), "dump.npz")
		var archive bytes.Buffer
		w := zip.NewWriter(&archive)
		for _, name := range c.names {
			member, err := w.Create(name + ".npy")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(member, array); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, archive.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		trace, err := foreign.Open(path)
		if err != nil {
			t.Fatalf("%q: %v", c.names, err)
		}
		var got []string
		for _, r := range trace.Records() {
			got = append(got, fmt.Sprintf("%d %s", r.Pass, r.Name))
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(c.want))) {
			t.Errorf("%q are %q, want %q", c.names, got, c.want)
		}
		if noted := slices.ContainsFunc(trace.Notes(), func(n string) bool { return strings.Contains(n, "counted from 1") }); noted != (c.names[0] == "pass1/h0/x") {
			t.Errorf("%q: the notes are %q", c.names, trace.Notes())
		}
		trace.Close()
	}
}
