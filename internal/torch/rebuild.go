package torch

import (
	"errors"
	"fmt"
	"io"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/pickle"
	"github.com/tracediff/tracediff/internal/plain"
)

// storage is the memory that tensors are views of.
type storage struct {
	element
	data  io.ReaderAt
	bytes int64
	key   string
	base  int64 // bytes before it in data; of the legacy format known at the end
}

// owner gives a pickle the names of torch and numpy, and the storages of its archive.
type owner struct {
	pickled  io.ReaderAt // what long texts lie in
	spool    *container.Spool
	storage  func(e element, key string, numel int64) (*storage, error) // nil: the pickle has none
	big      bool                                                       // the storages have the highest byte of an element first
	pending  []*tensor                                                  // of the legacy format
	deferred bool                                                       // storages are known only after the pickle
}

var errTensor = errors.New("a malformed tensor")

// rebuild makes a tensor from (storage, offset, size, strides, requires_grad, hooks, metadata). Old files have the first four.
func rebuild(o *owner, args pickle.Tuple) (any, error) {
	if len(args) < 4 {
		return nil, errTensor
	}
	s, ok := args[0].(*storage)
	if !ok {
		return nil, errTensor
	}
	if len(args) > 6 {
		if err := unchanged(args[6]); err != nil {
			return nil, err
		}
	}
	return o.view(s, s.element, args[1:4])
}

// rebuildTyped is rebuild for (storage, offset, size, strides, requires_grad, hooks, dtype, metadata): the storage is of bytes.
func rebuildTyped(o *owner, args pickle.Tuple) (any, error) {
	if len(args) < 7 {
		return nil, errTensor
	}
	s, ok := args[0].(*storage)
	e, ok2 := args[6].(element)
	if !ok || !ok2 {
		return nil, errTensor
	}
	if len(args) > 7 {
		if err := unchanged(args[7]); err != nil {
			return nil, err
		}
	}
	return o.view(s, e, args[1:4])
}

// unchanged refuses a view that negates or conjugates: its storage has the elements before the operation.
func unchanged(metadata any) error {
	d, ok := metadata.(*pickle.Dict)
	if metadata == nil || ok && len(d.Keys) == 0 {
		return nil
	}
	if !ok {
		return errTensor
	}
	for i, v := range d.Values {
		if on, isBool := v.(bool); !isBool || on {
			return fmt.Errorf("a lazily changed view (%v), whose storage has other numbers: save its clone", d.Keys[i])
		}
	}
	return nil
}

// view makes a tensor of a storage: the offset and the strides are counted in elements.
func (o *owner) view(s *storage, e element, args pickle.Tuple) (*tensor, error) {
	offset, ok := args[0].(int64)
	shape, err := integers(args[1])
	if !ok || err != nil {
		return nil, errTensor
	}
	strides, err := integers(args[2])
	if err != nil {
		return nil, errTensor
	}
	t := &tensor{container.Tensor{DType: e.d, Unknown: e.unknown, Shape: shape, Strides: strides, Data: s.data, Big: o.big}}
	if e.unknown != "" {
		return t, nil
	}
	if offset < 0 || offset > s.bytes/e.size() {
		return nil, fmt.Errorf("a tensor that begins at element %d of a storage of %d bytes", offset, s.bytes)
	}
	t.Offset = offset * e.size()
	if err := t.Check(s.bytes); err != nil {
		return nil, fmt.Errorf("a tensor of storage %s: %w", plain.Quote(s.key), err)
	}
	if o.deferred {
		o.pending = append(o.pending, t)
	}
	return t, nil
}

// integers reads a tuple or list of integers. An empty list, the shape of a scalar, is not nil.
func integers(v any) ([]int, error) {
	var items []any
	switch v := v.(type) {
	case pickle.Tuple:
		items = v
	case *pickle.List:
		items = v.Items
	default:
		return nil, errTensor
	}
	if len(items) > container.MaxRank {
		return nil, fmt.Errorf("%d axes, more than %d", len(items), container.MaxRank)
	}
	out := make([]int, len(items))
	for i, item := range items {
		n, ok := item.(int64)
		if !ok || int64(int(n)) != n {
			return nil, errTensor
		}
		out[i] = int(n)
	}
	return out, nil
}

// Persistent returns the storage of ("storage", class, key, device, number of elements), which old files give a view besides.
func (o *owner) Persistent(id any) (any, error) {
	parts, ok := id.(pickle.Tuple)
	if !ok || len(parts) < 5 || o.storage == nil {
		return nil, errors.New("a thing outside the pickle that is not a storage")
	}
	kind, _ := parts[0].(string)
	e, isElement := parts[1].(element)
	key, isText := parts[2].(string)
	numel, isInt := parts[4].(int64)
	if kind != "storage" || !isElement || !isText || !isInt || numel < 0 {
		return nil, errors.New("a thing outside the pickle that is not a storage")
	}
	if len(parts) > 5 && parts[5] != nil {
		return nil, errors.New("a view of a storage as torch wrote it before version 0.4: save the file again with a newer torch")
	}
	return o.storage(e, key, numel)
}
