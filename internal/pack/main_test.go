package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// folder makes the files of an archive, in an order and at a time of its own.
func folder(t *testing.T, names []string, at time.Time) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tracediff-v1")
	for _, name := range names {
		path := filepath.Join(root, name)
		mode := os.FileMode(0o640)
		if name == "tracediff" {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("what "+name+" has\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Two archives of the same files are the same, wherever, when and in which order the files were made, and have them all.
func TestPackedTwiceIsTheSame(t *testing.T) {
	names := []string{"LICENSE", "completions/tracediff.bash", "man/tracediff.1", "tracediff"}
	date := time.Unix(1750000000, 0).UTC()
	for _, kind := range []string{".tar.gz", ".zip"} {
		var both [2][]byte
		for i := range both {
			order := slices.Clone(names)
			if i == 1 {
				slices.Reverse(order)
			}
			path := filepath.Join(t.TempDir(), "a"+kind)
			if err := pack(path, folder(t, order, time.Unix(int64(1e9*(i+1)), 0)), date); err != nil {
				t.Fatal(err)
			}
			var err error
			if both[i], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(both[0], both[1]) {
			t.Errorf("%s: two archives differ", kind)
		}
		list := listed
		if kind == ".zip" {
			list = zipped
		}
		var want []string
		for _, name := range names {
			mode := "-rw-r--r-- "
			if name == "tracediff" {
				mode = "-rwxr-xr-x "
			}
			want = append(want, mode+"2025-06-15T15:06:40Z tracediff-v1/"+name+": what "+name+" has\n")
		}
		if got := list(t, both[0]); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", kind, got, want)
		}
	}
}

func listed(t *testing.T, data []byte) (all []string) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Fatal(err, h)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h.FileInfo().Mode().String()+" "+h.ModTime.UTC().Format(time.RFC3339)+" "+h.Name+": "+string(text))
	}
}

func zipped(t *testing.T, data []byte) (all []string) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f.Mode().String()+" "+f.Modified.UTC().Format(time.RFC3339)+" "+f.Name+": "+string(text))
	}
	return all
}

// What is no archive that is known, and what is no file, is refused.
func TestPackRefuses(t *testing.T) {
	root := folder(t, []string{"a"}, time.Unix(0, 0))
	if err := pack(filepath.Join(t.TempDir(), "a.rar"), root, time.Unix(0, 0)); err == nil {
		t.Error("a.rar is written")
	}
	if err := os.Symlink("a", filepath.Join(root, "b")); err != nil {
		t.Skip("needs links: ", err)
	}
	if err := os.Symlink("/", filepath.Join(root, "c")); err != nil {
		t.Fatal(err)
	}
	if err := pack(filepath.Join(t.TempDir(), "a.zip"), root, time.Unix(0, 0)); err == nil {
		t.Error("a link to a folder is written as a file")
	}
}
