package capture

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a part of a file; nil if it cannot be. Small pages alone, since with large ones more than the part that is measured would be
// resident memory, by several MiB a worker.
func mapFile(f *os.File, off int64, size int) (pages []byte) {
	onDescriptor(f, func(fd int) {
		if all, err := unix.Mmap(fd, off, size, unix.PROT_READ, unix.MAP_SHARED); err == nil {
			_ = unix.Madvise(all, unix.MADV_NOHUGEPAGE) // not every kernel has large ones
			pages = all
		}
	})
	return pages
}

func unmapFile(pages []byte) { _ = unix.Munmap(pages) }

// unmapPages gives pages back.
func unmapPages(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) }

// inMemory reports whether a part of a file is in the page cache. Kernels before 6.5 do not say.
func inMemory(f *os.File, off int64, n int) (all bool) {
	onDescriptor(f, func(fd int) {
		var cached unix.Cachestat_t
		part := unix.CachestatRange{Off: uint64(off), Len: uint64(n)}
		page := int64(os.Getpagesize())
		all = unix.Cachestat(uint(fd), &part, &cached, 0) == nil && int64(cached.Cache) > (off+int64(n)-1)/page-off/page
	})
	return all
}

func onDescriptor(f *os.File, do func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { do(int(fd)) })
	}
}
