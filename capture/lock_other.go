//go:build !unix || solaris || aix

package capture

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// lock takes the file at path for this process, or returns ErrLocked. On Windows an open file cannot be removed: a
// lock file that can be removed was left by a run that has ended. On the few other systems without flock, the lock
// keeps out only runs that start at the same moment, and sure is false.
func lock(path string) (release func(), sure bool, err error) {
	const windows = runtime.GOOS == "windows"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, windows, ErrLocked
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, windows, ErrLocked
	}
	if err != nil {
		return nil, windows, err
	}
	return func() { f.Close(); os.Remove(path) }, windows, nil
}
