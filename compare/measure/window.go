package measure

import (
	"sync"
	"unsafe"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/lanes"
)

// windowSize is how much of each side is mapped at a time, in bytes: what is mapped is resident memory, and each window costs the
// processors a word with each other when it is let go of.
const windowSize = 2 << 20

// window is a part of both sides of a job, some blocks long, that is mapped while they are measured. Where it cannot be, its blocks are
// read.
type window struct {
	first  int // its first element
	blocks int // that are not merged yet, guarded by mu of the meter
	once   sync.Once
	sides  [2]*capture.Window // nil: not mapped
}

// blocksOf is how many blocks a window has.
func (m *measurement) blocksOf() int {
	return max(1, windowSize/(lanes.Block*m.views[reference].Rec.DType.Size()))
}

// open maps both sides, once.
func (w *window) open(m *measurement) {
	w.once.Do(func() {
		n := min(m.elements-w.first, m.blocksOf()*lanes.Block)
		for side, v := range m.views {
			if side == local && m.alone {
				continue
			}
			if w.sides[side] = v.window(w.first, n); w.sides[side] == nil {
				w.close()
				return
			}
		}
	})
}

// close lets go of what is mapped.
func (w *window) close() {
	for side, of := range w.sides {
		if of != nil {
			of.Close()
			w.sides[side] = nil
		}
	}
}

// has reports whether an address is in the window.
func (w *window) has(address uintptr) bool {
	for _, of := range w.sides {
		if of != nil {
			if start := uintptr(unsafe.Pointer(&of.Data[0])); start <= address && address < start+uintptr(len(of.Data)) {
				return true
			}
		}
	}
	return false
}

// window maps n elements of the view from element at on; nil if they are not one piece of a file, or cannot be mapped.
func (v View) window(at, n int) *capture.Window {
	if v.of != nil {
		return nil
	}
	size := int64(v.Rec.DType.Size())
	return v.trace.Window(v.Rec, int64(at)*size, int64(n)*size)
}
