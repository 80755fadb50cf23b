package session

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// recordList is the order, or the user's list with what the order knows of its names.
func (j *Job) recordList() (*order.List, error) {
	if j.Order == "" {
		return j.list, nil
	}
	names, text, err := readOrder(j.Order)
	if err != nil {
		return nil, err
	}
	j.streamed = text
	return j.list.Pick(names), nil
}

// maxOrder bounds an order file: a million names of ordinary length.
const maxOrder = 64 << 20

const orderHint = "--order wants a file with one tensor name a line; tracediff order --format text prints one"

// readOrder reads a user's order file. Of a stream, which cannot be read again by the next compare, it returns the text.
func readOrder(path string) (names *order.List, streamed []byte, err error) {
	text, stream, err := files.ReadStream(path, maxOrder)
	if err != nil {
		return nil, nil, hint.Add(fmt.Errorf("reading the order: %w", err), orderHint)
	}
	names, err = order.ReadNames(bytes.NewReader(text))
	if err != nil {
		return nil, nil, hint.Add(fmt.Errorf("%s: %w", path, err), orderHint)
	}
	if !stream {
		text = nil
	}
	return names, text, nil
}

// namesFile keeps, in the folder of traces, the names of an order that was a stream.
const namesFile = "names.txt"

// save keeps the settings for the next comparison.
func (j *Job) save() error {
	s := j.Settings
	if j.streamed != nil {
		s.Order = filepath.Join(j.dir, namesFile)
		if err := WriteWhole(s.Order, j.streamed); err != nil {
			return hint.Add(fmt.Errorf("keeping the order: %w", err), "--dir names a folder that can be written to")
		}
	}
	return s.save(j.dir)
}
