package capture

import (
	"os"
	"sync"
	"unsafe"
)

// A Mapped is a tensor's data as the file has it in memory: what is looked at need not be copied. It is for whoever looks at it from the
// first byte to the last, and lets go of what lies behind. Several goroutines may use it at a time.
//
// A file that becomes shorter is a fault for whoever looks at bytes that it had: see [runtime/debug.SetPanicOnFault].
type Mapped struct {
	trace *Trace
	file  *os.File
	data  []byte
	pages []byte // that are mapped; data begins at first
	first int
	start int64 // of data, in the file

	mu       sync.Mutex
	from, to int // the part that was last asked about
	there    bool
}

// askedAtOnce is about how much of a file it is asked at a time whether it is in memory.
const askedAtOnce = 1 << 20

// Map maps a tensor's data. It is nil where that cannot be done: on systems other than Linux, and of a tensor that is no part of one file.
func (t *Trace) Map(r Record) *Mapped {
	f, ok := t.file.(*os.File)
	if !ok || r.data != nil || r.Size == 0 || int64(int(r.Size)) != r.Size || t.holds(r) != nil {
		return nil
	}
	m := &Mapped{trace: t, file: f, start: r.offset, first: int(r.offset % int64(os.Getpagesize()))}
	if m.pages = mapFile(f, r.offset-int64(m.first), m.first+int(r.Size)); m.pages == nil {
		return nil
	}
	m.data = m.pages[m.first : m.first+int(r.Size)]
	return m
}

// Part returns n bytes from offset off on; nil where they are to be read by [Trace.ReadAt], because not all of them are in memory: who
// waits for a disk in a read lets others work.
func (m *Mapped) Part(off, n int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if off < m.from || m.to < off+n {
		m.from, m.to = off, min(len(m.data), off+max(n, askedAtOnce))
		m.there = inMemory(m.file, m.start+int64(off), m.to-off)
	}
	if !m.there {
		return nil
	}
	m.trace.read.Add(int64(n))
	return m.data[off : off+n : off+n]
}

// Release lets go of the whole pages between two offsets. They come again when they are looked at.
func (m *Mapped) Release(from, to int) {
	page := os.Getpagesize()
	if from, to = (m.first+from)&^(page-1), (m.first+to)&^(page-1); from < to {
		unmapPages(m.pages[from:to])
	}
}

// Has reports whether an address is in the data.
func (m *Mapped) Has(address uintptr) bool {
	start := uintptr(unsafe.Pointer(&m.data[0]))
	return start <= address && address-start < uintptr(len(m.data))
}

// Close lets go of all. There is no data after it.
func (m *Mapped) Close() { unmapFile(m.pages) }
