package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A reference is on disk once: the trace beside the local one is the stored trace under another name. Its noise floor is found by each of these names, wherever the
// command runs, by a symbolic link to them, and for a copy beside them.
func TestAStoredReferenceHasItsFloorByEveryName(t *testing.T) {
	t.Setenv("CI", "")
	dir := filepath.Join(t.TempDir(), "d")
	var out bytes.Buffer
	if status := run([]string{"tracediff", "capture", "--dir", dir, "--tokens", "2,3", "--reference", "go", "--quiet"}, nil, &out, &out); status != exitMatch {
		t.Fatalf("exit status %d:\n%s", status, out.String())
	}
	only := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if must(t, err); len(found) != 1 {
			t.Fatalf("%s: %q", pattern, found)
		}
		return found[0]
	}
	stored, beside := only("references/*.safetensors"), filepath.Join(dir, "reference.safetensors")
	one, err := os.Stat(stored)
	must(t, err)
	other, err := os.Stat(beside)
	must(t, err)
	if !os.SameFile(one, other) || one.Mode().Perm()&0o222 != 0 {
		t.Errorf("%s and %s: one file %v, mode %v; want one file that is read-only", stored, beside, os.SameFile(one, other), one.Mode())
	}
	local, elsewhere, copied := filepath.Join(t.TempDir(), "mine.safetensors"), filepath.Join(t.TempDir(), "elsewhere.safetensors"), filepath.Join(dir, "copied.safetensors")
	for to, from := range map[string]string{local: filepath.Join(dir, "local.safetensors"), elsewhere: stored, copied: stored} {
		data, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(to, data, 0o666))
	}
	const broken = "there is no noise floor"
	must(t, os.WriteFile(only("references/*.floor.json"), []byte("broken"), 0o666))
	links := t.TempDir()
	link := filepath.Join(links, "link.safetensors")
	type named struct {
		folder, name string // where the command runs; empty: where the test does
		stored       bool
	}
	names := []named{{"", stored, true}, {"", beside, true}, {"", copied, true}, {"", elsewhere, false}, {dir, "reference.safetensors", true}, {filepath.Dir(stored), filepath.Base(stored), true}}
	if err := os.Symlink(beside, link); err == nil { // Windows may forbid it
		names = append(names, named{links, filepath.Base(link), true})
	}
	for _, c := range names {
		if c.folder != "" {
			t.Chdir(c.folder)
		}
		var out bytes.Buffer
		if status := run([]string{"tracediff", "compare", local, c.name}, nil, &out, &out); status != exitMatch {
			t.Errorf("%s: exit status %d:\n%s", c.name, status, out.String())
		}
		if looked := strings.Contains(out.String(), broken); looked != c.stored {
			t.Errorf("%s in %s: its stored floor was looked at: %v, want %v:\n%s", c.name, c.folder, looked, c.stored, out.String())
		}
	}
}
