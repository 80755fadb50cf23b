package portweights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
)

// side is the checkpoint as it is compared.
func (o *openedWeights) side() weights.Side {
	s := weights.Side{Path: o.path, Format: o.file.Format, Bytes: o.bytes, Notes: o.file.Notes}
	for i := range o.list {
		w := &o.list[i]
		t := o.tensor(w, o.turned[w.Key])
		t.Instead = o.instead(w)
		s.Tensors = append(s.Tensors, t)
	}
	return s
}

// tensor makes of a weight what is compared. row says where in the file each of its rows lies; nil if the layout of the weight says that.
func (o *openedWeights) tensor(w *mapping.Weight, row func(int) int) *weights.Tensor {
	t := &weights.Tensor{Name: w.Name, Key: w.Key, Shape: w.Shape, DType: w.DType, Unknown: o.file.Tensors[w.From].Unknown, Data: w.Data, How: strings.Trim(w.How, " ()"), Place: o.place(w.Places)}
	if w.Folded {
		t.Add = 1
	}
	q := o.codes[w.From]
	if q == nil || w.Planes == nil {
		return t
	}
	t.Coding = q.Coding(w.Planes)
	if slices.Equal(q.Shape, w.Shape) && (row != nil || w.How == "") {
		g := t.Coding.Data()
		g.Codes, g.Row = q, row
	}
	return t
}

// instead returns a function giving a tensor the layout that the file's format uses for another name, see
// [weights.Tensor]: if names are exchanged in a file, a tensor has the layout of its true name. It returns nil if
// the format has one layout for all names.
func (o *openedWeights) instead(w *mapping.Weight) func(original string) *weights.Tensor {
	given, ok := o.given[w.Name]
	if !ok || o.arch != "llama" {
		return nil
	}
	var mu sync.Mutex
	made := map[string]*weights.Tensor{}
	return func(original string) *weights.Tensor {
		rule := o.convention(original, given.Shape)
		if rule == o.convention(given.Name, given.Shape) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if t, known := made[rule]; known {
			return t
		}
		made[rule] = nil // where the heads do not fit the rows
		if rule == "" {
			made[rule] = o.tensor(&given, nil)
		} else if list, err := o.byRules(fmt.Sprintf("%q = { to = %[1]q, %s }", given.Name, rule), []mapping.Weight{given}); err == nil {
			made[rule] = o.tensor(&list[0], o.rows(original, given.Shape))
		}
		return made[rule]
	}
}

// A place is the number of a tensor in a file and the number of an element in the tensor, packed into eight bytes.
// A map moves places like elements.
const placeBits = 40

// places are those of the elements of a tensor of the file.
type places int

// placesOf are those of a tensor of a shape; nil where they do not fit into eight bytes.
func placesOf(n int, shape []int) io.ReaderAt {
	if elements, ok := hooks.Elements(shape); !ok || elements >= 1<<placeBits || n >= 1<<(63-placeBits) {
		return nil
	}
	return places(n)
}

// ReadAt makes them.
func (n places) ReadAt(p []byte, off int64) (int, error) {
	var b [8]byte
	for done := 0; done < len(p); {
		at := off + int64(done)
		binary.LittleEndian.PutUint64(b[:], uint64(n)<<placeBits|uint64(at/8))
		done += copy(p[done:], b[at%8:])
	}
	return len(p), nil
}

// place finds elements of a tensor by their places; nil where several tensors make an element.
func (o *openedWeights) place(of io.ReaderAt) func(element int) (weights.Spot, bool) {
	if of == nil {
		return nil
	}
	return func(element int) (weights.Spot, bool) {
		var b [8]byte
		if n, err := of.ReadAt(b[:], 8*int64(element)); n < len(b) || err != nil && !errors.Is(err, io.EOF) {
			return weights.Spot{}, false
		}
		at := binary.LittleEndian.Uint64(b[:])
		n := int(at >> placeBits)
		if n >= len(o.file.Tensors) {
			return weights.Spot{}, false
		}
		t, element := &o.file.Tensors[n], int(at&(1<<placeBits-1))
		columns := 1
		if len(t.Shape) > 0 {
			columns = max(1, t.Shape[len(t.Shape)-1])
		}
		return weights.Spot{Key: t.Name, Row: element / columns, Column: element % columns}, true
	}
}
