package job

import (
	"errors"
	"io/fs"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/hint"
)

// OpenTrace opens a trace or a dump.
func OpenTrace(path string) (*capture.Trace, error) {
	t, err := foreign.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(err, "check the path; compare takes two trace files, or none to capture your port again")
	}
	return t, hint.Default(err, dump.Next)
}
