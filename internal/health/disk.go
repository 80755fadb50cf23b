package health

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is the file system that a folder is on, or would be on once it is made.
type Disk struct {
	Folder string // the folder, or the nearest one above it that is there
	Free   int64  // bytes that this user may write; −1 where the system does not say
}

// DiskOf finds the file system of a folder that need not be there yet. The error says why nothing can be written there.
func DiskOf(dir string) (Disk, error) {
	folder, err := filepath.Abs(dir)
	if err != nil {
		return Disk{}, err
	}
	for {
		info, err := os.Stat(folder)
		if err == nil && !info.IsDir() {
			return Disk{}, fmt.Errorf("%s is not a folder", folder)
		}
		if err == nil {
			break
		}
		if up := filepath.Dir(folder); errors.Is(err, fs.ErrNotExist) && up != folder {
			folder = up
			continue
		}
		return Disk{}, err
	}
	if err := writable(folder); err != nil {
		return Disk{}, fmt.Errorf("nothing can be written in %s: %w", folder, err)
	}
	free, err := free(folder)
	return Disk{folder, free}, err
}
