package health

import (
	"math"

	"golang.org/x/sys/windows"
)

// writable is not asked: a folder's mode says little where access lists decide.
func writable(string) error { return nil }

func free(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var n uint64
	if err := windows.GetDiskFreeSpaceEx(name, &n, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(n, math.MaxInt64)), nil
}
