package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/fixtures"
)

// dump puts the reference beside the local trace, under the name of its side, so that a person has both: a golden is
// written out, a stored trace copied. It returns the path; what was given stays where it is.
func (j *job) dump(f *found) (string, error) {
	to := j.path("reference")
	release, err := j.lockSide("reference")
	if err != nil {
		return "", err
	}
	defer release()
	switch {
	case f.label == "golden":
		var data []byte
		if data, err = fs.ReadFile(fixtures.Files, f.Path()); err == nil {
			err = writeWhole(to, data)
		}
	case f.entry == nil:
		return f.Path(), nil
	default: // not a link: whoever writes into a trace of their own would write into the store
		err = copyFile(f.Path(), to)
	}
	if err != nil {
		return "", fmt.Errorf("putting the reference beside the local trace: %w", err)
	}
	return to, nil
}

// copyFile copies a file, which appears whole or not at all.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+"-*.part")
	if err != nil {
		return err
	}
	_, err = io.Copy(tmp, in)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
