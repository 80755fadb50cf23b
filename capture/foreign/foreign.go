// Package foreign opens dumps of other tools as traces: any file or folder that internal/dump reads.
//
// A dump does not describe its run: it has no manifest, and its tensors have no order. Pass numbers come from keys of the form
// pass<k>/, from files with one pass each, or from a list with one element for each pass. [Fit] then reads names and shapes that
// differ from the order, such as a prefix of names or a missing batch axis, where nothing is lost and only one reading is
// possible.
//
// The notes of the trace name everything that was left out or read in another way.
package foreign

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	formats "github.com/tracediff/tracediff/internal/safetensors"
)

// Open opens the trace, or the dump, at path. [capture.Open] opens traces. A tensor of an unknown dtype, other than text, is
// an error.
func Open(path string) (*capture.Trace, error) { return open(path, false) }

// Look is Open for a file that nothing is compared with: tensors of an unknown dtype are left out and noted.
func Look(path string) (*capture.Trace, error) { return open(path, true) }

func open(path string, look bool) (*capture.Trace, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return folder(path, look)
	}
	if isSafetensors(path) {
		return safetensors(path, look)
	}
	f, err := dump.Open(path)
	if err != nil {
		return nil, err
	}
	return assemble(path, f, look)
}

// folder opens a folder of dumps, by the scheme of the tool that wrote the folder. If no scheme fits, the names of the files
// give the names of the tensors.
func folder(path string, look bool) (*capture.Trace, error) {
	d, err := dump.OpenDir(path)
	if err != nil {
		return nil, err
	}
	for _, scheme := range schemes {
		found, err := scheme(d)
		if err != nil {
			return nil, hint.Also(fmt.Errorf("%s: %w", path, err), d.File().Close())
		}
		if found {
			return assemble(path, d.File(), look)
		}
	}
	if err := d.Name(); err != nil {
		return nil, hint.Also(err, d.File().Close())
	}
	return assemble(path, d.File(), look)
}

// isSafetensors reports whether [capture.Open] has to open a file: a file that begins with a header, however wrong, and a file
// that cannot be opened.
func isSafetensors(path string) bool {
	f, _, err := files.Open(path)
	if err != nil {
		return true // capture.Open returns the error
	}
	defer f.Close()
	var start [9]byte
	n, err := io.ReadFull(f, start[:])
	return err == nil && n == len(start) && start[8] == '{' && start[7] == 0
}

// safetensors opens a trace, or a safetensors file of another writer, whose keys may have passes.
func safetensors(path string, look bool) (*capture.Trace, error) {
	open := capture.Open
	if look {
		open = capture.Look
	}
	t, err := open(path)
	if err != nil {
		if dtype := (*formats.DTypeError)(nil); !errors.As(err, &dtype) { // do not read the header again
			return nil, err
		}
		if t = withoutComplex(path); t == nil {
			return nil, err
		}
	}
	if t.Status() != "" {
		return t, nil
	}
	sources := t.Sources()
	any, note := passes(sources)
	if !any && note == "" {
		return t, nil
	}
	notes := slices.Clone(t.Notes())
	if note != "" {
		notes = append(notes, note)
	}
	again, err := capture.Assemble(path, sources, capture.Manifest{}, false, notes, t)
	if err != nil {
		return nil, hint.Also(err, t.Close())
	}
	return again, nil
}

// withoutComplex opens a file of another writer without its complex numbers. It returns nil for a trace, and for a
// file with a tensor of another unknown dtype or with only complex numbers.
func withoutComplex(path string) *capture.Trace {
	t, err := capture.Look(path)
	if err != nil {
		return nil
	}
	if t.Status() != "" || len(t.Records()) == 0 || slices.ContainsFunc(t.Unread(), func(dtype string) bool { return !isComplex(dtype) }) {
		t.Close()
		return nil
	}
	return t
}

// assemble makes a trace of an open file. On an error it closes the file.
func assemble(path string, f *container.File, look bool) (*capture.Trace, error) {
	sources, err := sourcesOf(f, look)
	if err == nil {
		if _, note := passes(sources); note != "" {
			f.Note("%s", note)
		}
		var t *capture.Trace
		if t, err = capture.Assemble(path, sources, capture.Manifest{}, f.Order, f.Notes, f); err == nil {
			return t, nil
		}
	} else {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return nil, hint.Also(err, f.Close())
}

// maxName bounds the names of tensors, in bytes, like the names in a line of a map.
const maxName = 1 << 10

// sourcesOf are the tensors of a file. Arrays of text are left out. Complex numbers, such as tables of rotations, belong to no entry of
// any order: in a file with tensors of known dtypes they are left out, too.
func sourcesOf(f *container.File, look bool) ([]capture.Source, error) {
	var sources []capture.Source
	some := slices.ContainsFunc(f.Tensors, func(t container.Tensor) bool { return t.Unknown == "" })
	for i := range f.Tensors {
		t := &f.Tensors[i]
		switch {
		case t.Name == "":
			return nil, errors.New("a tensor has no name")
		case len(t.Name) > maxName:
			return nil, hint.Add(fmt.Errorf("tensor %s has a name of %d bytes, more than %d", plain.Quote(t.Name), len(t.Name), maxName), "give the tensors short names: no map could name this one")
		case t.Unknown == "":
			sources = append(sources, capture.Source{Key: t.Name, Name: t.Name, DType: t.DType, Shape: t.Shape, Data: t, Printed: t.Printed})
		case look || isText(t.Unknown) || some && isComplex(t.Unknown):
			f.Note("%s left out: dtype %s, which is not read", plain.Quote(t.Name), plain.Quote(t.Unknown))
		default:
			return nil, hint.Add(fmt.Errorf("tensor %s has dtype %s, which is not read", plain.Quote(t.Name), plain.Quote(t.Unknown)),
				"leave it out of the dump, or save it in another dtype; save complex numbers as their real and imaginary parts")
		}
	}
	return sources, nil
}

// isText reports whether dtype is numpy's name of a dtype of text.
func isText(dtype string) bool {
	return len(dtype) > 1 && (dtype[1] == 'U' || dtype[1] == 'S')
}

// isComplex reports whether dtype is the name of a dtype of complex numbers, in torch, numpy or safetensors.
func isComplex(dtype string) bool {
	return strings.HasPrefix(dtype, "complex") || dtype == "C64" || dtype == "C128" || len(dtype) > 1 && dtype[1] == 'c'
}
