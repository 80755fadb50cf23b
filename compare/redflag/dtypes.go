package redflag

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

const (
	f16 = hooks.F16
	f32 = hooks.F32
)

// dtypes compares the dtype of each tensor with the dtype of the model, and with the numbers in the tensor.
func dtypes(_ context.Context, v *view, f *found) error {
	body := bodyOf(v)
	for i := range v.subjects {
		s := &v.subjects[i]
		if s.DType.Float() && !s.is(roleMask|roleTable) && s.elements() > 0 {
			otherDType(v, f, s, body)
			narrowed(v, f, s)
		}
	}
	return nil
}

// free reports whether the dtype of a tensor may differ from the dtype of the model: the tensor is not a float, is float32 by design, has a dtype in
// the order, or is no part of the forward pass.
func (s *subject) free() bool {
	return !s.DType.Float() || s.is(roleMask|roleTable|roleGradient|roleLoss|roleParameter|roleWide) || s.entry != nil && s.entry.DType != ""
}

// bodyOf is the dtype of most tensors that are not free; 0 without any. If two dtypes have equally many tensors, the dtype that reaches the number
// first counts.
func bodyOf(v *view) hooks.DType {
	count := map[hooks.DType]int{}
	var most hooks.DType
	for i := range v.subjects {
		if s := &v.subjects[i]; !s.free() {
			count[s.DType]++
			if count[s.DType] > count[most] {
				most = s.DType
			}
		}
	}
	return most
}

// otherDType looks for a tensor with another dtype than the order or the model has.
func otherDType(v *view, f *found, s *subject, body hooks.DType) {
	want, why := body, "most of the model is "+body.String()
	switch {
	case s.entry != nil && s.entry.DType != "":
		declared, err := hooks.ParseDType(s.entry.DType)
		if err != nil {
			return
		}
		want, why = declared, "the order has "+declared.String()+" here"
	case s.free(), (s.is(roleInterior) || s.dim(1) <= fewNumbers) && floats.Precision(s.DType) > floats.Precision(body):
		return
	}
	if !f.look(DTypeChange) || s.DType == want {
		return
	}
	near := ""
	if from := neighbour(v, s); from != nil {
		near = fmt.Sprintf(", %s before it is %s", from.name, from.DType)
	}
	f.raise(DTypeChange, s, []Number{number("bits", float64(8*s.DType.Size())), number("bits_wanted", float64(8*want.Size()))},
		"it is %s%s: %s", s.DType, near, why)
}

// weights compares the dtype of weight matrices with the dtype of the activations. Vectors, such as the weights of norms, are often wider by design,
// and 8-bit weights are narrower by design.
func weights(_ context.Context, v *view, f *found) error {
	body := bodyOf(v)
	size := map[hooks.DType]int64{}
	first := map[hooks.DType]*subject{}
	var most hooks.DType
	matrices, activations := 0, 0
	for i := range v.subjects {
		if s := &v.subjects[i]; !s.free() && s.DType == body && len(s.Shape) >= 2 {
			activations++
		}
	}
	for i := range v.subjects {
		s := &v.subjects[i]
		if activations == 0 || !s.is(roleParameter) || !s.DType.Float() || s.is(roleGradient) || len(s.Shape) < 2 || s.DType.Size() < 2 || body == 0 || !f.look(WeightDType) {
			continue
		}
		matrices++
		if first[s.DType] == nil {
			first[s.DType] = s
		}
		if size[s.DType] += s.elements(); size[s.DType] > size[most] {
			most = s.DType
		}
	}
	if matrices > activations || most == body || matrices == 0 { // a checkpoint with a few buffers has no activations
		return nil
	}
	for i := range v.subjects {
		if s := &v.subjects[i]; s.is(roleParameter) && !s.is(roleGradient) && len(s.Shape) >= 2 && s.DType == most {
			f.raise(WeightDType, s, []Number{number("bits", float64(8*most.Size())), number("bits_of_model", float64(8*body.Size())), number("weights", float64(matrices))},
				"it is %s, as most of the %d weights are, and most of the model is %s", most, matrices, body)
		}
	}
	return nil
}

// neighbour is the nearest float tensor before s: an input of s, or, for a name outside the order, the tensor before s in the file. nil if not known.
func neighbour(v *view, s *subject) *subject {
	for _, p := range v.parents(s) {
		if from := v.find(p.pass, p.name); from.DType.Float() && !from.free() {
			return from
		}
	}
	if v.list != nil && s.entry != nil || !v.t.Sequence() {
		return nil
	}
	for i := v.index[s.place()] - 1; i >= 0; i-- {
		if from := &v.subjects[i]; !from.free() {
			return from
		}
	}
	return nil
}

// narrowed looks for a tensor whose numbers all fit a narrower type.
func narrowed(v *view, f *found, s *subject) {
	n := &s.seen
	few := len(n.narrow) > 0 && float64(len(n.plain)) < v.limits.values.plain // numbers are counted only while a narrower type fits
	if s.is(roleCopied|roleParameter) || narrower(s.DType) == nil || few || !f.look(NarrowValues) || len(n.narrow) == 0 {
		return
	}
	var types []string
	for _, d := range n.narrow {
		types = append(types, d.String())
	}
	f.raise(NarrowValues, s, []Number{number("elements", float64(s.elements())), number("different", float64(len(n.plain))), number("bits", float64(8*s.DType.Size())), number("bits_needed", float64(8*n.narrow[0].Size()))},
		"it is %s, and each of its %d elements is a number of %s; at least %d different numbers are neither 0 nor ±1", s.DType, s.elements(), strings.Join(types, " and of "), len(n.plain))
}
