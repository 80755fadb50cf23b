// Package files opens what a person names, and never waits for it.
//
// A path can name anything: a file, a folder, a pipe that nobody writes to, a device without an end. Three rules hold for
// all of them. A file with random access has to be a regular file, or is refused before it is opened. A small file that is read once may be a
// stream of a limited size that ends within [Patience]. A regular file that is written appears whole or not at all; a device or a pipe is
// written through, and never replaced.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Patience is how long a stream may take to end, and a pipe to be opened by somebody at its other end.
const Patience = 3 * time.Second

// maxStream bounds what is read of a stream, which is held in memory: a larger file has to be named as a file.
const maxStream = 128 << 20

// soon is how long [ReadSoon] waits for somebody to open the other end of a pipe.
const soon = 700 * time.Millisecond

// Error is a file that cannot be used as it is wanted.
type Error struct {
	Path string
	Why  string // in words, after the path
	Next string // what a person can do about it; empty where only the caller knows
	Err  error  // the cause; nil for none
}

// Error names the path and says what is wrong with it.
func (e *Error) Error() string { return e.Path + " " + e.Why }

// Hint is the next step; empty where only the caller knows one.
func (e *Error) Hint() string { return e.Next }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Kind says in words what a mode stands for.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a regular file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeCharDevice != 0:
		return "a device"
	case m&fs.ModeDevice != 0:
		return "a disk"
	}
	return "something else"
}

// Irregular is the error for a path that has to be a regular file and is not.
func Irregular(path string, m fs.FileMode) error {
	e := &Error{Path: path, Why: "is not a regular file, but " + Kind(m)}
	if !m.IsDir() {
		e.Next = "it is read at several places, or more than once: write it to a regular file first, and name that file"
	}
	return e
}

// Open opens a regular file for reading. Anything else is refused without being opened. Reading a file without a size ends within [Patience], if need be by
// [os.ErrDeadlineExceeded].
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, Irregular(path, info.Mode())
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0) // a pipe that has taken its place would wait for its other end
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = Irregular(path, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	if info.Size() == 0 { // files of the kernel have no size, and reading /proc/kmsg never ends
		_ = f.SetReadDeadline(time.Now().Add(Patience)) // a file on a disk takes no deadline and needs none
	}
	return f, info, nil
}

// Read reads a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, _, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := limited(path, f, limit)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &Error{Path: path, Why: fmt.Sprintf("did not end within %v", Patience), Next: nextStream, Err: err}
	}
	return data, err
}

// ReadFS reads a regular file of a folder, of at most limit bytes, whatever its entry in the folder claims.
func ReadFS(fsys fs.FS, name string, limit int64) ([]byte, error) {
	switch info, err := fs.Stat(fsys, name); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, Irregular(name, info.Mode())
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return limited(name, f, limit)
}

// CheckFS returns the error of [ReadFS] for a directory, a pipe, a device or a file that is too large, without reading. A missing file is no error.
func CheckFS(fsys fs.FS, name string, limit int64) error {
	switch info, err := fs.Stat(fsys, name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return Irregular(name, info.Mode())
	case info.Size() > limit:
		return tooLarge(name, limit)
	}
	return nil
}

func tooLarge(path string, limit int64) error {
	return &Error{Path: path, Why: "is larger than " + size(limit)}
}

func limited(path string, r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(path, limit)
	}
	return data, err
}

// size is a limit in words.
func size(n int64) string {
	if n > 0 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// ReadStream reads a regular file of at most limit bytes, or a stream, such as a pipe or what a shell makes of <(command), of at most 128 MiB.
// A stream can be read once, and has to end within [Patience]; stream reports that it was one.
func ReadStream(path string, limit int64) (data []byte, stream bool, err error) {
	return readStream(path, limit, Patience)
}

// ReadSoon is ReadStream for a pipe with a writer, such as <(command): a pipe without a writer is refused after 0.7 s.
func ReadSoon(path string, limit int64) (data []byte, stream bool, err error) {
	return readStream(path, limit, soon)
}

func readStream(path string, limit int64, opening time.Duration) (data []byte, stream bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	switch m := info.Mode(); {
	case m.IsRegular():
		data, err = Read(path, limit)
		return data, false, err
	case m&fs.ModeNamedPipe == 0 && path != os.DevNull:
		return nil, false, Irregular(path, m)
	}
	limit = min(limit, maxStream)
	start := time.Now()
	end := start.Add(Patience)
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, true, err
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	_ = f.SetReadDeadline(end) // without a deadline the process ends before the reader
	go func() {
		defer f.Close()
		data, err := limited(path, &late{f: f, opened: start.Add(opening)}, limit)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		if errors.Is(r.err, errUnopened) {
			return nil, true, &Error{Path: path, Why: fmt.Sprintf("is a pipe that nobody has opened for writing within %v", opening), Next: nextStream, Err: os.ErrDeadlineExceeded}
		}
		if !errors.Is(r.err, os.ErrDeadlineExceeded) {
			return r.data, true, r.err
		}
	case <-time.After(time.Until(end) + 100*time.Millisecond):
	}
	return nil, true, &Error{
		Path: path, Why: fmt.Sprintf("is %s that did not end within %v", Kind(info.Mode()), Patience),
		Next: nextStream, Err: os.ErrDeadlineExceeded,
	}
}

const nextStream = "start what writes to it first, or write it to a file and name that"

// errUnopened is that of a pipe without a writer.
var errUnopened = errors.New("nobody writes to it")

// late reads from a pipe that was opened without waiting for a writer. Until a writer opens the pipe, an end of file is not the end.
type late struct {
	f      *os.File
	opened time.Time // when somebody has to have opened its other end
	begun  bool
}

func (l *late) Read(p []byte) (int, error) {
	for {
		n, err := l.f.Read(p)
		l.begun = l.begun || n > 0
		if n > 0 || l.begun || !errors.Is(err, io.EOF) || !isPipe(l.f) {
			return n, err
		}
		if time.Now().After(l.opened) {
			return 0, errUnopened
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}
