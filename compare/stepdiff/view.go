package stepdiff

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order/recorded"
)

// maxElements bounds the views that are told apart element by element. Larger ones are told apart by strides: they may then differ
// where the elements are the same, and never the other way round.
const maxElements = 1 << 16

// without1 is a shape without the axes of one element.
func without1(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}

// squeezed tells layouts apart, but for axes of one element.
func squeezed(shape, stride []int) string {
	var out []int
	for a, n := range shape {
		if n != 1 {
			out = append(out, n, stride[a])
		}
	}
	return fmt.Sprint(out)
}

// sameView reports whether two references show the same elements of one value in one shape.
func sameView(a, b recorded.Ref) bool {
	return a.Off == b.Off && squeezed(a.Shape, a.Stride) == squeezed(b.Shape, b.Stride)
}

// covers reports whether a name shows all elements of a value.
func covers(r recorded.Ref, v recorded.Value) bool {
	return r.Off == 0 && measure.Elements(r.Shape) == measure.Elements(v.Shape) && dense(r.Shape, r.Stride)
}

// dense reports whether strides are those of the axes in some order, without gaps.
func dense(shape, stride []int) bool {
	type axis struct{ n, by int }
	var all []axis
	for a, n := range shape {
		if n != 1 {
			all = append(all, axis{n, stride[a]})
		}
	}
	slices.SortFunc(all, func(a, b axis) int { return a.by - b.by })
	n := 1
	for _, a := range all {
		if a.by != n {
			return false
		}
		n *= a.n
	}
	return true
}

// elements tells which elements of a tensor a view of its memory shows, whatever the order in which memory has them: the tensor's
// own elements lie by a shape and strides.
func elements(r recorded.Ref, shape, stride []int) string {
	shown := fmt.Sprint(without1(r.Shape))
	if measure.Elements(r.Shape) > maxElements || measure.Elements(shape) > maxElements || !dense(shape, stride) {
		return fmt.Sprint(shown, " by ", squeezed(r.Shape, r.Stride), r.Off, " of ", squeezed(shape, stride))
	}
	at := make([]int, measure.Elements(shape)) // by place in memory, the number of the element
	i := 0
	walk(shape, stride, 0, func(place int) {
		at[place] = i
		i++
	})
	h := sha256.New()
	same, n := true, 0
	var word [8]byte
	walk(r.Shape, r.Stride, r.Off, func(place int) {
		same = same && at[place] == n
		n++
		binary.LittleEndian.PutUint64(word[:], uint64(at[place]))
		h.Write(word[:])
	})
	if same && n == len(at) {
		return shown
	}
	return shown + " " + hex.EncodeToString(h.Sum(nil))
}

// seen is a view for people: its sizes, and for a partial axis the range: [2 7 6:12].
func seen(r recorded.Ref, shape, stride []int) string {
	var words []string
	off := r.Off
	parts := map[int]string{} // the partial axes, by stride
	order := make([]int, len(shape))
	for a := range order {
		order[a] = a
	}
	slices.SortStableFunc(order, func(a, b int) int { return stride[b] - stride[a] })
	for _, a := range order {
		if shape[a] == 1 || stride[a] == 0 {
			continue
		}
		first := off / stride[a]
		off %= stride[a]
		at := slices.IndexFunc(r.Stride, func(by int) bool { return by == stride[a] })
		for at >= 0 && r.Shape[at] == 1 && at+1 < len(r.Stride) && slices.Contains(r.Stride[at+1:], stride[a]) {
			at += 1 + slices.Index(r.Stride[at+1:], stride[a])
		}
		if at < 0 || r.Shape[at] == 1 || first+r.Shape[at] > shape[a] { // not an axis of the tensor
			return fmt.Sprint(without1(r.Shape))
		}
		if r.Shape[at] < shape[a] {
			parts[stride[a]] = fmt.Sprintf("%d:%d", first, first+r.Shape[at])
		}
	}
	for a, n := range r.Shape {
		if part := parts[r.Stride[a]]; part != "" && n != 1 {
			words = append(words, part)
		} else if n != 1 {
			words = append(words, fmt.Sprint(n))
		}
	}
	return fmt.Sprint(words)
}

// walk visits the places of a view's elements, row by row.
func walk(shape, stride []int, off int, visit func(int)) {
	if len(shape) == 0 {
		visit(off)
		return
	}
	for i := range shape[0] {
		walk(shape[1:], stride[1:], off+i*stride[0], visit)
	}
}

// axes are the axes of a setting, counted from the end among the axes with more than one element. An axis of one element is named by its
// distance from the end.
func axes(v any, shape []int) any {
	one := func(v any) any {
		d, ok := v.(int)
		if d < 0 {
			d += len(shape)
		}
		if !ok || d < 0 || d >= len(shape) {
			return v
		}
		if shape[d] == 1 {
			return fmt.Sprintf("%d of one", d-len(shape))
		}
		return -len(without1(shape[d:]))
	}
	list, ok := v.([]any)
	if !ok {
		return one(v)
	}
	all := make([]any, len(list))
	for i := range list {
		all[i] = one(list[i])
	}
	return all
}
