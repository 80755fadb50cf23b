package files

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// MkdirTemp makes a new temporary folder, as [os.MkdirTemp] does. Its error says where temporary files go, and which variable names the place.
func MkdirTemp(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	return dir, Temporary(err)
}

// CreateTemp makes a new temporary file, as [os.CreateTemp] does, with the errors of [MkdirTemp].
func CreateTemp(pattern string) (*os.File, error) {
	f, err := os.CreateTemp("", pattern)
	return f, Temporary(err)
}

// Temporary is an error of making or writing a temporary file, as a person can act on it; nil for nil.
func Temporary(err error) error {
	if err == nil {
		return nil
	}
	variable, why := "TMPDIR", err
	if runtime.GOOS == "windows" {
		variable = "TMP"
	}
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		why = system.Err
	}
	return &Error{
		Path: os.TempDir(), Why: "cannot be used for temporary files: " + why.Error(),
		Next: "set " + variable + " to an existing folder that can be written to and has free space", Err: err,
	}
}
