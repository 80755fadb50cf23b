package capture

import (
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// Each hands out the elements of a tensor as float64, in row-major order and in strips of [lanes.Strip] elements; the last
// strip of each [lanes.Block] and of the tensor may be shorter. at is the number of the strip's first element. The slice
// is used again for the next strip and may be overwritten. Memory does not depend on the tensor's size. An error is from
// reading or from do.
func (t *Trace) Each(r Record, do func(at int64, x []float64) error) error {
	var strip [lanes.Strip]float64
	size := r.DType.Size()
	raw := make([]byte, min(int64(lanes.Block*size), r.Size))
	for off := int64(0); off < r.Size; {
		chunk := raw[:min(int64(len(raw)), r.Size-off)]
		if _, err := t.ReadAt(r, chunk, off); err != nil {
			return err
		}
		for at := 0; at < len(chunk); at += lanes.Strip * size {
			x := strip[:min(lanes.Strip, (len(chunk)-at)/size)]
			if err := floats.Decode(x, r.DType, chunk[at:]); err != nil {
				return err
			}
			if err := do((off+int64(at))/int64(size), x); err != nil {
				return err
			}
		}
		off += int64(len(chunk))
	}
	return nil
}

// Moments returns the statistics of a tensor, summed in the order of a comparison, which gives the same bits on every
// machine. Memory does not depend on the tensor's size. An error is from reading.
func (t *Trace) Moments(r Record) (lanes.Moments, error) {
	var m, block lanes.Moments
	err := t.Each(r, func(at int64, x []float64) error {
		if at%lanes.Block == 0 {
			m.Merge(&block)
			block = lanes.Moments{}
		}
		block.Add(x)
		return nil
	})
	m.Merge(&block)
	return m, err
}
