package checkpoint_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// aged writes a checkpoint of two files and makes them an hour old, so that nothing has to settle.
func aged(t *testing.T) string {
	t.Helper()
	dir := checkpointtest.Write(t, t.TempDir(), []byte("{}"), tensors(""), 2)
	old := time.Now().Add(-time.Hour)
	for _, f := range weightFiles(t, dir) {
		if err := os.Chtimes(f, old, old); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func weightFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	return files
}

// cached is the digest that is remembered of the files as they are now.
func cached(t *testing.T, d checkpoint.Digests, dir string) (string, bool) {
	t.Helper()
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return d.Cached(c, checkpoint.Whole)
}

func TestDigestsAreRemembered(t *testing.T) {
	t.Parallel()
	dir := aged(t)
	d := checkpoint.NewDigests(filepath.Join(t.TempDir(), "new", "digests.json"))
	if _, ok := cached(t, d, dir); ok {
		t.Fatal("a digest before anything was hashed")
	}
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var last, all int64
	sum, err := d.Compute(context.Background(), c, checkpoint.Whole, func(done, of int64) { last, all = done, of })
	if err != nil || sum != c.Digest() || last != c.Size() || all != c.Size() {
		t.Fatalf("%s after %d of %d bytes, %v; want %s after %d", sum, last, all, err, c.Digest(), c.Size())
	}
	if got, ok := cached(t, d, dir); !ok || got != sum {
		t.Errorf("remembered %q, %v", got, ok)
	}
	// The same files under another path are others.
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if got, ok := cached(t, d, moved); ok {
		t.Errorf("remembered %q of files that were moved", got)
	}
}

// A file that was written again is not the one that was hashed, also where its size and time say so.
func TestDigestsForgetWhatChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string, data []byte, when time.Time) error{
		"another time": func(path string, data []byte, when time.Time) error {
			return os.Chtimes(path, when, when.Add(time.Nanosecond))
		},
		"written in place, its time set back": func(path string, data []byte, when time.Time) error {
			data[len(data)-1] ^= 1
			return errors.Join(os.WriteFile(path, data, 0o666), os.Chtimes(path, when, when))
		},
		"replaced by a file of that size and time": func(path string, data []byte, when time.Time) error {
			data[len(data)-1] ^= 1
			return errors.Join(os.WriteFile(path+".new", data, 0o666), os.Chtimes(path+".new", when, when), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS != "linux" && name != "another time" {
				t.Skip("needs linux: elsewhere only size and time are looked at")
			}
			dir := aged(t)
			d := checkpoint.NewDigests(filepath.Join(t.TempDir(), "digests.json"))
			compute(t, d, dir)
			file := weightFiles(t, dir)[1]
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err == nil {
				err = change(file, data, info.ModTime())
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := cached(t, d, dir); ok {
				t.Errorf("still %s", got)
			}
		})
	}
}

func compute(t *testing.T, d checkpoint.Digests, dir string) string {
	t.Helper()
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sum, err := d.Compute(context.Background(), c, checkpoint.Whole, func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// A file that changes while it is hashed is an error, one that was only just written is given time, and a run that is
// interrupted ends.
func TestComputeOfFilesInMotion(t *testing.T) {
	t.Parallel()
	dir := aged(t)
	d := checkpoint.NewDigests(filepath.Join(t.TempDir(), "digests.json"))
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	touched := false
	_, err = d.Compute(context.Background(), c, checkpoint.Whole, func(int64, int64) {
		if !touched {
			touched = true
			now := time.Now()
			if err := os.Chtimes(weightFiles(t, dir)[0], now, now); err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil {
		t.Error("a file that was touched while it was hashed is taken")
	}

	started := time.Now() // before the file is there: however long writing it takes, it has to be two seconds old
	fresh := checkpointtest.Write(t, t.TempDir(), []byte("{}"), tensors(""), 2)
	compute(t, d, fresh)
	if took := time.Since(started); took < time.Second {
		t.Errorf("a file that was only just written is remembered after %s", took)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	again, err := checkpoint.Open(aged(t))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := d.Compute(ctx, again, checkpoint.Whole, func(int64, int64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// Whatever the file of digests holds, a digest that is taken from it is one.
func FuzzDigests(f *testing.F) {
	f.Add([]byte(`{"/a":{"size":1,"mtime_ns":2,"sha256":"00"}}`))
	f.Add([]byte(`[]`))
	dir := checkpointtest.Write(f, f.TempDir(), []byte("{}"), tensors(""), 1)
	c, err := checkpoint.Open(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close() })
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "digests.json")
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		if got, ok := checkpoint.NewDigests(path).Cached(c, checkpoint.Whole); ok {
			t.Errorf("%q", got)
		}
	})
}
