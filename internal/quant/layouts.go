package quant

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// mlx is what mx.quantize stores: codes of consecutive inputs in uint32, a scale and a bias for each group of inputs.
func (f *finder) mlx(t *container.Tensor, name string) error {
	if f.Method != "" {
		return fmt.Errorf("uint32, as MLX packs codes, but config.json says %s", plain.Quote(f.Method))
	}
	if err := matrix(t, 2, hooks.U32); err != nil {
		return err
	}
	s := f.settings
	if layer, ok := f.layers[name]; ok && string(layer) != "true" {
		if err := json.Unmarshal(layer, &s); err != nil {
			return fmt.Errorf("config.json: quantization of this layer: %w", err)
		}
	}
	switch {
	case s.Mode != "" && s.Mode != "affine":
		return hint.Add(fmt.Errorf("MLX mode %s, which is not read", plain.Quote(s.Mode)), next)
	case s.Bits == 0 || s.Group == 0:
		return hint.Add(errors.New("uint32 codes of an unknown number of bits"), "config.json of mlx-lm has them under \"quantization\": name its folder")
	case s.Bits != 4 && s.Bits != 8:
		return hint.Add(fmt.Errorf("MLX with %d bits, which is not read", s.Bits), next)
	}
	words := t.Shape[len(t.Shape)-1]
	inputs := words * (32 / s.Bits)
	if s.Group < 8 || inputs%s.Group != 0 || s.Group > maxRow {
		return fmt.Errorf("%d inputs in groups of %d", inputs, s.Group)
	}
	groups := with(t.Shape, inputs/s.Group)
	scales, err := f.take(name+".scales", true, groups, numbers...)
	if err != nil {
		return err
	}
	biases, err := f.take(name+".biases", true, groups, scales.DType)
	if err != nil {
		return err
	}
	f.add(t, name, with(t.Shape, inputs), Scheme{Name: fmt.Sprintf("MLX affine, %d bits, groups of %d", s.Bits, s.Group), Mixed: true}, &rows{
		codes: *t, bits: s.Bits, group: s.Group, scales: *scales, by: 1, offsets: biases, scale: affineScale, early: roundings[scales.DType],
	})
	return nil
}

// packed reads compressed-tensors' pack-quantized weights: codes of consecutive inputs in int32, the lowest code as zero.
func (f *finder) packed(t *container.Tensor, name string) error {
	if f.Method != "" && f.Method != "compressed-tensors" {
		return fmt.Errorf("packed as compressed-tensors does, but config.json says %s", plain.Quote(f.Method))
	}
	if f.Format != "" && f.Format != "pack-quantized" && f.Format != "mixed-precision" {
		return hint.Add(fmt.Errorf("compressed-tensors of format %s, which is not read", plain.Quote(f.Format)), next)
	}
	if err := matrix(t, 2, hooks.I32); err != nil || len(t.Shape) != 2 {
		return errors.Join(err, f.axes(t))
	}
	inputs, err := f.inputs(t, name)
	if err != nil {
		return err
	}
	bits := t.Shape[1] * 32 / inputs
	if bits != 4 && bits != 8 || inputs*bits != t.Shape[1]*32 {
		return hint.Add(fmt.Errorf("%d inputs in %d int32, which is neither 4 nor 8 bits each and is not read", inputs, t.Shape[1]), next)
	}
	for _, part := range []string{"weight_zero_point", "weight_g_idx"} {
		if _, ok := f.byName[name+"."+part]; ok {
			return hint.Add(fmt.Errorf("compressed-tensors with %s, which is not read", part), next)
		}
	}
	return f.scaled(t, name, inputs, &rows{codes: *t, bits: bits, lo: -1 << (bits - 1), by: 1, top: float64(int(1)<<bits-1) / 2, scale: symmetric})
}

func (f *finder) axes(t *container.Tensor) error {
	if len(t.Shape) == 2 {
		return nil
	}
	return fmt.Errorf("shape %v does not have two axes", t.Shape)
}

// inputs reads weight_shape.
func (f *finder) inputs(t *container.Tensor, name string) (int, error) {
	shape, err := f.take(name+".weight_shape", true, []int{2}, hooks.I64, hooks.I32)
	if err != nil {
		return 0, err
	}
	raw := make([]byte, shape.Size())
	if err := fill(shape, raw, 0); err != nil {
		return 0, err
	}
	outputs, inputs := binary.LittleEndian.Uint64(append(raw[:len(raw)/2:len(raw)/2], 0, 0, 0, 0)), binary.LittleEndian.Uint64(append(raw[len(raw)/2:], 0, 0, 0, 0))
	if outputs != uint64(t.Shape[0]) || inputs == 0 || inputs > maxRow {
		return 0, fmt.Errorf("weight_shape is [%d %d], but the codes are %v", outputs, inputs, t.Shape)
	}
	return int(inputs), nil
}

