package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tracediff/tracediff/internal/safetensors"
)

// ErrLocked is the error of [Lock], and of [Create], while another run has the path.
var ErrLocked = errors.New("another run is writing it: wait for that run to end, or name another file")

// disk is the file system of a writer. Tests use a disk that fails in the middle of a write.
type disk interface {
	Create(path string) (file, error) // a new, empty file, in place of any old one
	Open(path string) (file, error)   // for reading and writing
	Rename(from, to string) error
	Remove(path string) error
}

// file is an open file of a disk.
type file interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Close() error
}

// osDisk is the file system of the operating system.
type osDisk struct{}

func (osDisk) Create(path string) (file, error) { return os.Create(path) }
func (osDisk) Open(path string) (file, error)   { return os.OpenFile(path, os.O_RDWR, 0) }
func (osDisk) Rename(from, to string) error     { return os.Rename(from, to) }
func (osDisk) Remove(path string) error         { return os.Remove(path) }

// part is an unfinished trace on disk: the file NAME.part. The file is made and replaced as a whole, so that no
// reader finds half a header.
type part struct {
	file
	disk   disk
	path   string
	header int64 // bytes reserved for the header
	used   int64 // bytes of the header that are text; the rest are spaces
	data   int64 // bytes of data after the header
}

// rebuild writes the file anew and replaces the old file: a header of size bytes that starts with the text of
// head, and the data of the old file. It closes both files for the rename, since some systems do not rename an
// open file; meanwhile the writer's lock keeps other runs away.
func (p *part) rebuild(size int64, head io.Reader) error {
	if size > safetensors.MaxHeader {
		return fmt.Errorf("a header of %d bytes: safetensors allows %d; capture less, or into several files", size, safetensors.MaxHeader)
	}
	fresh := p.path + ".new"
	used, err := p.write(fresh, size, head)
	if err != nil {
		_ = p.disk.Remove(fresh) // best effort: the next run overwrites it
		return err
	}
	if p.file != nil {
		_ = p.Close() // its content has been copied
	}
	err = p.disk.Rename(fresh, p.path)
	opened, openErr := p.disk.Open(p.path)
	p.file = opened
	if err = errors.Join(err, openErr); err != nil {
		return err
	}
	p.header, p.used = size, used
	return nil
}

// write makes the file at path for rebuild. It returns the number of bytes of head.
func (p *part) write(path string, size int64, head io.Reader) (used int64, err error) {
	f, err := p.disk.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	// Headers and data may be large: copy them through a small buffer.
	const chunk = 256 << 10
	buffer := make([]byte, chunk)
	out := io.NewOffsetWriter(f, 0)
	if _, err := out.Write(binary.LittleEndian.AppendUint64(nil, uint64(size))); err != nil {
		return 0, err
	}
	used, err = io.CopyBuffer(out, head, buffer)
	if err != nil {
		return 0, err
	}
	if _, err := io.CopyBuffer(out, io.LimitReader(blanks{}, size-used), buffer); err != nil {
		return 0, err
	}
	if p.data == 0 {
		return used, nil
	}
	n, err := io.CopyBuffer(out, io.NewSectionReader(p.file, 8+p.header, p.data), buffer)
	if err == nil && n < p.data {
		err = fmt.Errorf("copy %s to make room in its header: %d of %d bytes of data are there", p.path, n, p.data)
	}
	return used, err
}

// blanks reads as spaces without end.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// put writes data after the data of the trace, skipping the bytes that earlier calls have written. The trace does not have the bytes until
// [part.append].
func (p *part) put(data []byte, behind int64) error {
	if len(data) == 0 {
		return nil
	}
	_, err := p.WriteAt(data, 8+p.header+p.data+behind)
	return err
}

// append adds bytes that [part.put] has written to the trace: it writes their entry over the closing brace of the header.
func (p *part) append(bytes int64, entry []byte) error {
	// The entry has its own closing brace, and its first byte overwrites the old brace.
	grown := p.used + int64(len(entry)) - 1
	if grown > p.header {
		text := io.NewSectionReader(p.file, 8, p.used)
		// Twice as long: over a long run the copies stay in proportion to the bytes of the run.
		p.data += bytes // rebuild copies these bytes, too
		err := p.rebuild(roundUp(max(min(2*p.header, safetensors.MaxHeader), grown)), text)
		p.data -= bytes
		if err != nil {
			return err
		}
	}
	if _, err := p.WriteAt(entry, 8+p.used-1); err != nil {
		return err
	}
	p.used = grown
	p.data += bytes
	return nil
}

// setStatus overwrites the status and leaves everything else.
func (p *part) setStatus(s Status) error {
	_, err := p.WriteAt(s.slot(), 8+int64(len(statusStart)))
	return err
}

// roundUp returns the next multiple of 8: data at such an offset are aligned for readers that map the file.
func roundUp(n int64) int64 { return (n + 7) &^ 7 }
