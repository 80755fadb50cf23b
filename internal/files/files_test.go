package files_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tracediff/tracediff/internal/files"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// only fails unless a folder has the files of these names and no others.
func only(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if strings.Join(have, " ") != strings.Join(names, " ") {
		t.Errorf("the folder has %q, want %q", have, names)
	}
}

func TestReadHoldsToTheLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "12345")
	for _, read := range []func(limit int64) ([]byte, error){
		func(limit int64) ([]byte, error) { return files.Read(path, limit) },
		func(limit int64) ([]byte, error) {
			data, stream, err := files.ReadStream(path, limit)
			if stream {
				t.Error("a regular file is no stream")
			}
			return data, err
		},
		func(limit int64) ([]byte, error) { return files.ReadFS(os.DirFS(filepath.Dir(path)), "a", limit) },
	} {
		if data, err := read(5); err != nil || string(data) != "12345" {
			t.Errorf("5 bytes of 5: %q, %v", data, err)
		}
		if _, err := read(4); err == nil || !strings.Contains(err.Error(), "a is larger than 4 bytes") {
			t.Errorf("5 bytes of 4: %v", err)
		}
	}
}

func TestFoldersAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := files.Read(dir, 1)
	_, _, opened := files.Open(dir)
	_, _, streamed := files.ReadStream(dir, 1)
	_, inFS := files.ReadFS(fstest.MapFS{"a/b": {}}, "a", 1)
	for _, err := range []error{err, opened, streamed, inFS} {
		if err == nil || !strings.Contains(err.Error(), "is not a regular file, but a folder") {
			t.Errorf("a folder: %v", err)
		}
	}
	if _, err := files.Read(filepath.Join(dir, "a"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

// What fails in the middle leaves the old file and nothing beside it.
func TestReplaceIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, "old")
	failed := errors.New("no more room")
	err := files.Replace(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "ne"); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) || content(t, path) != "old" {
		t.Errorf("%v, and the file has %q", err, content(t, path))
	}
	only(t, dir, "a")
	if err := files.Write(path, []byte("new")); err != nil || content(t, path) != "new" {
		t.Errorf("%v, and the file has %q", err, content(t, path))
	}
	only(t, dir, "a")
	if err := files.Write(dir, nil); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder is replaced: %v", err)
	}
}

func TestTargetsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	for path, want := range map[string]string{
		"none/a": "has no folder", "file/a": "", ".": "is a folder",
	} {
		_, err := files.NewTarget(filepath.Join(dir, path))
		var own *files.Error
		if !errors.As(err, &own) || own.Next == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with a hint that says %q", path, err, want)
		}
	}
	only(t, dir, "file")
}

func TestTargetIsWhatItIsByAnyName(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a")
	write(t, a, "x")
	if err := os.Link(a, filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		target, path string
		want         bool
	}{
		{"a", "a", true},
		{"hard", "a", true},
		{"a", "hard", true},
		{"a", "b", false},
		{"b", "a", false},
		{"b", "b", true},
		{"b", "c", false},
		{"b", "none/b", false},
		{"b", "../" + filepath.Base(dir) + "/b", true},
	} {
		to, err := files.NewTarget(filepath.Join(dir, c.target))
		if err != nil {
			t.Fatal(err)
		}
		if got := to.Is(dir + "/" + c.path); got != c.want {
			t.Errorf("%s is %s: %v", c.target, c.path, got)
		}
		if name, ok := to.Below(dir); !ok || name != c.target {
			t.Errorf("%s below its folder: %q, %v", c.target, name, ok)
		}
		if _, ok := to.Below(filepath.Join(dir, "..", "elsewhere")); ok {
			t.Errorf("%s is below a folder that is not there", c.target)
		}
	}
}

func TestTargetIsWrittenAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, text := range []string{"one", "two"} { // new, and in place of another
		to, err := files.NewTarget(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Ready(); err != nil {
			t.Fatal(err)
		}
		if text == "one" {
			only(t, dir)
		}
		if err := errors.Join(to.Write([]byte(text)), to.Close()); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); !bytes.Equal([]byte(got), []byte(text)) {
			t.Errorf("%q, want %q", got, text)
		}
	}
	only(t, dir, "a")
}
