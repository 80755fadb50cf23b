package lengths

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

func (s *stretcher) step(all []*recorded.Line, x int) (*recorded.Step, error) {
	first := all[0].Step
	if first.Op == recorded.Guard {
		return nil, errors.New("the Python code branched on its numbers, and may branch differently for other numbers")
	}
	for _, l := range all {
		if o := l.Step; o.Op != first.Op || len(o.In) != len(first.In) || len(o.Out) != len(first.Out) {
			return nil, errOther
		}
	}
	out := &recorded.Step{Op: first.Op, First: len(s.to.Values), Attr: map[string]any{}, Source: first.Source}
	for i := range first.In {
		refs := make([]recorded.Ref, len(all))
		for k, l := range all {
			refs[k] = l.Step.In[i]
		}
		ref, err := s.ref(refs, x)
		if err != nil {
			return nil, err
		}
		out.In = append(out.In, ref)
	}
	settings := make([]any, len(all))
	for k, l := range all {
		settings[k] = l.Step.Attr
	}
	attr, err := s.setting(settings, x)
	if err != nil {
		return nil, err
	}
	out.Attr = attr.(map[string]any)
	for i := range first.Out {
		values := make([]recorded.Value, len(all))
		for k, l := range all {
			values[k] = l.Step.Out[i]
		}
		v, err := s.value(values, x)
		if err != nil {
			return nil, err
		}
		out.Out = append(out.Out, v)
	}
	s.to.Values = append(s.to.Values, out.Out...)
	return out, nil
}

// value is a result.
func (s *stretcher) value(all []recorded.Value, x int) (recorded.Value, error) {
	out := recorded.Value{DType: all[0].DType}
	shapes, strides := make([][]int, len(all)), make([][]int, len(all))
	for k, v := range all {
		if shapes[k], strides[k] = v.Shape, v.Stride; v.DType != out.DType {
			return out, errOther
		}
	}
	var err error
	if out.Shape, out.Stride, err = s.layout(shapes, strides, x); err != nil {
		return out, err
	}
	n, err := recorded.Elements(out.Shape)
	if err != nil {
		return out, err
	}
	if _, ok := recorded.AxisOrder(out.Shape, out.Stride); !ok && n > 0 {
		return out, errSizes
	}
	return out, nil
}

// layout are a shape and its strides. The stride of an axis of one element says nothing.
func (s *stretcher) layout(shapes, strides [][]int, x int) (shape, stride []int, err error) {
	if shape, err = s.sizes(shapes, x); err != nil {
		return nil, nil, err
	}
	stride = make([]int, len(shape))
	for a := range shape {
		of := make([]int, len(strides))
		single := shape[a] == 1
		for k := range strides {
			of[k], single = strides[k][a], single && shapes[k][a] == 1
		}
		if stride[a], err = s.stride(shapes, strides, shape, a, of, x); err != nil {
			if !single {
				return nil, nil, err
			}
			stride[a] = of[0]
		}
	}
	return shape, stride, nil
}

// stride returns the stride of an axis: the size that sizeAt derives from the samples. If sizeAt fails, for example
// for a stride that grows with the square of the length and has too few samples, the stride is row-major, if every
// sample's stride is row-major.
func (s *stretcher) stride(shapes, strides [][]int, shape []int, axis int, of []int, x int) (int, error) {
	n, err := sizeAt(s.samples, of, x)
	if err == nil {
		return n, nil
	}
	for k := range strides {
		if strides[k][axis] != recorded.RowMajor(shapes[k])[axis] {
			return 0, err
		}
	}
	return recorded.RowMajor(shape)[axis], nil
}

