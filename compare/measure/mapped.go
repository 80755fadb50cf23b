package measure

import (
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/lanes"
)

// mapped are both sides of a job as their files have them in memory, where they can be mapped: they are measured there, and need not
// be copied.
type mapped struct {
	once  sync.Once
	sides [2]*capture.Mapped // nil: not mapped
	mu    sync.Mutex         // of who lets go of it
}

// open maps both sides, or none of them.
func (p *mapped) open(m *measurement) {
	p.once.Do(func() {
		for side, v := range m.views {
			if side == local && m.alone {
				continue
			}
			if v.of == nil {
				p.sides[side] = v.trace.Map(v.Rec)
			}
			if p.sides[side] == nil {
				p.close()
				return
			}
		}
	})
}

// close lets go of both.
func (p *mapped) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for side, of := range p.sides {
		if of != nil {
			of.Close()
			p.sides[side] = nil
		}
	}
}

// atOnce is how much of a side is let go of at a time, about, in bytes: what is mapped is resident memory, and to let go of some costs
// the processors a word with each other.
const atOnce = 1 << 19

// release lets go of a block that nobody needs any more, and of those before it.
func (p *mapped) release(m *measurement, block int) {
	every := max(1, atOnce/(lanes.Block*m.views[reference].Rec.DType.Size()))
	if (block+1)%every > 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for side, of := range p.sides {
		if of != nil {
			size := lanes.Block * m.views[side].Rec.DType.Size()
			of.Release((block+1-every)*size, (block+1)*size)
		}
	}
}

// has reports whether an address is in one of the sides.
func (p *mapped) has(address uintptr) bool {
	for _, of := range p.sides {
		if of != nil && of.Has(address) {
			return true
		}
	}
	return false
}
