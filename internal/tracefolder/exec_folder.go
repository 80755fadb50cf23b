package tracefolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/hint"
)

// OwnFolder makes a new folder for the trace of one run of a side's command, and says where the command is to write: a trace that
// stands there was written by this run and by no other, whatever else runs in the same folder of traces. done gives the
// folder back. It stays while anything is in it: a command that failed may have left what a person wants to see, until [RemoveLeftovers].
func OwnFolder(dir, side string) (out string, done func(), err error) {
	folder, release, err := MakeRunFolder(filepath.Join(dir, ExecFolder), side+"-", "")
	if err != nil {
		return "", nil, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		release()
		return "", nil, err
	}
	return filepath.Join(folder, side+".safetensors"), func() {
		_ = os.Remove(folder) // fails while something is left in it, which is meant
		release()
	}, nil
}

// LockSide keeps other runs from a side's trace in a folder of traces until release is called.
func LockSide(dir, side string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	release, err = capture.Lock(filepath.Join(dir, side))
	if errors.Is(err, capture.ErrLocked) {
		return nil, hint.Add(fmt.Errorf("another run is writing %s", TracePath(dir, side)), "wait for it to end, or give this run a folder of its own with --dir")
	}
	return release, err
}
