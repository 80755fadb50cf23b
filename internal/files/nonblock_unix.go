//go:build unix

package files

import (
	"errors"
	"syscall"
)

// nonblock opens a pipe without waiting for its other end.
const nonblock = syscall.O_NONBLOCK

// noReader reports that a pipe was opened for writing and nobody reads from it.
func noReader(err error) bool { return errors.Is(err, syscall.ENXIO) }
