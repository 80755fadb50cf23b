package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
)

// Settings come back as they were kept, with paths that mean the same from every folder.
func TestSettingsRoundTrip(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	must(t, err)
	prompt := "a \"prompt\"\n\x00 é"
	full := Settings{
		Model: "m", Prompt: &prompt, Chat: true, DType: "float16", NewTokens: 3, Order: "names.txt", Map: "map.toml", Python: "venv/bin/python",
		Scope:     capture.Scope{Level: 3, Layers: capture.Ranges{{From: 0, To: 3}}, Tensors: []string{"*.mlp.*"}},
		Local:     Source{Kind: KindExec, Text: "make run OUT={out}", Folder: here},
		Reference: Source{Kind: KindFile, Text: "ref.safetensors"},
	}
	for _, s := range []Settings{Defaults(), full} {
		must(t, s.Save("kept/deep"))
		got, Found, err := LastSettings("kept/deep")
		must(t, err)
		want := s
		if s.Model != "" {
			want.Model, want.Order, want.Map = filepath.Join(here, "m"), filepath.Join(here, "names.txt"), filepath.Join(here, "map.toml")
			want.Python = filepath.Join(here, "venv/bin/python")
			want.Reference.Text = filepath.Join(here, "ref.safetensors")
		}
		if diff := cmp.Diff(want, got); !Found || diff != "" {
			t.Errorf("found %v; want -, got +\n%s", Found, diff)
		}
	}
	if _, Found, err := LastSettings("nowhere"); Found || err != nil {
		t.Errorf("settings of a folder without any: %v %v", Found, err)
	}
	if left, err := filepath.Glob("kept/deep/*"); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Settings that could not have been typed are refused; what is taken keeps its meaning when it is written again.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(`{"dtype":"auto","scope":{"level":2}}`))
	f.Add([]byte(`{"dtype":"auto","scope":{"level":2,"layers":"0-3"},"local":{"kind":"exec","text":"x","folder":"/"}}`))
	f.Add([]byte(`{"dtype":"auto","scope":{"level":2},"reference":{"kind":"file"}}`))
	f.Add([]byte(`{"dtype":"auto","scope":{"level":9}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := Defaults()
		if s.read(text) != nil {
			return
		}
		dir := t.TempDir()
		must(t, s.Save(dir))
		again, Found, err := LastSettings(dir)
		must(t, err)
		want, err := s.absolute()
		must(t, err)
		if diff := cmp.Diff(want, again); !Found || diff != "" {
			t.Errorf("want -, got +\n%s", diff)
		}
	})
}
