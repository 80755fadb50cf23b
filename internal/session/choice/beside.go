package choice

import (
	"fmt"
	"io/fs"

	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// putBeside puts the reference into the folder of the local trace, under the name of its side, so that a person has both. A golden is written out. A stored trace
// is linked, or copied if the file system has no links. A trace that was given stays where it is. It returns the path.
func (c chooser) putBeside(f *Found) (string, error) {
	to := c.job.Path("reference")
	release, err := tracefolder.LockSide(c.job.Traces(), "reference")
	if err != nil {
		return "", err
	}
	defer release()
	switch {
	case f.files != nil:
		var data []byte
		if data, err = fs.ReadFile(f.files, f.Path()); err == nil {
			err = files.WriteWhole(to, data)
		}
	case f.Entry == nil:
		return f.Path(), nil
	default: // root can write into both names of the file; the store then finds its trace changed
		if err = files.Link(f.Path(), to); err != nil {
			err = files.Copy(f.Path(), to)
		}
		if err == nil {
			err = orders.CopyProgram(f.Path(), to)
		}
	}
	if err != nil {
		return "", fmt.Errorf("putting the reference next to your port's trace: %w", err)
	}
	return to, nil
}
