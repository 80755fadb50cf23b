package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/tracediff/tracediff/internal/files"
)

// maxSpool bounds what is unpacked of one file, in bytes.
const maxSpool = 64 << 30

// Spool is a temporary file for what can only be read from its start on, such as a compressed member. Each part is written when it
// is first read. The zero value is ready; several goroutines may read from it.
type Spool struct {
	mu   sync.Mutex
	file *os.File
	end  int64
}

// Add returns a part of size bytes, which open reads from the start. A part of another length is an error on reading; so is what Close of the
// reader reports, or what the reader returns after the last byte.
func (s *Spool) Add(size int64, open func() (io.ReadCloser, error)) io.ReaderAt {
	return &part{spool: s, size: size, open: open}
}

// Close removes the temporary file.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if rm := os.Remove(s.file.Name()); err == nil && !errors.Is(rm, os.ErrNotExist) {
		err = rm
	}
	s.file = nil
	return err
}

type part struct {
	spool *Spool
	size  int64
	open  func() (io.ReadCloser, error)
	once  sync.Once
	at    int64
	err   error
}

func (p *part) ReadAt(b []byte, off int64) (int, error) {
	p.once.Do(func() { p.at, p.err = p.spool.write(p.size, p.open) })
	if p.err != nil {
		return 0, p.err
	}
	return io.NewSectionReader(p.spool.file, p.at, p.size).ReadAt(b, off)
}

// write unpacks one part to the end of the file.
func (s *Spool) write(size int64, open func() (io.ReadCloser, error)) (at int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > maxSpool-s.end {
		return 0, fmt.Errorf("unpacking takes more than %d GiB of disk", maxSpool>>30)
	}
	if s.file == nil {
		if s.file, err = files.CreateTemp("tracediff-*.tmp"); err != nil {
			return 0, err
		}
		// Where the system lets an open file go without a name, nothing is left over whatever happens.
		_ = os.Remove(s.file.Name())
	}
	r, err := open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	at = s.end
	n, err := io.Copy(io.NewOffsetWriter(s.file, at), io.LimitReader(r, size+1))
	s.end += n
	if system := (*fs.PathError)(nil); errors.As(err, &system) && system.Path == s.file.Name() { // it cannot be written
		err = files.Temporary(err)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("unpacking: %w", err)
	case n != size:
		return 0, fmt.Errorf("unpacking: more or less than the %d bytes that it claims", size)
	}
	return at, nil
}
