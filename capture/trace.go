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
	"github.com/tracediff/tracediff/internal/plain"
)

// MaxRead is the largest tensor that [Trace.Read] reads whole, in bytes. A file with holes can claim more than any
// machine has memory; larger tensors are read in chunks, by [Trace.ReadAt].
const MaxRead = 4 << 30

// A Trace is an open trace, or any other safetensors file. Only the header is in memory. Several goroutines may
// read from a trace at a time.
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
	lacks    string // why the status is not known; empty if the file has a valid status
	read     atomic.Int64
}

// Record is one tensor of a trace, without its data.
type Record struct {
	Key    string
	Name   string // the key without pass and firing; the whole key in a file of another writer
	Pass   int
	Firing int // how often the name had been fired in this pass before
	DType  hooks.DType
	Shape  []int // empty for a scalar
	Size   int64 // bytes of data

	LastRow bool     // only the row of the last token of the pass is there; the order has every row
	Printed *Printed // the elements of a text that were printed; nil for a tensor that was not read from a text
	InOrder bool     // the keys were put into the order of their positions
	LeftOff *LeftOff // the cells of keys that were left off, or nil

	offset int64       // of the data, from the start of the file
	data   io.ReaderAt // of an assembled trace, whose tensors have no common file; else nil
	terms  []io.ReaderAt
}

// firing is the key of a record in the index.
type firing struct {
	pass int
	name string
	n    int
}

// Open opens the trace at path. It reads and checks the whole header, so that every record can be read unless the
// file changes. The error names the defect of a file. [Trace.Notes] lists the parts of an unfinished trace that
// were left out.
func Open(path string) (*Trace, error) { return openPath(path, false) }

// Look is Open for a file that nothing is compared with. In a file of another writer, tensors of an unknown dtype, such
// as complex numbers, are left out and named in [Trace.Notes]. Open refuses such a file, since a comparison would miss
// these tensors.
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

// openFile takes the size from the open file: during a run, path may already name a newer file.
func openFile(path string, f *os.File, look bool) (*Trace, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	return openReader(&Trace{path: path, file: f, closer: f, size: info.Size()}, look)
}

// OpenReader is Open for a trace of size bytes in r. name stands in errors and is the trace's Path.
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

// Close closes the file, if Open opened the file. Records stay valid, but their data can no longer be read.
func (t *Trace) Close() error {
	if t.closer == nil {
		return nil
	}
	return t.closer.Close()
}

// Path returns the name that the trace was opened by.
func (t *Trace) Path() string { return t.path }

// Manifest returns the description of the run. In a file of another writer the manifest is the zero value.
func (t *Trace) Manifest() Manifest { return t.manifest }

// Status returns how far the writer came; empty in a file of another writer.
func (t *Trace) Status() Status { return t.manifest.Status }

// Unfinished says in words why the run may not have come to its end. It is empty for a complete trace, and for a file of
// another writer, which has no status.
func (t *Trace) Unfinished() string {
	switch {
	case t.lacks != "":
		return t.lacks
	case t.manifest.Status.unfinished():
		return fmt.Sprintf("its status is %q", t.manifest.Status)
	}
	return ""
}

// Sequence reports whether Records are in the order of execution, as the file promises. If false, the order has no
// meaning.
func (t *Trace) Sequence() bool { return t.sequence }

// Notes returns what a reader of the file has to know, a line each: the parts that were left out and why, and
// names and shapes that were read in another way.
func (t *Trace) Notes() []string { return t.notes }

// Unread returns the dtypes of the tensors that [Look] has left out, one for each tensor.
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
		return hooks.Tensor{}, fmt.Errorf("trace %s: tensor %s has %d bytes, more than the %d that are read at once", t.path, plain.Quote(r.Key), r.Size, int64(MaxRead))
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
// error, which is io.EOF at the end of the tensor. For a file that has become shorter since Open, the error wraps
// io.ErrUnexpectedEOF.
func (t *Trace) ReadAt(r Record, p []byte, off int64) (int, error) {
	if err := r.in(t); err != nil {
		return 0, err
	}
	if off < 0 || off > r.Size {
		return 0, fmt.Errorf("trace %s: tensor %s: offset %d of %d bytes", t.path, plain.Quote(r.Key), off, r.Size)
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
	return n, fmt.Errorf("trace %s: read tensor %s: %w", t.path, plain.Quote(r.Key), err)
}

// BytesRead is the number of bytes read from tensors since the trace was opened; a byte that is read twice counts twice. Other
// goroutines may read at the same time.
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
	return fmt.Errorf("trace %s: no record of it: %s", t.path, plain.Quote(r.Key))
}