// sizes are several sizes of as many axes each.
func (s *stretcher) sizes(all [][]int, x int) ([]int, error) {
	out := make([]int, len(all[0]))
	of := make([]int, len(all))
	for a := range out {
		for k := range all {
			if len(all[k]) != len(out) {
				return nil, errOther
			}
			of[k] = all[k][a]
		}
		var err error
		if out[a], err = sizeAt(s.samples, of, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ref is an operand.
func (s *stretcher) ref(all []recorded.Ref, x int) (out recorded.Ref, err error) {
	out = all[0]
	offsets, shapes, strides := make([]int, len(all)), make([][]int, len(all)), make([][]int, len(all))
	for k, r := range all {
		if r.Kind != out.Kind || r.Weight != out.Weight || len(r.Shape) != len(out.Shape) {
			return out, errOther
		}
		offsets[k], shapes[k], strides[k] = r.Off, r.Shape, r.Stride
	}
	elements := 0
	switch out.Kind {
	case recorded.ToNothing:
		return out, nil
	case recorded.ToNumber:
		numbers := make([]any, len(all))
		for k, r := range all {
			numbers[k] = r.Number
		}
		number, err := s.setting(numbers, x)
		if err == nil {
			out.Number = number.(float64)
		}
		return out, err
	case recorded.ToWeight:
		elements = program.Size(s.from.Weights[out.Weight].Shape)
	case recorded.ToConstant:
		if out.Index, err = s.constant(all, x); err == nil {
			elements = program.Size(s.to.Constants[out.Index].Shape)
		}
	case recorded.ToValue:
		if out.Index, err = s.result(all); err == nil {
			elements = program.Size(s.to.Values[out.Index].Shape)
		}
	}
	if err != nil {
		return out, err
	}
	if out.Shape, out.Stride, err = s.layout(shapes, strides, x); err != nil {
		return out, err
	}
	if out.Off, err = sizeAt(s.samples, offsets, x); err != nil {
		return out, err
	}
	if _, err := recorded.Elements(out.Shape); err != nil {
		return out, err
	}
	if !program.Within(elements, out.Shape, out.Stride, out.Off) {
		return out, errSizes
	}
	return out, nil
}

// result is the number of a value: of the same place of the same pass, or of one that is as many passes before.
func (s *stretcher) result(all []recorded.Ref) (int, error) {
	var back, pass, place []int
	for k, r := range all {
		in := &s.samples[k]
		j := in.at
		for j > 0 && in.run[j].First > r.Index {
			j--
		}
		back, pass, place = append(back, in.at-j), append(pass, j), append(place, r.Index-in.run[j].First)
	}
	same := func(of []int) bool { return !slices.ContainsFunc(of, func(n int) bool { return n != of[0] }) }
	at := s.at
	switch {
	case !same(place):
		return 0, errOther
	case same(back) && back[0] == 0:
	case same(back) && same(pass) && s.at-back[0] != pass[0]:
		return 0, errors.New("it is not known which earlier pass it reads: too few passes were recorded after the second")
	case same(pass):
		at = pass[0]
	case same(back):
		at -= back[0]
	default:
		return 0, errOther
	}
	first, end := s.pass.First, len(s.to.Values)
	if at < s.at {
		if first = s.to.Passes[at].First; at+1 < s.at {
			end = s.to.Passes[at+1].First
		} else {
			end = s.pass.First
		}
	} else if back[0] > 0 {
		return 0, errOther
	}
	if first+place[0] >= end {
		return 0, errOther
	}
	return first + place[0], nil
}

// setting is a setting: whole numbers follow the length, all else is the same for every one.
func (s *stretcher) setting(all []any, x int) (any, error) {
	switch first := all[0].(type) {
	case map[string]any:
		out := map[string]any{}
		for name := range first {
			of := make([]any, len(all))
			for k := range all {
				one, _ := all[k].(map[string]any)
				v, ok := one[name]
				if of[k] = v; !ok || len(one) != len(first) {
					return nil, errOther
				}
			}
			var err error
			if out[name], err = s.setting(of, x); err != nil {
				return nil, fmt.Errorf("its %s %w", name, err)
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(first))
		for i := range first {
			of := make([]any, len(all))
			for k := range all {
				one, _ := all[k].([]any)
				if len(one) != len(first) {
					return nil, errOther
				}
				of[k] = one[i]
			}
			var err error
			if out[i], err = s.setting(of, x); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	sizes := make([]int, len(all))
	same, whole := true, true
	for k, v := range all {
		same = same && sameNumber(v, all[0])
		n, ok := v.(int)
		if f, real := v.(float64); real && f == float64(int(f)) {
			n, ok = int(f), true
		}
		sizes[k], whole = n, whole && ok
	}
	switch {
	case same:
		return all[0], nil
	case !whole:
		return nil, errSizes
	}
	n, err := sizeAt(s.samples, sizes, x)
	if _, real := all[0].(float64); real {
		return float64(n), err
	}
	return n, err
}

// sameNumber reports whether two settings are one; NaN is itself.
func sameNumber(a, b any) bool {
	x, isX := a.(float64)
	y, isY := b.(float64)
	return a == b || isX && isY && x != x && y != y
}
