package gemma

import (
	"encoding/binary"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/kernel"
	"github.com/tracediff/tracediff/order"
)

// point is a hook point with its entry of the order, which knows the shape.
type point struct {
	*hooks.Point
	entry *order.Entry
}

// pass is the state of one forward call: its tokens, its scratch, and the operations in the model's dtype. Each operation returns a new slice.
type pass struct {
	kernel.Arith
	*settings
	*arena
	ids, positions []int
	past           int
	masks          map[string][]float32     // by layer type
	rotary         map[string]kernel.Tables // by layer type
	lastLayer      int                      // the last layer to run; the number of layers for all and the output
	bytes          scratch                  // of the hooks
	number         int                      // of this pass in its run
	err            error                    // the first of a hook, or that of the run's context
}

// R rounds a constant to float32 and then to the dtype, as a tensor made of a Python number is.
func (p *pass) R(x float64) float32 { return p.Arith.R(float32(x)) }

// R32 rounds a float32 to the dtype.
func (p *pass) R32(x float32) float32 { return p.Arith.R(x) }

// see fires a point with x and returns x, which a replacer may have overwritten.
func (p *pass) see(at point, x []float32) []float32 { return p.seeAs(p.DType, at, x) }

// seeF32 is see for a tensor that is float32 whatever the model's dtype.
func (p *pass) seeF32(at point, x []float32) []float32 { return p.seeAs(hooks.F32, at, x) }

func (p *pass) seeAs(dtype hooks.DType, at point, x []float32) []float32 {
	if at.Point == nil || p.err != nil {
		return x
	}
	b := p.bytes.take(len(x) * dtype.Size())
	for i, v := range x {
		switch dtype {
		case hooks.BF16:
			binary.LittleEndian.PutUint16(b[2*i:], floats.BF16(v))
		case hooks.F16:
			binary.LittleEndian.PutUint16(b[2*i:], floats.F16(v))
		default:
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
	}
	p.fire(dtype, at, b)
	if at.Replaces() && p.err == nil {
		for i := range x {
			switch dtype {
			case hooks.BF16:
				x[i] = floats.FromBF16(binary.LittleEndian.Uint16(b[2*i:]))
			case hooks.F16:
				x[i] = floats.FromF16(binary.LittleEndian.Uint16(b[2*i:]))
			default:
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
		}
	}
	return x
}

// seeInts is see for ids and positions, int64.
func (p *pass) seeInts(at point, x []int) {
	if at.Point == nil || p.err != nil {
		return
	}
	b := p.bytes.take(8 * len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
	}
	p.fire(hooks.I64, at, b)
	if at.Replaces() && p.err == nil {
		for i := range x {
			x[i] = int(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
}

func (p *pass) fire(dtype hooks.DType, at point, data []byte) {
	shape := at.entry.Size(order.Pass{Past: p.past, Tokens: len(p.ids)}, p.config.SlidingWindow)
	p.err = at.Fire(hooks.Tensor{DType: dtype, Shape: shape, Data: data})
}

// scratch is memory that is used again.
type scratch []byte

// take returns n bytes with any content.
func (s *scratch) take(n int) []byte {
	if cap(*s) < n {
		*s = make([]byte, n)
	}
	return (*s)[:n]
}

// own returns x, or a copy of it where a replacer would otherwise write into somebody else's tensor.
func (p *pass) own(at point, x []float32) []float32 {
	if at.Replaces() {
		return p.copyOf(x)
	}
	return x
}

func (p *pass) copyOf(x []float32) []float32 {
	y := p.take(len(x))
	copy(y, x)
	return y
}

// block is index i of the middle axis of x [T, n, width]: [T, width].
func (p *pass) block(x []float32, i, n, width int) []float32 {
	y := p.take(len(p.ids) * width)
	for t := range p.ids {
		copy(y[t*width:(t+1)*width], x[(t*n+i)*width:])
	}
	return y
}

func (p *pass) add(x, y []float32) []float32 {
	z := p.take(len(x))
	p.Add(z, x, y)
	return z
}

func (p *pass) sub(x, y []float32) []float32 {
	z := p.take(len(x))
	p.Sub(z, x, y)
	return z
}

func (p *pass) mul(x, y []float32) []float32 {
	z := p.take(len(x))
	p.Mul(z, x, y)
	return z
}

func (p *pass) scale(x []float32, by float32) []float32 {
	z := p.take(len(x))
	p.Scale(z, x, by)
	return z
}

func (p *pass) div(x []float32, by float64) []float32 {
	z := p.take(len(x))
	p.Div(z, x, float32(by))
	return z
}

func (p *pass) tanh(x []float32) []float32 {
	z := p.take(len(x))
	p.Tanh(z, x)
	return z
}

func (p *pass) gelu(x []float32) []float32 {
	z := p.take(len(x))
	p.GELUTanh(z, x)
	return z
}

func (p *pass) softcap(x []float32, limit float64) []float32 {
	z := p.take(len(x))
	p.Softcap(z, x, float32(limit))
	return z
}

// rotate turns x [T, heads, D] by tables: [heads, T, D].
func (p *pass) rotate(x []float32, by kernel.Tables, heads, d int) []float32 {
	z := p.take(len(x))
	p.Rotate(z, x, by, len(p.ids), heads, d)
	return z
}

// headsFirst transposes x [T, heads, D] to [heads, T, D].
func (p *pass) headsFirst(x []float32, heads, d int) []float32 {
	z := p.take(len(x))
	for t := range p.ids {
		for h := range heads {
			copy(z[(h*len(p.ids)+t)*d:][:d], x[(t*heads+h)*d:])
		}
	}
	return z
}

// arena is scratch memory of a forward pass, taken in order and given back in reverse.
type arena struct {
	chunks      [][]float32
	chunk, used int
}

// arenaChunk is the least number of elements allocated at once.
const arenaChunk = 1 << 18

// take returns n elements with any content.
func (a *arena) take(n int) []float32 {
	for ; a.chunk < len(a.chunks); a.chunk, a.used = a.chunk+1, 0 {
		if c := a.chunks[a.chunk]; a.used+n <= len(c) {
			a.used += n
			return c[a.used-n : a.used : a.used]
		}
	}
	a.chunks = append(a.chunks, make([]float32, max(n, arenaChunk)))
	a.used = n
	return a.chunks[a.chunk][:n:n]
}

// mark remembers what is taken, for release.
func (a *arena) mark() arena { return arena{chunk: a.chunk, used: a.used} }

// release gives back everything taken since mark.
func (a *arena) release(m arena) { a.chunk, a.used = m.chunk, m.used }
