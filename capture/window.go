package capture

import "os"

// A Window is a part of a tensor's data as the file has it in memory: mapped, not read. It is to be closed, and Data is nothing after
// that. A file that becomes shorter meanwhile is a fault for whoever looks at bytes that it had: see [runtime/debug.SetPanicOnFault].
type Window struct {
	Data  []byte
	pages []byte // that are mapped
}

// Window maps n bytes of a tensor's data from offset off on. It is nil where [Trace.ReadAt] is to be used: on systems other than Linux,
// for what is no part of one file, and where not all of it is in memory, since who waits for a disk in a read lets others work.
func (t *Trace) Window(r Record, off, n int64) *Window {
	f, ok := t.file.(*os.File)
	if !ok || r.data != nil || t.holds(r) != nil || off < 0 || n <= 0 || n > r.Size-off {
		return nil
	}
	w := window(f, r.offset+off, n)
	if w != nil {
		t.read.Add(n)
	}
	return w
}