// scaleNames are what scales of integers are called, after the name of the layer.
var scaleNames = []string{".weight_scale", ".weight_scales", ".weight.scale", ".scales", ".scale"}

// scale finds the scales of integers, under one of their names.
func (f *finder) scale(name string) (*container.Tensor, error) {
	var found *container.Tensor
	for _, end := range scaleNames {
		t, ok := f.byName[name+end]
		if ok && found != nil {
			return nil, fmt.Errorf("both %s and %s", plain.Quote(found.Name), plain.Quote(t.Name))
		}
		if ok {
			found = t
		}
	}
	if found == nil {
		return nil, hint.Add(fmt.Errorf("%s is missing", plain.Quote(name+scaleNames[0])), next)
	}
	return found, nil
}

// scaled finds the scales: one number for all, for each output, or for each group of inputs.
func (f *finder) scaled(t *container.Tensor, name string, inputs int, s *rows) error {
	scale, err := f.scale(name)
	if err != nil {
		return err
	}
	outputs, groups, shape := t.Shape[0], 1, scale.Shape
	if len(shape) == 2 {
		groups = shape[1]
	}
	n, _ := hooks.Elements(shape)
	if s.one = n == 1; s.one {
		groups = 1
	}
	if !s.one && (len(shape) < 1 || len(shape) > 2 || shape[0] != outputs) || groups < 1 || inputs%groups != 0 || inputs > maxRow {
		return fmt.Errorf("%s is %v, for %d outputs and %d inputs", plain.Quote(scale.Name), shape, outputs, inputs)
	}
	if scale, err = f.take(scale.Name, true, shape, numbers...); err != nil {
		return err
	}
	s.scales, s.group, s.early = *scale, inputs/groups, roundings[scale.DType]
	how := fmt.Sprintf("groups of %d", s.group)
	switch {
	case s.one:
		how = "one scale"
	case groups == 1:
		how = "by row"
	}
	f.add(t, name, []int{outputs, inputs}, Scheme{Name: fmt.Sprintf("int%d, %s", s.bits, how), Shared: s.one, Mixed: strings.HasSuffix(t.Name, "_packed") || f.Method == "compressed-tensors"}, s)
	return nil
}

// bytes reads weights in int8: with weight_scale (compressed-tensors) or with SCB (bitsandbytes).
func (f *finder) bytes(t *container.Tensor, name string) error {
	if err := matrix(t, 2, hooks.I8); err != nil || len(t.Shape) != 2 {
		return errors.Join(err, f.axes(t))
	}
	s := &rows{codes: *t, bits: 8, lo: -128, by: 1, top: 127, scale: symmetric}
	if _, ok := f.byName[name+".SCB"]; ok {
		largest, err := f.take(name+".SCB", true, t.Shape[:1], hooks.F32)
		if err != nil {
			return err
		}
		if err := f.rowMajor(name); err != nil {
			return err
		}
		if t.Shape[1] > maxRow {
			return fmt.Errorf("rows of %d", t.Shape[1])
		}
		s.scales, s.by, s.group, s.early = *largest, 127, t.Shape[1], toF32
		f.add(t, name, t.Shape, Scheme{Name: "bitsandbytes int8, by row"}, s)
		return nil
	}
	if f.Method == "compressed-tensors" {
		s.top = 127.5
	}
	if zero, ok := f.byName[name+".weight_zero_point"]; ok {
		scale, err := f.scale(name)
		if err != nil {
			return err
		}
		if s.zeros, err = f.take(zero.Name, true, scale.Shape, hooks.I8); err != nil {
			return err
		}
		s.scale = ranging
	}
	return f.scaled(t, name, t.Shape[1], s)
}

// rowMajor reads weight_format of bitsandbytes: 0 are rows, the others are orders of the elements for old kernels.
func (f *finder) rowMajor(name string) error {
	format, err := f.take(name+".weight_format", false, nil, hooks.U8)
	if err != nil || format == nil {
		return err
	}
	var b [1]byte
	if err := fill(format, b[:], 0); err != nil {
		return err
	}
	if b[0] != 0 {
		return hint.Add(fmt.Errorf("weight_format %d of bitsandbytes, which is not read", b[0]), next)
	}
	return nil
}
