package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
)

// ownFolder makes a new folder for the trace of one run of a command and points the command's output into it: a trace that
// stands there was written by this run and by no other, whatever else runs in the same folder of traces. done gives the
// folder back. It stays while anything is in it: a command that failed may have left what a person wants to see, until [RemoveLeft].
func (j *Job) ownFolder(r *reference.Command) (done func(), err error) {
	folder, release, err := makeRunFolder(filepath.Join(j.dir, execFolder), r.Side+"-", "")
	if err != nil {
		return nil, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		release()
		return nil, err
	}
	r.Out = filepath.Join(folder, r.Side+".safetensors")
	return func() {
		_ = os.Remove(folder) // fails while something is left in it, which is meant
		release()
	}, nil
}

// lockSide keeps other runs from a side's trace until release is called.
func (j *Job) lockSide(side string) (release func(), err error) {
	if err := os.MkdirAll(j.dir, 0o777); err != nil {
		return nil, err
	}
	release, err = capture.Lock(filepath.Join(j.dir, side))
	if errors.Is(err, capture.ErrLocked) {
		return nil, hint.Add(fmt.Errorf("another run is writing %s", j.path(side)), "wait for it to end, or give this run a folder of its own with --dir")
	}
	return release, err
}
