package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// wants is a model of two weights and a head.
var wants = []checkpoint.Want{
	{Name: "embed_tokens.weight", Shape: []int{6, 4}},
	{Name: "layers.0.norm.weight", Shape: []int{4}},
	{Name: "lm_head.weight", Fallback: "embed_tokens.weight", Shape: []int{6, 4}},
}

func tensors(prefix string) []checkpointtest.Tensor {
	return checkpointtest.Random(wants, hooks.BF16, prefix, 1)
}

func open(t *testing.T, dir string) *checkpoint.Checkpoint {
	t.Helper()
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ck.Close(); err != nil {
			t.Error(err)
		}
	})
	return ck
}

// Every layout in which checkpoints are found: each prefix, one file or several, with a head and without.
func TestLayouts(t *testing.T) {
	for _, prefix := range []string{"model.language_model.", "language_model.model.", "model.", ""} {
		for _, shards := range []int{1, 2} {
			for _, head := range []string{"", "lm_head.weight", "language_model.lm_head.weight"} {
				t.Run(fmt.Sprintf("%q/%d shards/head %q", prefix, shards, head), func(t *testing.T) {
					all := tensors(prefix)
					want := all[0].Data
					if head != "" {
						own := checkpointtest.Random(wants[:1], hooks.BF16, "", 9)[0]
						all = append(all, checkpointtest.Tensor{Name: head, Tensor: own.Tensor})
						want = own.Data
					}
					// Towers of a multimodal checkpoint are not the text model's.
					tower := checkpointtest.Tensor{Name: "model.vision_tower.embed_tokens.weight", Tensor: all[1].Tensor}
					ck := open(t, checkpointtest.Write(t, t.TempDir(), []byte(`{}`), append(all, tower), shards))
					if err := ck.Require(wants); err != nil {
						t.Fatal(err)
					}
					norm, ok := ck.Tensor("layers.0.norm.weight")
					if !ok || !bytes.Equal(norm.Data, all[1].Data) {
						t.Error("the norm is not the file's")
					}
					got, ok := ck.Tensor("lm_head.weight")
					if !ok && head == "" {
						got, ok = ck.Tensor("embed_tokens.weight")
					}
					if !ok || !bytes.Equal(got.Data, want) {
						t.Error("the head is not the file's")
					}
				})
			}
		}
	}
}

// Where several prefixes would do, the text model of a multimodal checkpoint wins.
func TestPrefixesInOrder(t *testing.T) {
	prefixes := []string{"model.language_model.", "language_model.model.", "model.", ""}
	for i := range prefixes {
		var all []checkpointtest.Tensor
		for _, p := range prefixes[i:] {
			all = append(all, checkpointtest.Random(wants[:1], hooks.BF16, p, uint64(len(p)))...)
		}
		ck := open(t, checkpointtest.Write(t, t.TempDir(), []byte(`{}`), all, 1))
		if got, ok := ck.Tensor("embed_tokens.weight"); !ok || !bytes.Equal(got.Data, all[0].Data) {
			t.Errorf("of %q the first is not taken", prefixes[i:])
		}
	}
}

// All that is wrong with the weights is said at once, by the names that the file would have.
func TestRequireSaysEverything(t *testing.T) {
	all := tensors("model.")
	all[1].Shape = []int{2, 2}
	more := append(wants, checkpoint.Want{Name: "layers.1.norm.weight", Shape: []int{4}}, checkpoint.Want{Name: "ids", Shape: []int{1}})
	all = append(all, checkpointtest.Tensor{Name: "model.ids", Tensor: hooks.Tensor{DType: hooks.I64, Shape: []int{1}, Data: make([]byte, 8)}})
	double := checkpoint.Want{Name: "double", Shape: []int{1}}
	more, all = append(more, double), append(all, checkpointtest.Tensor{Name: "model.double", Tensor: hooks.Tensor{DType: hooks.F64, Shape: []int{1}, Data: make([]byte, 8)}})
	err := open(t, checkpointtest.Write(t, t.TempDir(), []byte(`{}`), all, 1)).Require(more)
	want := `4 weights do not fit the configuration:
  model.layers.0.norm.weight is [2 2], want [4]
  model.layers.1.norm.weight [4] is missing
  model.ids is int64; float32, bfloat16 and float16 are read
  model.double is float64; float32, bfloat16 and float16 are read`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	var weights *checkpoint.WeightsError
	if !errors.As(err, &weights) || weights.Hint() == "" {
		t.Error("no hint")
	}
}

