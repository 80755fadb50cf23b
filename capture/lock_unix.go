//go:build unix && !solaris && !aix

package capture

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the file at path for this process, or returns ErrLocked. The kernel releases the lock when the process
// ends, even by a kill, so a killed run never blocks the next run. sure is false on a file system without locks.
func lock(path string) (release func(), sure bool, err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, true, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, true, ErrLocked
		}
		// Some network file systems have no locks. There a second run is not noticed, which is better than
		// refusing every run.
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			f.Close()
			return nil, true, fmt.Errorf("lock %s: %w", path, err)
		}
		if current(f, path) {
			return func() { os.Remove(path); f.Close() }, err == nil, nil
		}
		f.Close()
	}
}

// current reports whether f is still the file at path. The run that held the lock may have removed the file
// between opening and locking; a lock on a removed file keeps nobody out.
func current(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(mine, now)
}
