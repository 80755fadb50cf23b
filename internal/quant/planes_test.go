package quant_test

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/internal/quant"
)

// Each plane has, for each element, what the codes say of it, whichever ranges of whichever tensors are read by whom in between.
func TestPlanes(t *testing.T) {
	tensors := packed(t, "")
	for _, name := range []string{"usual.gguf", "blocks.gguf"} {
		for _, x := range opened(t, name).Tensors {
			if q, ok := x.Quantised(); ok {
				tensors = append(tensors, q)
			}
		}
	}
	wants := make([][5][]float32, len(tensors))
	planes := make([][5]io.ReaderAt, len(tensors))
	for k, q := range tensors {
		p := q.Planes()
		planes[k], wants[k] = [5]io.ReaderAt{p.Values, p.Step, p.Low, p.High, p.Slack}, wanted(t, q)
	}
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(worker)))
			for range 400 {
				k := r.IntN(len(tensors))
				n := len(wants[k][0])
				from := r.IntN(n)
				raw := make([]byte, 4*(r.IntN(n-from)+1))
				for i, plane := range planes[k] {
					if _, err := plane.ReadAt(raw, int64(4*from)); err != nil {
						t.Errorf("%s: %v", tensors[k].Name, err)
						return
					}
					for j := range len(raw) / 4 {
						got, want := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:])), wants[k][i][from+j]
						if !same(float64(got), float64(want)) {
							t.Errorf("%s %s: plane %d, element %d: %v, want %v", tensors[k].Scheme.Name, tensors[k].Name, i, from+j, got, want)
							return
						}
					}
				}
			}
		})
	}
	wg.Wait()
}

// wanted are the planes of a tensor by its codes, one element at a time.
func wanted(t *testing.T, q *quant.Tensor) (planes [5][]float32) {
	t.Helper()
	n := int(q.Elements())
	var c quant.Codes
	if err := q.Reader().Codes(&c, 0, n); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		step, offset := c.Step[i/c.Group], c.Offset[i/c.Group]
		first, last := step*float64(c.Lo)+offset, step*float64(c.Hi)+offset
		for k, v := range [5]float64{step*float64(c.Code[i]) + offset, math.Abs(step), min(first, last), max(first, last), c.Slack(i)} {
			planes[k] = append(planes[k], float32(v))
		}
	}
	return planes
}

// Reading all planes of a range decodes it once: the file is asked for each byte one time.
func TestPlanesShareWhatWasDecoded(t *testing.T) {
	counted := &counting{data: make([]byte, 144*64)}
	q := quant.Q4_K.Tensor("w", []int{64, 256}, counted, 0)
	p := q.Planes()
	raw := make([]byte, 4*256*16)
	for at := 0; at < 64; at += 16 {
		for _, plane := range []io.ReaderAt{p.Values, p.Step, p.Low, p.High, p.Slack} {
			if _, err := plane.ReadAt(raw, int64(at*256*4)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if counted.read != len(counted.data) {
		t.Errorf("%d bytes were read of %d", counted.read, len(counted.data))
	}
	if q.Group() != 256 {
		t.Errorf("groups of %d, want super-blocks of 256", q.Group())
	}
}

type counting struct {
	data []byte
	read int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.read += len(p)
	return copy(p, c.data[off:]), nil
}
