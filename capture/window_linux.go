package capture

import (
	"os"

	"golang.org/x/sys/unix"
)

// window maps a part of a file, if it is in the page cache.
func window(f *os.File, off, n int64) (w *Window) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	page := int64(os.Getpagesize())
	before := off % page
	size := before + n
	_ = conn.Control(func(fd uintptr) {
		var cached unix.Cachestat_t
		part := unix.CachestatRange{Off: uint64(off - before), Len: uint64(size)}
		if err := unix.Cachestat(uint(fd), &part, &cached, 0); err != nil || int64(cached.Cache) < (size+page-1)/page {
			return // kernels before 6.5 do not say
		}
		if pages, err := unix.Mmap(int(fd), off-before, int(size), unix.PROT_READ, unix.MAP_SHARED); err == nil {
			w = &Window{Data: pages[before:], pages: pages}
		}
	})
	return w
}

// Close lets go of the data.
func (w *Window) Close() { _ = unix.Munmap(w.pages) }
