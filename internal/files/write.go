package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Write writes a file, which appears whole or not at all and replaces a regular file. The folder has to exist.
func Write(path string, data []byte) error {
	return Replace(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replaceable is the error of a path at which something is that no file may take the place of: it is not a regular file.
func Replaceable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return &Error{Path: path, Why: "is " + Kind(info.Mode()) + ", and would be replaced", Next: "move it away, or name another place"}
	}
	return nil
}

// Replace is Write for content that write writes. What is not a regular file is not replaced.
func Replace(path string, write func(io.Writer) error) error {
	mode := fs.FileMode(0o666)
	if err := Replaceable(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := newPart(path, mode)
	if err != nil {
		return err
	}
	err = write(tmp)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// Link gives a file a second name, path, and makes it read-only: a write to one name would change the other. A file at path is replaced. The
// error is the system's, such as for two disks.
func Link(from, path string) error {
	if err := Replaceable(path); err != nil {
		return err
	}
	old, err := os.Stat(from)
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(old, there) {
		return nil
	}
	if err := os.Chmod(from, old.Mode().Perm()&^0o222); err != nil {
		return err
	}
	for {
		tmp := fmt.Sprintf("%s-%d.part", path, rand.Uint32())
		if err = os.Link(from, tmp); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err = os.Rename(tmp, path); err != nil {
			return errors.Join(err, os.Remove(tmp))
		}
		return nil
	}
}

// newPart creates a new file in the folder of path, with path's name, a number and the ending ".part".
func newPart(path string, mode fs.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(fmt.Sprintf("%s-%d.part", path, rand.Uint32()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if system := (*fs.PathError)(nil); errors.As(err, &system) {
			system.Path = path // a person knows no other name
		}
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// A Target is a place where a result goes at the end of a run, which is looked at before the run: what would keep the
// result from being written is then known in time.
type Target struct {
	Path    string      // as it was named
	real    string      // without links, for a regular file
	info    fs.FileInfo // nil for what is not there yet
	through *os.File    // of what is not a regular file: opened by Ready
}

// NewTarget looks at a path and opens nothing. A folder, a disk, a socket, a link to nothing and a path in a folder that
// is not there are refused.
func NewTarget(path string) (*Target, error) {
	t := &Target{Path: path, real: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, t.canBeMade(err)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, &Error{Path: path, Why: "is below a file, which is not a folder", Next: "check the path", Err: err}
	}
	if err != nil {
		return nil, err
	}
	t.info = info
	switch m := info.Mode(); {
	case m.IsRegular():
		t.real, err = filepath.EvalSymlinks(path)
		return t, err
	case m.IsDir():
		return nil, &Error{Path: path, Why: "is a folder", Next: "name a file in it"}
	case m&(fs.ModeNamedPipe|fs.ModeCharDevice) == 0:
		return nil, &Error{Path: path, Why: "is " + Kind(m), Next: "name a file, a pipe or a device such as /dev/null"}
	}
	return t, nil
}

// canBeMade says why no file can be made at a path at which none is.
func (t *Target) canBeMade(err error) error {
	if _, linked := os.Lstat(t.Path); linked == nil {
		return &Error{Path: t.Path, Why: "is a link to a missing file", Next: "name the file itself", Err: err}
	}
	folder := filepath.Dir(t.Path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return &Error{Path: t.Path, Why: "has no folder: " + folder + " is not there", Next: "make the folder first: tracediff does not make it", Err: err}
	}
	if t.Path[len(t.Path)-1] == filepath.Separator {
		return &Error{Path: t.Path, Why: "is the name of a folder", Next: "name a file in it"}
	}
	return nil
}

// Replaces reports whether a regular file is written, new or over an existing file. It is false for a device or a pipe, which is written
// through.
func (t *Target) Replaces() bool { return t.info == nil || t.info.Mode().IsRegular() }

// Is reports whether the target is the file at a path, by whatever name or link, or will be once it is there.
func (t *Target) Is(path string) bool {
	info, err := os.Stat(path)
	if err == nil {
		return t.info != nil && os.SameFile(t.info, info)
	}
	if t.info != nil || filepath.Base(path) != filepath.Base(t.Path) {
		return false
	}
	mine, err := os.Stat(filepath.Dir(t.Path))
	if err != nil {
		return false
	}
	other, err := os.Stat(filepath.Dir(path))
	return err == nil && os.SameFile(mine, other)
}

// IsFile reports whether the target is a file that is open.
func (t *Target) IsFile(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && t.info != nil && os.SameFile(t.info, info)
}

// Below returns the target's path from a folder, with slashes; false where it is not in it.
func (t *Target) Below(folder string) (string, bool) {
	at, err := filepath.EvalSymlinks(filepath.Dir(t.real))
	if err != nil {
		return "", false
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return "", false
	}
	if at, err = filepath.Abs(at); err != nil {
		return "", false
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", false
	}
	rel, err := filepath.Rel(folder, filepath.Join(at, filepath.Base(t.real)))
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// Ready makes sure that the target can be written: a file can be created next to a regular target, and an existing target can be opened. A
// device or a pipe is opened and stays open until Close; a pipe has [Patience] to find a reader.
func (t *Target) Ready() error {
	if !t.Replaces() {
		return t.open()
	}
	if t.info != nil { // one that is protected from being written is not replaced either
		f, err := os.OpenFile(t.real, os.O_WRONLY|nonblock, 0)
		if err != nil {
			return err
		}
		f.Close()
	}
	f, err := newPart(t.real, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (t *Target) open() (err error) {
	for end := time.Now().Add(Patience); ; time.Sleep(5 * time.Millisecond) {
		t.through, err = os.OpenFile(t.Path, os.O_WRONLY|nonblock, 0)
		if t.info.Mode()&fs.ModeNamedPipe == 0 || !noReader(err) {
			return err
		}
		if time.Now().After(end) {
			return &Error{Path: t.Path, Why: fmt.Sprintf("is a pipe that was not opened for reading within %v", Patience), Next: "start what reads from it first", Err: err}
		}
	}
}

// stalled is how long a reader of a pipe may take nothing: it may be a person who reads page by page, but not for ever.
const stalled = time.Minute

// Write writes the result. What is not a regular file has to be [Target.Ready].
func (t *Target) Write(data []byte) error {
	if t.Replaces() {
		return Write(t.real, data)
	}
	const piece = 32 << 10
	for len(data) > 0 {
		_ = t.through.SetWriteDeadline(time.Now().Add(stalled)) // a device has none and does not wait
		n, err := t.through.Write(data[:min(piece, len(data))])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return &Error{Path: t.Path, Why: fmt.Sprintf("has a reader that took nothing for %v", stalled), Next: "let its reader read to the end", Err: err}
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Close closes what Ready has opened: a reader at the other end sees the end.
func (t *Target) Close() error {
	if t.through == nil {
		return nil
	}
	f := t.through
	t.through = nil
	return f.Close()
}

// WriteWhole makes the folder of a small file and writes the file in one step: the file never appears in part.
func WriteWhole(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return Write(path, data)
}

// Copy copies a file, which appears whole or not at all.
func Copy(from, to string) error {
	in, _, err := Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return Replace(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
