// Package orders says which order a trace or a model has, and what of it a run can have: the order that describes the model's family, a
// program that was recorded of the model, or the names in a person's file.
package orders

import (
	"bytes"
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/order"
)

// OfTraces returns the order of the model in either trace's manifest. It returns nil if there is no such order; the
// traces then need an order of their own, such as a recorded program.
func OfTraces(local, ref *capture.Trace) (*order.List, error) {
	var list *order.List
	for _, t := range []*capture.Trace{ref, local} {
		raw := t.Manifest().Config
		if raw == nil {
			continue
		}
		config, err := order.ParseCanonical(raw)
		if err == nil {
			list, err = order.New(config)
		}
		if err != nil && !order.Undescribed(err) { // of another family: its traces may know their order
			return nil, fmt.Errorf("%s: its configuration: %w", t.Path(), err)
		}
		break
	}
	return list, nil
}

// Picked narrows an order to the names in the user's file, if there is one.
func Picked(list *order.List, file string) (*order.List, error) {
	if file == "" {
		return list, nil
	}
	names, _, err := ReadNames(file)
	if err != nil || list == nil {
		return names, err
	}
	return list.Pick(names), nil
}

// OfModel returns the order of a model directory. Only config.json is read.
func OfModel(dir, file string) (*order.List, error) {
	config, err := origin.ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	list, err := order.New(config)
	if err != nil || file == "" {
		return list, err
	}
	names, _, err := ReadNames(file)
	if err != nil {
		return nil, err
	}
	return list.Pick(names), nil
}

// maxOrder bounds an order file: a million names of ordinary length.
const maxOrder = 64 << 20

const orderHint = "--order wants a file with one tensor name a line; tracediff order --format text prints one"

// ReadNames reads a user's order file. Of a stream, which cannot be read again by the next compare, it returns the text.
func ReadNames(path string) (names *order.List, streamed []byte, err error) {
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
