//go:build unix

package checkpoint

import "golang.org/x/sys/unix"

// release gives the pages of a mapping back to the system, which has them in the file. On an error they stay: a mapping is
// as good as before.
func (s shard) release() {
	if s.mapped != nil {
		_ = unix.Madvise(s.mapped, unix.MADV_DONTNEED)
	}
}
