package reference

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// The logits of a long prompt are larger than the memory that a comparison takes: 540 rows of 262,144 numbers are a gigabyte in float64. The walk writes
// them some rows at a time.

// wholeElements is how many elements a tensor has at most that is computed and written as a whole: 32 MiB in float64.
const wholeElements = 1 << 22

// traceAlone reports whether nobody but the trace gets the tensors of a job, so that large ones may be written in pieces: a hook gets a tensor as a whole.
func (j *Job) traceAlone() bool {
	return j.Registry == nil && j.Debug == nil && len(j.Manifest.Scope.Positions) == 0
}

// inPieces writes tensors that come some rows at a time. If several such tensors are open, the first is written to the trace, and each of the others to a
// temporary file, which is copied to the trace when the tensor is complete.
type inPieces struct {
	*walk
	trace    *capture.Writer
	selected map[string]bool
	open     []*pieces
}

// pieces is one tensor that is being written.
type pieces struct {
	node  order.Node
	event hooks.Event
	to    *capture.Stream // nil for a tensor that goes to a file first
	file  *os.File
	out   *bufio.Writer // of the file
	bytes []byte
}

func newInPieces(w *walk, trace *capture.Writer, selected []*order.Entry) *inPieces {
	r := &inPieces{walk: w, trace: trace, selected: map[string]bool{}}
	for _, e := range selected {
		r.selected[e.Name] = true
	}
	return r
}

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
	if err != nil {
		return err
	}
	if err = p.write(v.Data); err == nil && last {
		err = r.finish(p)
	}
	if err != nil {
		return fmt.Errorf("writing %s in pieces: %w", p.event.Name, err)
	}
	return nil
}

// of is the tensor of a node, begun if its first rows are there.
func (r *inPieces) of(n order.Node) (*pieces, error) {
	for _, p := range r.open {
		if p.node == n {
			return p, nil
		}
	}
	t := hooks.Tensor{DType: r.written(n), Shape: r.List.Size(n, order.Passes(r.tokens()))}
	p := &pieces{node: n, event: hooks.Event{Name: r.List.At(n).Name, Pass: n.Pass, Tensor: t}}
	var err error
	if len(r.open) == 0 {
		p.to, err = r.trace.Stream(p.event)
	} else if p.file, err = os.CreateTemp(filepath.Dir(r.Path), "rows-*.tmp"); err == nil {
		p.out = bufio.NewWriterSize(p.file, 1<<20)
		// Where the system lets an open file go without a name, a walk that is killed leaves nothing.
		_ = os.Remove(p.file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s in pieces: %w", p.event.Name, err)
	}
	r.open = append(r.open, p)
	return p, nil
}

// write appends some rows.
func (p *pieces) write(data []float64) error {
	d := p.event.Tensor.DType
	if n := len(data) * d.Size(); cap(p.bytes) < n {
		p.bytes = make([]byte, n)
	}
	b := p.bytes[:len(data)*d.Size()]
	encode(b, d, data)
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
