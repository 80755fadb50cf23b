//go:build linux || darwin || freebsd

package health

import (
	"math"

	"golang.org/x/sys/unix"
)

func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

func free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	// The types of the fields differ from system to system, and so does whether a deficit is negative.
	if n := float64(s.Bavail) * float64(s.Bsize); n < math.MaxInt64 {
		return max(int64(n), 0), nil
	}
	return math.MaxInt64, nil
}
