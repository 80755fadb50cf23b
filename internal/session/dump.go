package session

import (
	"fmt"
	"io"
	"io/fs"

	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/files"
)

// dump puts the reference into the folder of the local trace, under the name of its side, so that a person has both. A golden is written out. A stored trace
// is linked, or copied if the file system has no links. A trace that was given stays where it is. dump returns the path.
func (j *Job) dump(f *Found) (string, error) {
	to := j.path("reference")
	release, err := j.lockSide("reference")
	if err != nil {
		return "", err
	}
	defer release()
	switch {
	case f.Label == "golden":
		var data []byte
		if data, err = fs.ReadFile(fixtures.Files, f.Path()); err == nil {
			err = WriteWhole(to, data)
		}
	case f.entry == nil:
		return f.Path(), nil
	default: // root can write into both names of the file; the store then finds its trace changed
		if err = files.Link(f.Path(), to); err != nil {
			err = copyFile(f.Path(), to)
		}
		if err == nil {
			err = copyProgram(f.Path(), to)
		}
	}
	if err != nil {
		return "", fmt.Errorf("putting the reference beside the local trace: %w", err)
	}
	return to, nil
}

// copyFile copies a file, which appears whole or not at all.
func copyFile(from, to string) error {
	in, _, err := files.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return files.Replace(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
