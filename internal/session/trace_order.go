package session

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// TraceOrder is the order of the model that either trace declares; nil when there is none, and the traces have to know their
// own order.
func TraceOrder(local, ref *capture.Trace) (*order.List, error) {
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

// namedOrder is the order of the model in a folder that was named, for traces that declare none; nil when they do, of a model
// without an order, or when the local one has no tensor that it knows.
func namedOrder(s *Settings, local, ref *capture.Trace) (*order.List, error) {
	dir := s.Model
	if local.Manifest().Config != nil || ref.Manifest().Config != nil {
		return nil, nil
	}
	config, err := readModelConfig(dir)
	var list *order.List
	if err == nil {
		list, err = order.New(config)
	}
	if order.Undescribed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	a, err := s.fit(local, list)
	if err != nil {
		return nil, err
	}
	for _, r := range a.Trace.Records() {
		if r.Name != order.InputIDs && list.Index(r.Name) >= 0 {
			return list, nil
		}
	}
	return nil, nil
}

// picked narrows an order to the names in the user's file, if there is one.
func picked(list *order.List, file string) (*order.List, error) {
	if file == "" {
		return list, nil
	}
	names, _, err := readOrder(file)
	if err != nil || list == nil {
		return names, err
	}
	return list.Pick(names), nil
}

// ModelOrder is the order of a model directory, of which only config.json is read.
func ModelOrder(dir, file string) (*order.List, error) {
	config, err := readModelConfig(dir)
	if err != nil {
		return nil, err
	}
	list, err := order.New(config)
	if err != nil || file == "" {
		return list, err
	}
	names, _, err := readOrder(file)
	if err != nil {
		return nil, err
	}
	return list.Pick(names), nil
}
