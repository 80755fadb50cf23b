package reference

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// The logits of a long prompt can be larger than the memory of a comparison: 540 rows of 262,144 numbers take a gigabyte in float64. The scores of 9
// heads and 2,048 tokens take 300 MB. The walk computes and writes such tensors some rows at a time.

const (
	// defaultMemory is the memory of a walk, in bytes.
	defaultMemory = 1 << 30
	// perElement is the memory of one element of a piece, in bytes: its numbers in a few steps, and garbage of the same
	// size.
	perElement = 80
	// wholeElements is the largest number of elements of a tensor that is computed and written as a whole, for any memory: 32 MiB in float64.
	wholeElements = 1 << 22
)

// elements is the largest number of elements of a tensor that is computed as a whole, and the number of elements in a piece of a larger tensor.
// Pieces take half of the memory; the other half is for the rest of a layer.
func (j *Job) elements() int {
	return int(min(max(cmp.Or(j.Memory, defaultMemory)/2/perElement, 1), wholeElements))
}

// traceAlone reports whether only the trace gets the tensors of a job, so that large tensors may be written in pieces. A hook gets a whole tensor.
func (j *Job) traceAlone() bool { return j.Registry == nil && j.Debug == nil }

// inPieces writes tensors that come some rows at a time. If several such tensors are open, the first goes to the trace, and each later tensor to a
// temporary file, which is copied to the trace when the tensor is complete.
type inPieces struct {
	*walk
	trace    *capture.Writer
	selected map[string]bool
	alone    bool // only the trace gets tensors
	open     []*pieces
}

// pieces is one tensor that is being written.
type pieces struct {
	node  order.Node
	event hooks.Event
	keeps []bool          // by token of the pass: its rows are in scope
	row   int             // rows received
	to    *capture.Stream // nil for a tensor that goes to a temporary file first
	file  *os.File
	out   *bufio.Writer // of the file
	bytes []byte
}

func newInPieces(w *walk, trace *capture.Writer, selected []*order.Entry, alone bool) *inPieces {
	r := &inPieces{walk: w, trace: trace, selected: map[string]bool{}, alone: alone}
	for _, e := range selected {
		r.selected[e.Name] = true
	}
	return r
}

// whole reports whether a hook wants the tensor; a hook gets a whole tensor.
func (r *inPieces) whole(n order.Node) bool { return !r.alone && r.points[n.Entry] != nil }

// visit takes the next rows of a step.
func (r *inPieces) visit(n order.Node, v program.Value, last bool) error {
	if last {
		r.step(n)
		r.choose(n, v)
	}
	if !r.selected[r.List.At(n).Name] || !r.Manifest.Scope.Passes.Has(n.Pass) {
		return nil
	}
	p, err := r.of(n)
	if p == nil || err != nil {
		return err
	}
	if err = p.write(v); err == nil && last {
		err = r.finish(p)
	}
	if err != nil {
		return fmt.Errorf("writing %s in pieces: %w", p.event.Name, err)
	}
	return nil
}

// of returns the tensor of a node, and begins the tensor at its first rows. It returns nil for a tensor without rows in scope.
func (r *inPieces) of(n order.Node) (*pieces, error) {
	for _, p := range r.open {
		if p.node == n {
			return p, nil
		}
	}
	passes, e := order.Passes(r.tokens()), r.List.At(n)
	rows := r.Manifest.Scope.Rows(passes[n.Pass].Past, passes[n.Pass].Tokens)
	if len(rows) == 0 {
		return nil, nil
	}
	shape := r.List.Size(n, passes)
	shape[strings.IndexByte(e.Axes, order.AxisToken)] = len(rows)
	t := hooks.Tensor{DType: r.written(n), Shape: shape}
	p := &pieces{node: n, event: hooks.Event{Name: e.Name, Pass: n.Pass, Tensor: t}, keeps: make([]bool, passes[n.Pass].Tokens)}
	for _, row := range rows {
		p.keeps[row] = true
	}
	var err error
	if len(r.open) == 0 {
		p.to, err = r.trace.Stream(p.event)
	} else if p.file, err = os.CreateTemp(filepath.Dir(r.Path), "rows-*.tmp"); err == nil {
		p.out = bufio.NewWriterSize(p.file, 1<<20)
		// On a system that can remove an open file, a killed walk leaves no file.
		_ = os.Remove(p.file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s in pieces: %w", p.event.Name, err)
	}
	r.open = append(r.open, p)
	return p, nil
}

// write appends the rows of v that are in scope. Rows come token by token; for attention, all tokens of one head
// and then of the next head.
func (p *pieces) write(v program.Value) error {
	d, width := p.event.Tensor.DType, v.Shape[len(v.Shape)-1]
	if n := len(v.Data) * d.Size(); cap(p.bytes) < n {
		p.bytes = make([]byte, n)
	}
	b := p.bytes[:0]
	for from := 0; from < len(v.Data); from += width {
		if p.keeps[p.row%len(p.keeps)] {
			n := len(b)
			b = b[:n+width*d.Size()]
			floats.Append(b[:n], d, v.Data[from:from+width]...)
		}
		p.row++
	}
	var err error
	if p.to != nil {
		_, err = p.to.Write(b)
	} else {
		_, err = p.out.Write(b)
	}
	return err
}

// finish adds a complete tensor to the trace.
func (r *inPieces) finish(p *pieces) error {
	r.open = slices.DeleteFunc(r.open, func(o *pieces) bool { return o == p })
	if p.to != nil {
		return p.to.Close()
	}
	defer p.remove()
	if err := p.out.Flush(); err != nil {
		return err
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := r.trace.Stream(p.event)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, p.file); err != nil {
		return err
	}
	return to.Close()
}

// close removes the temporary files of a walk that ended early.
func (r *inPieces) close() {
	for _, p := range r.open {
		p.remove()
	}
}

func (p *pieces) remove() {
	if p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}