// Directories that cannot be used, each with an error that names what is wrong.
func TestBadDirectories(t *testing.T) {
	good := func() fstest.MapFS {
		return fstest.MapFS{
			"config.json":       {Data: []byte("{}")},
			"model.safetensors": {Data: checkpointtest.File(tensors("model."))},
		}
	}
	sharded := func(index string) fstest.MapFS {
		files := good()
		files["a.safetensors"] = files["model.safetensors"]
		delete(files, "model.safetensors")
		files["model.safetensors.index.json"] = &fstest.MapFile{Data: []byte(index)}
		return files
	}
	cut := good()
	whole := cut["model.safetensors"].Data
	cut["model.safetensors"] = &fstest.MapFile{Data: whole[:len(whole)/2]}
	twice := good()
	twice["model.safetensors"] = &fstest.MapFile{Data: checkpointtest.File(tensors("model."))}
	doubled := bytes.Replace(twice["model.safetensors"].Data, []byte("model.layers.0.norm.weight"), []byte("model.embed_tokens.weight "), 1)
	doubled = bytes.Replace(doubled, []byte(`"model.embed_tokens.weight "`), []byte(`"model.embed_tokens.weight" `), 1)
	twice["model.safetensors"].Data = doubled
	noConfig, noWeights, big := good(), good(), good()
	delete(noConfig, "config.json")
	delete(noWeights, "model.safetensors")
	big["config.json"] = &fstest.MapFile{Data: bytes.Repeat([]byte(" "), 1<<20+1)}
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"a name twice":        {twice, "model.embed_tokens.weight"},
		"no config":           {noConfig, "config.json"},
		"config too large":    {big, "larger than"},
		"no weights":          {noWeights, "neither model.safetensors nor model.safetensors.index.json"},
		"half a file":         {cut, "model.safetensors (116 bytes)"},
		"index is no JSON":    {sharded("["), "reading model.safetensors.index.json"},
		"index is empty":      {sharded("{}"), "lists no tensors"},
		"shard is missing":    {sharded(`{"weight_map": {"x": "b.safetensors"}}`), "b.safetensors"},
		"tensor is not there": {sharded(`{"weight_map": {"x": "a.safetensors"}}`), "says that x is in a.safetensors, but it is not"},
		"leaves the folder":   {sharded(`{"weight_map": {"x": "../a.safetensors"}}`), `"../a.safetensors", which is not`},
		"is no safetensors":   {sharded(`{"weight_map": {"x": "config.json"}}`), `"config.json", which is not`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), content.Data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			_, fromFS := checkpoint.OpenFS("model", c.files)
			_, fromDir := checkpoint.Open(dir)
			for _, err := range []error{fromFS, fromDir} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error with %q", err, c.want)
				}
			}
		})
	}
	if _, err := checkpoint.Open(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("a directory that is not there was opened")
	}
	empty := t.TempDir()
	for file, data := range map[string]string{"config.json": "{}", "model.safetensors": ""} {
		if err := os.WriteFile(filepath.Join(empty, file), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := checkpoint.Open(empty); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty weight file: %v", err)
	}
}

// The digest depends on the content of the weight files and their names, and on nothing else.
func TestDigest(t *testing.T) {
	digest := func(config string, seed uint64, shards int) string {
		all := checkpointtest.Random(wants, hooks.BF16, "model.", seed)
		return open(t, checkpointtest.Write(t, t.TempDir(), []byte(config), all, shards)).Digest()
	}
	base := digest("{}", 1, 1)
	if diff := cmp.Diff(base, digest(`{"a": 1}`, 1, 1)); diff != "" {
		t.Errorf("another config.json changes the digest: %s", diff)
	}
	if base == digest("{}", 2, 1) || base == digest("{}", 1, 2) {
		t.Error("other weights have the same digest")
	}
	if !strings.HasPrefix(base, "sha256:") || len(base) != len("sha256:")+64 {
		t.Errorf("digest %q", base)
	}
}

func FuzzOpen(f *testing.F) {
	whole := checkpointtest.File(tensors("model."))
	f.Add([]byte("{}"), whole, []byte(`{"weight_map": {"x": "a.safetensors"}}`))
	f.Add([]byte("{}"), whole[:40], []byte(``))
	f.Fuzz(func(t *testing.T, config, weights, index []byte) {
		for _, name := range []string{"model.safetensors", "a.safetensors"} {
			ck, err := checkpoint.OpenFS("fuzz", fstest.MapFS{
				"config.json": {Data: config}, name: {Data: weights}, "model.safetensors.index.json": {Data: index},
			})
			if err != nil {
				continue
			}
			_ = ck.Require(wants)
			if err := ck.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A place in a file has the bytes of the view, in one file and in several; an embedded checkpoint has no files.
func TestPlace(t *testing.T) {
	wants := []checkpoint.Want{{Name: "embed_tokens.weight", Shape: []int{5, 3}}, {Name: "norm.weight", Shape: []int{3}}, {Name: "a.weight", Shape: []int{2, 2}}}
	for _, files := range []int{1, 2} {
		dir := checkpointtest.Write(t, t.TempDir(), []byte(`{}`), checkpointtest.Random(wants, hooks.BF16, "model.", 1), files)
		ck := open(t, dir)
		for _, w := range wants {
			want, _ := ck.Tensor(w.Name)
			place, ok := ck.Place(w.Name)
			if !ok {
				t.Fatalf("%d files: no place of %s", files, w.Name)
			}
			got := make([]byte, len(want.Data))
			if _, err := place.File.ReadAt(got, place.At); err != nil || !bytes.Equal(got, want.Data) {
				t.Errorf("%d files: %s has other bytes in the file (%v)", files, w.Name, err)
			}
		}
		embedded, err := checkpoint.OpenFS("embedded", os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := embedded.Place("norm.weight"); ok {
			t.Error("a checkpoint in memory has a place in a file")
		}
	}
}
