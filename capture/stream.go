package capture

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/plain"
)

// Stream writes one tensor in pieces, for a tensor too large for memory. The tensor becomes a part of the trace when Close returns; write nothing
// else to the trace before.
type Stream struct {
	w       *Writer
	event   hooks.Event
	written int64
}

// Stream begins a tensor of a dtype and a shape: e has no Data. It fails in the same cases as [Writer.Observe].
func (w *Writer) Stream(e hooks.Event) (*Stream, error) {
	s := &Stream{w: w, event: e}
	return s, s.stick(w.begin(e))
}

// Write appends bytes of the tensor, row-major and little-endian.
func (s *Stream) Write(p []byte) (int, error) {
	if s.w.err != nil {
		return 0, s.w.err
	}
	if err := s.stick(s.w.part.put(p, s.written)); err != nil {
		return 0, err
	}
	s.written += int64(len(p))
	return len(p), nil
}

// Close makes the tensor a part of the trace. It is an error if more or fewer bytes were written than the tensor has.
func (s *Stream) Close() error {
	if s.w.err != nil {
		return s.w.err
	}
	t := s.event.Tensor
	n, ok := hooks.Elements(t.Shape)
	if want := int64(n) * int64(t.DType.Size()); !ok || s.written != want {
		return s.stick(fmt.Errorf("%s tensor of shape %v needs %d bytes, has %d", t.DType, t.Shape, want, s.written))
	}
	return s.stick(s.w.finish(s.event, s.written))
}

// stick makes err the error of the writer, unless the writer has an error.
func (s *Stream) stick(err error) error {
	if s.w.err == nil && err != nil {
		s.w.err = fmt.Errorf("trace %s: tensor %s: %w", s.w.path, plain.Quote(Key(s.event.Pass, s.event.Name, 0)), err)
	}
	return s.w.err
}
