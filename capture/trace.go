package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/files"
)

// MaxRead is the largest tensor that [Trace.Read] reads whole, in bytes. A file with holes can claim more than any
// machine has memory; larger tensors are read in chunks, by [Trace.ReadAt].
const MaxRead = 4 << 30

// A Trace is an open trace, or any other safetensors file. Only its header is in memory. Several goroutines may
// read from it at a time.
type Trace struct {
	path     string
	file     io.ReaderAt
	closer   io.Closer // nil if the caller brought the reader
	size     int64     // of the file, when it was opened
	manifest Manifest
	sequence bool
	records  []Record
	index    map[firing]int
	notes    []string
	unread   []string
	lacks    string // what is wrong with the status, if it is not what the file says
	read     atomic.Int64
}

// Record is one tensor of a trace, without its data. It has many fields: the name in its parts, the type, and where the data lie.
type Record struct {
	Key    string
	Name   string // the key without pass and firing; all of it in a file of another writer
	Pass   int
	Firing int // how often the name had been fired in this pass before
	DType  hooks.DType
	Shape  []int // empty for a scalar
	Size   int64 // bytes of data

	LastRow bool     // it has the row of its pass's last token alone, where the order has all
	Printed *Printed // it is read from a text that has not all of it; else nil
	InOrder bool     // its keys were put into the order of their positions
	LeftOff *LeftOff // the cells of keys that were left off, or nil

	offset int64       // of the data, from the start of the file
	data   io.ReaderAt // of an assembled trace, which is no one file; else nil
	terms  []io.ReaderAt
}

// firing is what a record is found by.
type firing struct {
	pass int
	name string
	n    int
}

// Open opens the trace at path. It reads the header and checks all of it, so that every record can be read
// unless the file changes. What is wrong with a file is in the error; what was left out of an unfinished one is in
// [Trace.Notes].
func Open(path string) (*Trace, error) { return openPath(path, false) }

// Look is Open for a file that is to be looked into and nothing else. Tensors of a dtype that nothing here reads, such as
// complex numbers, are left out of a file of another writer and named in [Trace.Notes]; Open refuses the file, since
// what is left out would be compared with nothing.
func Look(path string) (*Trace, error) { return openPath(path, true) }

func openPath(path string, look bool) (*Trace, error) {
	f, _, err := files.Open(path)
	if err != nil {
		if _, unfinished := os.Stat(path + Suffix); unfinished == nil && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open trace: %w; there is an unfinished one, %s", err, path+Suffix)
		}
		return nil, fmt.Errorf("open trace: %w", err)
	}
	t, err := openFile(path, f, look)
	if err != nil {
		f.Close()
	}
	return t, err
}

// openFile reads the size from the open file: a trace that is being written may be another file by now than the one
// that was at path before.
func openFile(path string, f *os.File, look bool) (*Trace, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	return openReader(&Trace{path: path, file: f, closer: f, size: info.Size()}, look)
}

// OpenReader is Open for a trace of size bytes in r. The name stands in errors and is the trace's Path.
func OpenReader(name string, r io.ReaderAt, size int64) (*Trace, error) {
	return openReader(&Trace{path: name, file: r, size: size}, false)
}

func openReader(t *Trace, look bool) (*Trace, error) {
	o := opening{Trace: t, look: look}
	if err := o.open(); err != nil {
		return nil, fmt.Errorf("trace %s: %w", t.path, err)
	}
	return t, nil
}

// Close closes the file, if Open opened it. Records stay valid, reading them does not.
func (t *Trace) Close() error {
	if t.closer == nil {
		return nil
	}
	return t.closer.Close()
}

// Path returns the name that the trace was opened by.
func (t *Trace) Path() string { return t.path }

// Manifest returns what the file says about the run. In a file of another writer it is the zero value.
func (t *Trace) Manifest() Manifest { return t.manifest }

// Status returns how far the writer came; empty in a file of another writer.
func (t *Trace) Status() Status { return t.manifest.Status }

