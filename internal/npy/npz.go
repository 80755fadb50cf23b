package npy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// suffix ends the names of the members that are arrays.
const suffix = ".npy"

// IsArchive reports whether an archive is numpy's: it has members, and the first is an array by its name.
func IsArchive(z *container.Zip) bool {
	return len(z.Members) > 0 && strings.HasSuffix(z.Members[0].Name, suffix)
}

// Archive reads the headers of all arrays of an .npz file. Members that are no arrays, and arrays of text, are left out and
// noted.
func Archive(z *container.Zip, f *container.File) error {
	f.Format = "npz"
	void := 0
	for _, m := range z.Members {
		name, isArray := strings.CutSuffix(m.Name, suffix)
		if !isArray {
			f.Note("%s left out: not an array", plain.Quote(m.Name))
			continue
		}
		t, err := member(z, m)
		if err != nil {
			if damaged := z.Intact(m); damaged != nil {
				err = damaged
			}
			return Hinted(fmt.Errorf("array %s: %w", plain.Quote(name), err))
		}
		t.Name = name
		f.Tensors = append(f.Tensors, t)
		if t.DType == hooks.BF16 {
			void++
		}
	}
	noteVoid(f, void)
	return nil
}

// noteVoid says how arrays of two bytes without a meaning are read: numpy has no name for bfloat16.
func noteVoid(f *container.File, n int) {
	if n > 0 {
		f.Note("%d arrays of dtype V2 read as bfloat16", n)
	}
}

// Hinted adds the next step to the error of an array of objects.
func Hinted(err error) error {
	if errors.Is(err, errObjects) {
		return hint.Add(err, "save numbers: np.savez with an array for each name, not with lists of arrays of several shapes, dicts or None")
	}
	return err
}

// member reads the header of one array.
func member(z *container.Zip, m container.Member) (container.Tensor, error) {
	t, data, err := header(m.Size, func(n int) ([]byte, error) { return z.Start(m, n) })
	if err != nil {
		return t, err
	}
	t.Data, t.Offset = z.Data(m), data
	return t, fits(&t, m.Size)
}

// File reads a single .npy file into f. Its array has no name but the file's, which the caller gives it.
func File(t container.Tensor, name string, f *container.File) {
	f.Format = "npy"
	t.Name = name
	f.Tensors = append(f.Tensors, t)
	if t.DType == hooks.BF16 {
		noteVoid(f, 1)
	}
}
