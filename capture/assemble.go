package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
)

// Source is a tensor of a file that is no trace: what it is called, and where its elements are read, row-major and little-endian.
type Source struct {
	Key    string // as the file has it, for people; empty: that of Pass, Name and Firing
	Name   string
	Pass   int
	Firing int
	DType  hooks.DType
	Shape  []int
	Data   io.ReaderAt

	LastRow bool     // it has the row of its pass's last token alone, as many engines compute logits
	Printed *Printed // it is read from a text that has not all of it; else nil
	InOrder bool     // its keys were put into the order of their positions
	LeftOff *LeftOff // the cells of keys that were left off, or nil
	// Terms are what Data is the sum of, each as Data lies: partial results of ranks, which an engine adds in an order of its own,
	// rounding each sum to DType, where Data is rounded once. nil for any other tensor. See [Trace.Value].
	Terms []io.ReaderAt
}

// Assemble makes a trace of tensors of any files. The notes are said with those of the trace; closer, which may be nil, is
// closed with it. Nothing is promised of the order, so that [Trace.Sequence] is false unless ordered. Two tensors of one name, pass and firing,
// and a pass of 65536 or more, are errors.
func Assemble(path string, sources []Source, m Manifest, ordered bool, notes []string, closer io.Closer) (*Trace, error) {
	t := &Trace{path: path, closer: closer, manifest: m, sequence: ordered, notes: notes, index: make(map[firing]int, len(sources))}
	for _, s := range sources {
		key := firing{s.Pass, s.Name, s.Firing}
		n, ok := hooks.Elements(s.Shape)
		switch _, twice := t.index[key]; {
		case twice:
			return nil, fmt.Errorf("trace %s: two tensors for %s", path, quote(Key(s.Pass, s.Name, s.Firing)))
		case s.Pass >= maxPasses:
			return nil, fmt.Errorf("trace %s: tensor %s is of pass %d: the last that a trace can have is %d", path, quote(s.Key), s.Pass, maxPasses-1)
		case s.Name == "" || s.Pass < 0 || !ok || !s.DType.Valid():
			return nil, fmt.Errorf("trace %s: tensor %s has no name, pass, shape or dtype", path, quote(s.Key))
		}
		r := Record{Key: Key(s.Pass, s.Name, s.Firing), Name: s.Name, Pass: s.Pass, Firing: s.Firing, DType: s.DType, Shape: s.Shape, LastRow: s.LastRow, Printed: s.Printed, InOrder: s.InOrder, LeftOff: s.LeftOff, data: s.Data, terms: s.Terms}
		r.Size = int64(n) * int64(s.DType.Size())
		t.index[key] = len(t.records)
		t.records = append(t.records, r)
	}
	return t, nil
}

// Sources are the tensors of a trace, to be assembled anew under other names or with other shapes. The trace stays open as
// long as the new one is used.
func (t *Trace) Sources() []Source {
	out := make([]Source, len(t.records))
	for i, r := range t.records {
		out[i] = Source{Key: r.Key, Name: r.Name, Pass: r.Pass, Firing: r.Firing, DType: r.DType, Shape: r.Shape, Data: section{t, r}, LastRow: r.LastRow, Printed: r.Printed, InOrder: r.InOrder, LeftOff: r.LeftOff, Terms: r.terms}
	}
	return out
}

// Reassemble is [Assemble] for sources of this trace. The manifest and the status stay the same, and notes are added to the trace's own. The
// trace stays open as long as the new one is used, and is closed with it.
func (t *Trace) Reassemble(sources []Source, notes ...string) (*Trace, error) {
	out, err := Assemble(t.path, sources, t.manifest, t.sequence, append(slices.Clone(t.notes), notes...), t)
	if err != nil {
		return nil, err
	}
	out.lacks, out.unread = t.lacks, t.unread
	return out, nil
}

// LeftOff are the cells of an axis of keys that a tensor has in its file and a record does not have: cells of a cache that hold no token,
// and keys that no query of the pass may see.
type LeftOff struct {
	Axis  int         // of the keys
	Shape []int       // of the tensor in its file
	Data  io.ReaderAt // of the tensor in its file, row-major and little-endian
	Cells func() ([]Cell, error)
}

// Cell is a cell of an axis of keys.
type Cell struct {
	At  int // its index in the file
	Key int // the place of its token in the sequence, counted from 0; −1 where it holds no token
}

// Printed says of a tensor that it is read from a text, which has some of its elements, rounded to decimals. The bytes of the others are
// a NaN of their own.
type Printed = container.Printed

// section reads one tensor of a trace.
type section struct {
	t *Trace
	r Record
}

func (s section) ReadAt(p []byte, off int64) (int, error) { return s.t.ReadAt(s.r, p, off) }

// readSource is [Trace.ReadAt] for a tensor of an assembled trace, whose name is in the error.
func (r Record) readSource(trace string, p []byte, off int64) (int, error) {
	n, err := r.data.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, fmt.Errorf("trace %s: read tensor %s: %w", trace, quote(r.Key), err)
}
