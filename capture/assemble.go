package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/plain"
)

// Source is a tensor of a file that is not a trace: the name of the tensor, and a reader of its elements, row-major and
// little-endian.
type Source struct {
	Key    string // the name in the file, for people; if empty, the key of Pass, Name and Firing
	Name   string
	Pass   int
	Firing int
	DType  hooks.DType
	Shape  []int
	Data   io.ReaderAt

	LastRow bool     // only the row of the last token of the pass is there: many engines compute no other logits
	Printed *Printed // the elements of a text that were printed; nil for a tensor that was not read from a text
	InOrder bool     // the keys were put into the order of their positions
	LeftOff *LeftOff // the cells of keys that were left off, or nil
	// Terms are the tensors whose sum Data is, laid out like Data: partial results of ranks. An engine adds the terms in its own
	// order and rounds each sum to DType; Data is rounded once. Terms is nil for any other tensor. See [Trace.Value].
	Terms []io.ReaderAt
}

// Assemble makes a trace of tensors of any files. [Trace.Notes] returns notes, [Trace.Sequence] returns ordered, and [Trace.Close] closes
// closer, which may be nil. Two tensors of one name, pass and firing, and a pass of 65536 or more, are errors.
func Assemble(path string, sources []Source, m Manifest, ordered bool, notes []string, closer io.Closer) (*Trace, error) {
	t := &Trace{path: path, closer: closer, manifest: m, sequence: ordered, notes: notes, index: make(map[firing]int, len(sources))}
	for _, s := range sources {
		key := firing{s.Pass, s.Name, s.Firing}
		n, ok := hooks.Elements(s.Shape)
		switch _, twice := t.index[key]; {
		case twice:
			return nil, fmt.Errorf("trace %s: two tensors for %s", path, plain.Quote(Key(s.Pass, s.Name, s.Firing)))
		case s.Pass >= maxPasses:
			return nil, fmt.Errorf("trace %s: tensor %s has pass %d: the last pass of a trace is %d at most", path, plain.Quote(s.Key), s.Pass, maxPasses-1)
		case s.Name == "" || s.Pass < 0 || !ok || !s.DType.Valid():
			return nil, fmt.Errorf("trace %s: tensor %s has no name, pass, shape or dtype", path, plain.Quote(s.Key))
		}
		r := Record{Key: Key(s.Pass, s.Name, s.Firing), Name: s.Name, Pass: s.Pass, Firing: s.Firing, DType: s.DType, Shape: s.Shape, LastRow: s.LastRow, Printed: s.Printed, InOrder: s.InOrder, LeftOff: s.LeftOff, data: s.Data, terms: s.Terms}
		r.Size = int64(n) * int64(s.DType.Size())
		t.index[key] = len(t.records)
		t.records = append(t.records, r)
	}
	return t, nil
}

// Sources are the tensors of a trace, for a new trace with other names or other shapes. Keep the trace open while the new
// trace is used.
func (t *Trace) Sources() []Source {
	out := make([]Source, len(t.records))
	for i, r := range t.records {
		out[i] = Source{Key: r.Key, Name: r.Name, Pass: r.Pass, Firing: r.Firing, DType: r.DType, Shape: r.Shape, Data: section{t, r}, LastRow: r.LastRow, Printed: r.Printed, InOrder: r.InOrder, LeftOff: r.LeftOff, Terms: r.terms}
	}
	return out
}

// Reassemble is [Assemble] for sources of this trace. Manifest and status stay the same, and notes are added to the notes of the trace.
// Closing the new trace closes this trace; keep this trace open until then.
func (t *Trace) Reassemble(sources []Source, notes ...string) (*Trace, error) {
	out, err := Assemble(t.path, sources, t.manifest, t.sequence, append(slices.Clone(t.notes), notes...), t)
	if err != nil {
		return nil, err
	}
	out.lacks, out.unread = t.lacks, t.unread
	return out, nil
}

// LeftOff are the cells on an axis of keys that a tensor has in the file and a record leaves off: cells of a cache that hold no token,
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
	Key int // the position of the token in the sequence, counted from 0; −1 for a cell without a token
}

// Printed marks a tensor that was read from a text with some of its elements, rounded to decimals. The bytes of the other elements are a
// NaN that no program makes.
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
	return n, fmt.Errorf("trace %s: read tensor %s: %w", trace, plain.Quote(r.Key), err)
}
