package torch

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/pickle"
	"github.com/tracediff/tracediff/internal/plain"
)

const (
	// maxDepth bounds containers in containers.
	maxDepth = 64
	// maxVisits bounds the values of a tree, counted wherever they are met: one list can stand in many places.
	maxVisits = 1 << 20
	// maxShared bounds how often containers are met that were met before.
	maxShared = 1 << 12
)

// flattener lists the tensors of a tree, by their path in it.
type flattener struct {
	file   *container.File
	seen   map[string]bool
	visits int
	met    map[any]bool // containers
	shared int
	others int // values that are no tensors
	first  string
}

// flatten adds the tensors of a value to f: a tensor in a dictionary by its key, in a list or tuple by its index, nested values by a path with
// dots. A value that is itself a tensor is called by the parameter whole.
func flatten(f *container.File, v any, whole string) error {
	w := flattener{file: f, seen: map[string]bool{}, met: map[any]bool{}}
	if t, ok := v.(*tensor); ok {
		return w.add(whole, t)
	}
	if err := w.walk("", v, 0); err != nil {
		return err
	}
	if w.others > 0 {
		f.Note("%d values that are not tensors left out, the first %s", w.others, plain.Quote(w.first))
	}
	if len(f.Tensors) == 0 {
		return errors.New("it has no tensors")
	}
	return nil
}

func (w *flattener) add(name string, t *tensor) error {
	if w.seen[name] {
		return fmt.Errorf("two tensors have the name %s once lists are written with dots", plain.Quote(name))
	}
	w.seen[name] = true
	t2 := t.Tensor
	t2.Name = name
	w.file.Tensors = append(w.file.Tensors, t2)
	return nil
}

// meet counts a container that was met before.
func (w *flattener) meet(v any) {
	switch c := v.(type) {
	case *pickle.List, *pickle.Dict:
	case pickle.Tuple:
		if len(c) == 0 {
			return
		}
		v = &c[0]
	default:
		return
	}
	if w.met[v] {
		w.shared++
	}
	w.met[v] = true
}

func (w *flattener) walk(path string, v any, depth int) error {
	w.meet(v)
	if w.visits++; w.visits > maxVisits || w.shared > maxShared || depth > maxDepth {
		return errors.New("a pickle bomb: lists in lists without an end")
	}
	switch v := v.(type) {
	case *tensor:
		return w.add(path, v)
	case *pickle.List:
		return w.items(path, v.Items, depth)
	case pickle.Tuple:
		return w.items(path, v, depth)
	case *pickle.Dict:
		return w.dict(path, v, depth)
	case nil:
	default:
		if w.others++; w.others == 1 {
			w.first = path
		}
	}
	return nil
}

func (w *flattener) items(path string, items []any, depth int) error {
	for i, item := range items {
		if err := w.walk(join(path, strconv.Itoa(i)), item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *flattener) dict(path string, d *pickle.Dict, depth int) error {
	// Of a key that was set twice the last value counts.
	last := make(map[string]int, len(d.Keys))
	names := make([]string, len(d.Keys))
	for i, key := range d.Keys {
		switch key := key.(type) {
		case string:
			names[i] = key
		case []byte: // a key of Python 2
			names[i] = string(key)
		case int64:
			names[i] = strconv.FormatInt(key, 10)
		default:
			return fmt.Errorf("a dictionary in %s has a key that is neither text nor a whole number", plain.Quote(path))
		}
		if at, twice := last[names[i]]; twice && d.Keys[at] != nil && !sameKey(d.Keys[at], key) {
			return fmt.Errorf("a dictionary has the key %s as a text and as a number", plain.Quote(names[i]))
		}
		last[names[i]] = i
	}
	for i, v := range d.Values {
		if last[names[i]] != i {
			continue
		}
		if err := w.walk(join(path, names[i]), v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// sameKey reports whether two keys of one text are of one kind.
func sameKey(a, b any) bool {
	_, numberA := a.(int64)
	_, numberB := b.(int64)
	return numberA == numberB
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	if len(path)+len(name) > 1<<12 {
		return path // the depth ends it
	}
	return path + "." + name
}
