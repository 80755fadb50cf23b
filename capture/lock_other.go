//go:build !unix || solaris || aix

package capture

import (
	"errors"
	"io/fs"
	"os"
)

// lock takes the file at path for this process, or returns ErrLocked. On Windows a file that a process has open
// cannot be removed: one that can be removed was left by a run that is gone. On the few other systems that come
// here the lock keeps out only runs that start at the same moment.
func lock(path string) (release func(), err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ErrLocked
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return func() { f.Close(); os.Remove(path) }, nil
}