// Unfinished says in words why the run may not have come to its end; empty for a complete trace, and for a file of another
// writer, which does not say.
func (t *Trace) Unfinished() string {
	switch {
	case t.lacks != "":
		return t.lacks
	case t.manifest.Status.unfinished():
		return fmt.Sprintf("its status is %q", t.manifest.Status)
	}
	return ""
}

// Sequence reports whether Records are in the order of execution, as the file promises. Without the promise the
// order means nothing.
func (t *Trace) Sequence() bool { return t.sequence }

// Notes returns what was left out of an unfinished trace and why, a line each.
func (t *Trace) Notes() []string { return t.notes }

// Unread returns the dtypes of the tensors that [Look] has left out, one each.
func (t *Trace) Unread() []string { return t.unread }

// Records returns all tensors in the order of their data in the file. The slice is the trace's own.
func (t *Trace) Records() []Record { return t.records }

// Lookup returns the first firing of name in a pass.
func (t *Trace) Lookup(pass int, name string) (Record, bool) {
	return t.LookupFiring(pass, name, 0)
}

// LookupFiring returns the n-th firing of name in a pass, counted from 0.
func (t *Trace) LookupFiring(pass int, name string, n int) (Record, bool) {
	i, ok := t.index[firing{pass, name, n}]
	if !ok {
		return Record{}, false
	}
	return t.records[i], true
}

// Read reads a whole tensor of at most [MaxRead] bytes into new memory.
func (t *Trace) Read(r Record) (hooks.Tensor, error) {
	if r.Size > MaxRead {
		return hooks.Tensor{}, fmt.Errorf("trace %s: tensor %s has %d bytes, more than the %d that are read at once", t.path, quote(r.Key), r.Size, int64(MaxRead))
	}
	if err := r.in(t); err != nil {
		return hooks.Tensor{}, err
	}
	data := make([]byte, r.Size)
	if _, err := t.ReadAt(r, data, 0); err != nil {
		return hooks.Tensor{}, err
	}
	return hooks.Tensor{DType: r.DType, Shape: r.Shape, Data: data}, nil
}

// ReadAt reads bytes of a tensor's data from offset off, as [io.ReaderAt] does: fewer than len(p) only with an
// error, which is io.EOF at the end of the tensor. A file that has become shorter since it was opened is an error
// that wraps io.ErrUnexpectedEOF.
func (t *Trace) ReadAt(r Record, p []byte, off int64) (int, error) {
	if err := r.in(t); err != nil {
		return 0, err
	}
	if off < 0 || off > r.Size {
		return 0, fmt.Errorf("trace %s: tensor %s: offset %d of %d bytes", t.path, quote(r.Key), off, r.Size)
	}
	var end error
	if rest := r.Size - off; int64(len(p)) > rest {
		p, end = p[:rest], io.EOF
	}
	if r.data != nil {
		n, err := r.readSource(t.path, p, off)
		if err == nil {
			err = end
		}
		return n, err
	}
	n, err := t.file.ReadAt(p, r.offset+off)
	t.read.Add(int64(n))
	if n == len(p) {
		return n, end
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("the file has become shorter since it was opened: %w", io.ErrUnexpectedEOF)
	}
	return n, fmt.Errorf("trace %s: read tensor %s: %w", t.path, quote(r.Key), err)
}

// BytesRead is how much of the tensors has been read since the trace was opened, every time that it was. It may be asked for while
// others read.
func (t *Trace) BytesRead() int64 { return t.read.Load() }

// in returns an error unless the record belongs to t: a record with data has the name and size of a record of t, and a record without data
// lies within the file of t.
func (r Record) in(t *Trace) error {
	if r.data != nil {
		if own, ok := t.LookupFiring(r.Pass, r.Name, r.Firing); ok && own.Size == r.Size {
			return nil
		}
	} else if t.file != nil && r.Size >= 0 && r.offset >= 8 && r.Size <= t.size-r.offset {
		return nil
	}
	return fmt.Errorf("trace %s: no record of it: %s", t.path, quote(r.Key))
}
