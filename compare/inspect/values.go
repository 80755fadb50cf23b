package inspect

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
	"github.com/tracediff/tracediff/order"
)

// Values are single elements of a tensor. Integers beyond 2^53 are rounded, as float64 holds them.
type Values struct {
	Slice string `json:"slice"` // as it was asked for; empty for the whole tensor
	// Indexes has the tensor's indexes for each axis of the values; an axis with a bare index is left out.
	Indexes [][]int          `json:"indexes"`
	Axes    []string         `json:"axes"`   // the role of each of them
	Values  []measure.Number `json:"values"` // row-major
	Stats   Stats            `json:"stats"`  // of these
	// Texts are those of token ids, a text a value, where a tokenizer is known.
	Texts []string `json:"texts,omitempty"`
}

// few is how many elements a tensor has at most that is shown whole without being asked.
const few = 16

// maxTexts bounds the token ids that are shown with their texts, without being asked either.
const maxTexts = 256

// sliceWanted is the requested slice, or the whole of a small tensor; nil without a slice.
func (x *looker) sliceWanted() (*slice, error) {
	n := measure.Elements(x.rec.Shape)
	if x.o.Slice == "" {
		if n == 0 || n > few && !(x.isIDs() && n <= maxTexts) {
			return nil, nil
		}
	}
	s, err := parseSlice(x.o.Slice, x.rec.Shape)
	if err != nil {
		return nil, optionError(fmt.Errorf("--slice %q: %w", x.o.Slice, err),
			"%q has the shape %v; write an index or start:stop:step for each axis, as in --slice '0,:8,-1'", short(x.rec.Key), x.rec.Shape)
	}
	count := 1
	for _, a := range s.axes {
		// An axis of a tensor without elements can claim any size.
		if count *= a.count; max(count, a.count) > maxValues {
			return nil, optionError(fmt.Errorf("--slice %q: more than %d values", x.o.Slice, maxValues), "narrow it; the shape is %v", x.rec.Shape)
		}
	}
	return s, nil
}

// isIDs reports whether the tensor holds token ids whose texts are known.
func (x *looker) isIDs() bool { return x.rec.Name == order.InputIDs && x.o.TokenText != nil }

// values reads the slice.
func (x *looker) values() (*Values, error) {
	if x.index == nil {
		return nil, nil
	}
	v := &Values{Slice: x.index.text, Indexes: [][]int{}, Axes: []string{}, Values: []measure.Number{}}
	for i, a := range x.index.axes {
		if !a.dropped {
			v.Indexes, v.Axes = append(v.Indexes, a.indexes()), append(v.Axes, x.axes[i])
		}
	}
	read, err := x.read(x.index.axes)
	if err != nil {
		return nil, err
	}
	for _, e := range read {
		v.Values = append(v.Values, measure.Number(e))
		if x.isIDs() {
			v.Texts = append(v.Texts, x.o.TokenText(int(e)))
		}
	}
	v.Stats = statsOf(read, x.source.mask)
	return v, nil
}

// statsOf are the statistics of elements in memory, which are overwritten.
func statsOf(x []float64, mask float64) Stats {
	var t tally
	for part := range slices.Chunk(x, lanes.Strip) {
		t.add(part, mask)
	}
	return t.stats()
}

// read reads the elements at some indexes, of each row one by one, or at once where they lie side by side.
func (x *looker) read(axes []steps) ([]float64, error) {
	count := 1
	for _, a := range axes {
		count *= a.count
	}
	out := make([]float64, 0, count)
	if count == 0 {
		return out, nil
	}
	run := 1
	if last := len(axes) - 1; last >= 0 && axes[last].step == 1 {
		run = axes[last].count
	}
	raw := make([]byte, run*x.rec.DType.Size())
	for n := 0; n < count; n += run {
		if _, err := x.t.ReadAt(x.rec, raw, x.offset(axes, n)); err != nil {
			return nil, err
		}
		out = out[:n+run]
		if err := floats.Decode(out[n:], x.rec.DType, raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// offset is where the n-th element of a slice lies, in bytes from the start of the tensor.
func (x *looker) offset(axes []steps, n int) int64 {
	at, stride := 0, 1
	for i := len(axes) - 1; i >= 0; i-- {
		a := axes[i]
		at += (a.start + n%a.count*a.step) * stride
		n /= a.count
		stride *= x.rec.Shape[i]
	}
	return int64(at) * int64(x.rec.DType.Size())
}

// minus is the difference of the same slice of another tensor of the same shape.
func (v *Values) minus(w *Values) *Values {
	d := &Values{Slice: v.Slice, Indexes: v.Indexes, Axes: v.Axes, Values: make([]measure.Number, len(v.Values))}
	plain := make([]float64, len(v.Values))
	for i := range v.Values {
		d.Values[i] = v.Values[i] - w.Values[i]
		plain[i] = float64(d.Values[i])
	}
	d.Stats = statsOf(plain, bothMasked)
	return d
}
