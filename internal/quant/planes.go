package quant

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
)

// Planes are what the codes of a tensor say of each element: float32 numbers, little-endian, in the order of the tensor's shape. Any range
// may be read, by several goroutines. The planes of a tensor share what was decoded last: the same range of each costs one decoding.
type Planes struct {
	Values io.ReaderAt // dequantised
	Step   io.ReaderAt // the magnitude of the step
	Low    io.ReaderAt // the smallest number that a code of the element's group stands for
	High   io.ReaderAt // the largest
	Slack  io.ReaderAt // see [Codes.Slack]
	Unit   io.ReaderAt // the step with its sign
	Offset io.ReaderAt
}

// Planes returns the planes of t. A number of a damaged group is NaN or infinite in each of them that it is in.
func (t *Tensor) Planes() Planes {
	return Planes{Values: plane{t, values}, Step: plane{t, steps}, Low: plane{t, lows}, High: plane{t, highs}, Slack: plane{t, slacks}, Unit: plane{t, units}, Offset: plane{t, offsets}}
}

// Dense is the tensor dequantised, in float32, as it is read.
func (t *Tensor) Dense() container.Tensor {
	return container.Tensor{Name: t.Name, DType: hooks.F32, Shape: t.Shape, Data: plane{t, values}}
}

func steps(c *Codes, g int, _ []int16, dst []float32) { all(dst, math.Abs(c.Step[g])) }

func units(c *Codes, g int, _ []int16, dst []float32) { all(dst, c.Step[g]) }

func offsets(c *Codes, g int, _ []int16, dst []float32) { all(dst, c.Offset[g]) }

func lows(c *Codes, g int, _ []int16, dst []float32) {
	lo, hi := c.ends(g)
	all(dst, min(lo, hi))
}

func highs(c *Codes, g int, _ []int16, dst []float32) {
	lo, hi := c.ends(g)
	all(dst, max(lo, hi))
}

// ends are what the lowest and the highest code stand for in a group.
func (c *Codes) ends(g int) (lo, hi float64) {
	return float64(c.Step[g]*float64(c.Lo)) + c.Offset[g], float64(c.Step[g]*float64(c.Hi)) + c.Offset[g]
}

func slacks(c *Codes, g int, codes []int16, dst []float32) {
	step, offset := c.Step[g], 0.0
	if step == 0 || c.Early == (Rounding{}) {
		all(dst, c.Slack(g*c.Group))
		return
	}
	if c.Offset[g] != 0 {
		offset = c.Early.of(c.Offset[g])
	}
	moves := c.Early.of(step)
	for i, code := range codes {
		dst[i] = float32(float64(moves*math.Abs(float64(code))) + offset)
	}
}

// all fills dst with one number.
func all(dst []float32, v float64) {
	for i := range dst {
		dst[i] = float32(v)
	}
}

// plane reads one number of each element.
type plane struct {
	tensor *Tensor
	fill   func(c *Codes, g int, codes []int16, dst []float32)
}

// mostAtOnce is how many elements one read of a plane decodes at a time, at least one grain.
const mostAtOnce = 1 << 18

// ReadAt reads bytes of the plane.
func (x plane) ReadAt(p []byte, off int64) (int, error) {
	all := x.tensor.Elements() * 4
	if off < 0 || off > all {
		return 0, fmt.Errorf("offset %d of %d bytes", off, all)
	}
	var end error
	if rest := all - off; int64(len(p)) > rest {
		p, end = p[:rest], io.EOF
	}
	for done := 0; done < len(p); {
		at := off + int64(done)
		first, last := at/4, min((off+int64(len(p))+3)/4, at/4+mostAtOnce)
		d, err := held.take(x.tensor, first, last)
		if err != nil {
			return done, err
		}
		done += copyFloats(p[done:], x.numbers(d, int(first-d.from), int(last-first)), int(at%4))
		held.put(d)
	}
	return len(p), end
}

// numbers are n numbers of the plane, from element first of what was decoded on.
func (x plane) numbers(d *decoded, first, n int) []float32 {
	d.values = grown(d.values, n)
	d.codes.each(d.values, first, x.fill)
	return d.values
}

// decoded is a range of a tensor.
type decoded struct {
	tensor *Tensor
	reader *Reader
	codes  Codes
	from   int64
	values []float32
}

// has reports whether it is the elements of t from first to last.
func (d *decoded) has(t *Tensor, first, last int64) bool {
	return d.tensor == t && first >= d.from && last <= d.from+int64(len(d.codes.Code))
}

// kept are some ranges of whatever tensors that nobody reads from at the moment.
type kept struct {
	mu   sync.Mutex
	free []*decoded // the last used at the end
}

// held is for all tensors: the memory of what was decoded does not grow with their number.
var held kept

// mostHeld is how many ranges are kept: more goroutines than that decode anew.
const mostHeld = 16

// take returns the decoded elements from first to last of t, for only the caller.
func (k *kept) take(t *Tensor, first, last int64) (*decoded, error) {
	d := k.find(t, first, last)
	if d.has(t, first, last) {
		return d, nil
	}
	grain := int64(t.grain)
	from := first / grain * grain
	n := min((last+grain-1)/grain*grain, t.Elements()) - from
	d.tensor, d.from, d.reader.tensor = t, from, t
	if err := d.reader.Codes(&d.codes, from, int(n)); err != nil {
		return nil, err
	}
	return d, nil
}

// find takes the range with the elements, else the range unused for the longest time.
func (k *kept) find(t *Tensor, first, last int64) *decoded {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.free) == 0 {
		return &decoded{reader: &Reader{}}
	}
	at := 0
	for i, d := range k.free {
		if d.has(t, first, last) {
			at = i
		}
	}
	d := k.free[at]
	k.free = append(k.free[:at], k.free[at+1:]...)
	return d
}

func (k *kept) put(d *decoded) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.free) < mostHeld {
		k.free = append(k.free, d)
	}
}

// copyFloats writes the bytes of values to p, without the first skip of them, and returns how many it wrote.
func copyFloats(p []byte, values []float32, skip int) int {
	n := min(len(p), len(values)*4-skip)
	done := 0
	for ; (skip+done)%4 != 0 && done < n; done++ {
		p[done] = byte(math.Float32bits(values[(skip+done)/4]) >> (8 * ((skip + done) % 4)))
	}
	for ; done+4 <= n; done += 4 {
		binary.LittleEndian.PutUint32(p[done:], math.Float32bits(values[(skip+done)/4]))
	}
	for ; done < n; done++ {
		p[done] = byte(math.Float32bits(values[(skip+done)/4]) >> (8 * ((skip + done) % 4)))
	}
	return n
}
