package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
)

// execFolder is where commands write, each run in a folder of its own below it.
const execFolder = "exec"

// runFolder is the name of a folder in it: the side, and the number that os.MkdirTemp gives.
var runFolder = regexp.MustCompile(`^(local|reference)-[0-9]+$`)

// keepFailed is how long what a command left that failed is kept, for a person to look into. It is also what protects a
// run's folder where the file system knows no locks.
const keepFailed = time.Hour

// ownFolder makes a new folder for the trace of one run of a command and points the command's output into it: a trace that
// stands there was written by this run and by no other, whatever else runs in the same folder of traces. done gives the
// folder back; it stays while anything is in it.
func (j *Job) ownFolder(r *reference.Command) (done func(), err error) {
	parent := filepath.Join(j.dir, execFolder)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, err
	}
	if err := removeLeft(parent, r.Side); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(parent, r.Side+"-*")
	if err != nil {
		return nil, err
	}
	release, err := capture.Lock(folder)
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

// removeLeft removes the folders of earlier runs of a side that failed long ago. A folder that a run has locked is in use.
func removeLeft(parent, side string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, folder := runFolder.FindStringSubmatch(e.Name()), filepath.Join(parent, e.Name())
		if !e.IsDir() || name == nil || name[1] != side {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < keepFailed || capture.Busy(folder) {
			continue // gone meanwhile, too new, or in use
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
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
