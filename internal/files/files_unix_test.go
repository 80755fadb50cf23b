//go:build unix

package files_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/files"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// muchLater is longer than anything here takes on a busy machine. What waits without an end takes longer.
const muchLater = files.Patience + time.Minute

func TestReadingAPipeThatNobodyWritesToEnds(t *testing.T) {
	t.Parallel()
	path, started := fifo(t), time.Now()
	for name, err := range map[string]error{
		"Read": second(files.Read(path, 1)), "ReadFS": second(files.ReadFS(os.DirFS(filepath.Dir(path)), "fifo", 1)),
	} {
		if err == nil || !strings.Contains(err.Error(), "not a regular file, but a pipe") {
			t.Errorf("%s after %v: %v", name, time.Since(started), err)
		}
	}
	_, stream, err := files.ReadStream(path, 1)
	if took := time.Since(started); !stream || err == nil || took > muchLater || took < files.Patience/2 {
		t.Errorf("stream %v after %v: %v", stream, took, err)
	}
	started = time.Now()
	_, stream, err = files.ReadSoon(path, 1)
	if took := time.Since(started); !stream || err == nil || !strings.Contains(err.Error(), "nobody has opened for writing") || took > muchLater {
		t.Errorf("stream %v after %v: %v", stream, took, err)
	}
}

func second(_ []byte, err error) error { return err }

// A writer may come late and take its time between what it writes.
func TestReadStreamReadsToTheEnd(t *testing.T) {
	t.Parallel()
	path := fifo(t)
	go func() {
		time.Sleep(50 * time.Millisecond)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for range 3 {
			io.WriteString(f, "layer\n")
			time.Sleep(50 * time.Millisecond)
		}
	}()
	data, stream, err := files.ReadStream(path, 100)
	if err != nil || !stream || string(data) != "layer\nlayer\nlayer\n" {
		t.Errorf("%q, stream %v, %v", data, stream, err)
	}
}

// A writer that writes on without an end, and one that writes something and then nothing.
func TestReadStreamHasLimits(t *testing.T) {
	t.Parallel()
	if _, _, err := files.ReadStream("/dev/zero", 1<<20); err == nil || !strings.Contains(err.Error(), "is not a regular file, but a device") {
		t.Errorf("/dev/zero: %v", err)
	}
	path := fifo(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	io.WriteString(f, "layer\n")
	if _, _, err := files.ReadStream(path, 100); err == nil || !strings.Contains(err.Error(), "did not end within") {
		t.Errorf("a writer that stays: %v", err)
	}
}

func TestTargetIsWrittenThrough(t *testing.T) {
	t.Parallel()
	path, long := fifo(t), strings.Repeat("0123456789", 20_000) // more than a pipe holds
	read := make(chan string)
	go func() {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		read <- string(data)
	}()
	to, err := files.NewTarget(path)
	if err == nil {
		err = to.Ready()
	}
	if err == nil {
		err = errors.Join(to.Write([]byte(long)), to.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != long {
		t.Errorf("%d bytes were read of %d", len(got), len(long))
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is replaced: %v, %v", info, err)
	}
}

func TestTargetDevices(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]error{"/dev/null": nil, "/dev/full": syscall.ENOSPC} {
		if _, err := os.Stat(path); err != nil {
			t.Logf("not tested: %v", err) // /dev/full is of Linux
			continue
		}
		link := filepath.Join(t.TempDir(), "device") // what replaces instead of writing takes the link and not the device
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		to, err := files.NewTarget(link)
		if err == nil {
			err = to.Ready()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Write([]byte("x")); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		to.Close()
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is replaced: %v, %v", path, info, err)
		}
	}
}

func TestTargetWaitsForAReaderOnlySoLong(t *testing.T) {
	t.Parallel()
	started := time.Now()
	to, err := files.NewTarget(fifo(t))
	if err == nil {
		err = to.Ready()
	}
	if took := time.Since(started); err == nil || !strings.Contains(err.Error(), "was not opened for reading") || took > muchLater {
		t.Errorf("after %v: %v", took, err)
	}
}

func TestLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "old")
	for from, to := range map[string]string{"link": "file", "loose": "gone"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	to, err := files.NewTarget(filepath.Join(dir, "link"))
	if err == nil {
		err = to.Write([]byte("new"))
	}
	if err != nil || content(t, filepath.Join(dir, "file")) != "new" {
		t.Errorf("%v: the file behind the link has %q", err, content(t, filepath.Join(dir, "file")))
	}
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is replaced: %v", err)
	}
	if _, err := files.NewTarget(filepath.Join(dir, "loose")); err == nil || !strings.Contains(err.Error(), "a link to a missing file") {
		t.Errorf("a link to nothing: %v", err)
	}
}
