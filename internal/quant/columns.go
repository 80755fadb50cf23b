package quant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// columns are codes of GPTQ and AWQ, which store a weight of (outputs, inputs) transposed: an output is a column. A value is
// scale·(code − zero), with a scale and a zero for each output and group of inputs.
//
// GPTQ (AutoGPTQ, GPTQModel) packs the codes of consecutive inputs into one int32, the first into the lowest bits: qweight is
// (inputs·bits/32, outputs). AWQ packs those of eight consecutive outputs, in the order 0 2 4 6 1 3 5 7: qweight is (inputs, outputs/8).
// Both pack the zeros of consecutive outputs: qzeros is (groups, outputs·bits/32), in AWQ's order in AWQ. GPTQ's first format stores a
// zero less one, modulo 2^bits.
type columns struct {
	qweight, qzeros, scales container.Tensor
	index                   *container.Tensor // GPTQ: the group of each input; nil: consecutive
	bits, in, out           int
	group, groups           int
	awq                     bool
	plus                    uint32 // is added to a stored zero
}

// order is where AWQ puts eight consecutive outputs: output i into nibble order[i].
var order = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// place is the first bit of output or input i of those that share an int32.
func (s *columns) place(i int, awq bool) int {
	if awq {
		return 4 * order[i&7]
	}
	return i % (32 / s.bits) * s.bits
}

// grouped reports groups of consecutive inputs, all of one size.
func (s *columns) grouped() bool { return s.index == nil && s.in%s.group == 0 }

// usual is false: both choose codes by what they do to activations.
func (s *columns) usual(*Codes, []float32) bool { return false }

func (s *columns) step(_, _ float32) (float64, bool) { return 0, false }

func (s *columns) read(c *Codes, r *Reader, from int64, n int) error {
	first, outputs := int(from/int64(s.in)), n/s.in
	group := s.group
	if !s.grouped() {
		group = 1
	}
	c.resize(n, group)
	c.Lo, c.Hi, c.Early = 0, 1<<s.bits-1, Rounding{}
	if err := s.codes(c, r, first, outputs); err != nil {
		return err
	}
	// The scale and the zero of group g and output o are numbers 2·(g·outputs + o) and the next.
	r.values = grown(r.values, 2*s.groups*outputs)
	for g := range s.groups {
		if err := s.parts(r, g, first, outputs); err != nil {
			return err
		}
	}
	if group == s.group {
		for o := range outputs {
			for g := range s.groups {
				s.put(c, r, o*s.groups+g, g*outputs+o)
			}
		}
		return nil
	}
	return s.scattered(c, r, outputs)
}

// put writes step and offset number to from the scale and the zero number from.
func (s *columns) put(c *Codes, r *Reader, to, from int) {
	scale, zero := r.values[2*from], r.values[2*from+1]
	c.Step[to], c.Offset[to] = scale, -float64(scale*zero)
}

// scattered writes a step and an offset for each element, since the groups of inputs are not consecutive or not whole.
func (s *columns) scattered(c *Codes, r *Reader, outputs int) error {
	if s.index != nil {
		r.raw = grown(r.raw, 4*s.in)
		if err := fill(s.index, r.raw, 0); err != nil {
			return err
		}
	}
	for i := range s.in {
		g := i / s.group
		if s.index != nil {
			if g = int(int32(binary.LittleEndian.Uint32(r.raw[4*i:]))); g < 0 || g >= s.groups {
				return fmt.Errorf("g_idx gives input %d the group %d of %d", i, g, s.groups)
			}
		}
		for o := range outputs {
			s.put(c, r, o*s.in+i, g*outputs+o)
		}
	}
	return nil
}

// codes unpacks the codes of some outputs.
func (s *columns) codes(c *Codes, r *Reader, first, outputs int) error {
	mask := uint32(1)<<s.bits - 1
	if s.awq {
		words := s.out / 8
		r.raw = grown(r.raw, outputs/8*4)
		for i := range s.in {
			if err := fill(&s.qweight, r.raw, 4*(int64(i)*int64(words)+int64(first/8))); err != nil {
				return err
			}
			for o := range outputs {
				c.Code[o*s.in+i] = int16(binary.LittleEndian.Uint32(r.raw[o/8*4:]) >> s.place(o, true) & mask)
			}
		}
		return nil
	}
	each := 32 / s.bits
	r.raw = grown(r.raw, outputs*4)
	for p := range s.in / each {
		if err := fill(&s.qweight, r.raw, 4*(int64(p)*int64(s.out)+int64(first))); err != nil {
			return err
		}
		for o := range outputs {
			word, to := binary.LittleEndian.Uint32(r.raw[4*o:]), c.Code[o*s.in+p*each:]
			for j := range each {
				to[j] = int16(word & mask)
				word >>= s.bits
			}
		}
	}
	return nil
}

// parts reads the scales and the zeros of one group for some outputs.
func (s *columns) parts(r *Reader, g, first, outputs int) error {
	each := 32 / s.bits
	r.scratch = grown(r.scratch, outputs)
	if err := r.numbers(r.scratch, &s.scales, int64(g)*int64(s.out)+int64(first)); err != nil {
		return err
	}
	r.more = grown(r.more, outputs/each*4)
	if err := fill(&s.qzeros, r.more, 4*(int64(g)*int64(s.out/each)+int64(first/each))); err != nil {
		return err
	}
	mask := uint32(1)<<s.bits - 1
	for o, scale := range r.scratch {
		zero := binary.LittleEndian.Uint32(r.more[o/each*4:]) >> s.place(o, s.awq)
		at := 2 * (g*outputs + o)
		r.values[at], r.values[at+1] = scale, float64((zero+s.plus)&mask)
	}
	return nil
}

// transposed are the weights of GPTQ and AWQ.
func (f *finder) transposed(t *container.Tensor, name string) error {
	if f.Method != "gptq" && f.Method != "awq" {
		return hint.Add(fmt.Errorf("qweight, as GPTQ and AWQ pack codes, but config.json does not say which (quant_method %s)", plain.Quote(f.Method)), "name the folder that has config.json with quantization_config")
	}
	s := &columns{qweight: *t, bits: f.Bits, awq: f.Method == "awq"}
	if err := matrix(t, 2, hooks.I32); err != nil || len(t.Shape) != 2 {
		return errors.Join(err, f.axes(t))
	}
	if s.bits != 4 && (s.bits != 8 || s.awq) {
		return hint.Add(fmt.Errorf("%s with %d bits, which is not read", strings.ToUpper(f.Method), s.bits), next)
	}
	each := 32 / s.bits
	s.in, s.out = t.Shape[0]*each, t.Shape[1]
	if s.awq {
		s.in, s.out = t.Shape[0], t.Shape[1]*each
	}
	if s.in > maxInputs || s.out > maxRow || s.out%each != 0 {
		return fmt.Errorf("%d inputs and %d outputs", s.in, s.out)
	}
	if err := f.version(s); err != nil {
		return err
	}
	if s.group = f.Group; s.group == -1 {
		s.group = s.in
	}
	if s.group < 1 || s.group > s.in {
		return fmt.Errorf("groups of %d inputs of %d", f.Group, s.in)
	}
	s.groups = (s.in + s.group - 1) / s.group
	if err := f.beside(s, name); err != nil {
		return err
	}
	// A band of some MiB. Outputs that share an int32 are read together.
	band := max(each, (1<<20)/s.in/each*each)
	scheme := Scheme{Name: fmt.Sprintf("%s, %d bits, groups of %d", strings.ToUpper(f.Method), s.bits, s.group), Moves: true}
	group := s.group
	if !s.grouped() {
		group = 1
	}
	f.keep(t, name, &Tensor{Shape: []int{s.out, s.in}, Scheme: scheme, Unit: each * s.in, source: s, group: group, grain: band * s.in})
	return nil
}

// version sets what the formats of GPTQ and AWQ differ in.
func (f *finder) version(s *columns) error {
	format, old := strings.ToLower(f.Format), strings.ToLower(f.Old) // the old name of the same setting
	if s.awq {
		old = strings.ToLower(f.Kind)
	}
	if format == "" {
		format = old
	}
	switch {
	case old != "" && old != format:
		return fmt.Errorf("config.json has two formats, %s and %s", plain.Quote(f.Format), plain.Quote(old))
	case s.awq && (format == "" || format == "gemm"):
		return nil
	case s.awq:
		return hint.Add(fmt.Errorf("AWQ of version %s, which is not read", plain.Quote(format)), next)
	case format == "" || format == "gptq":
		s.plus = 1
		return nil
	case format == "gptq_v2":
		return nil
	}
	return hint.Add(fmt.Errorf("GPTQ of format %s, which is not read", plain.Quote(format)), next)
}

// beside finds the companions of qweight.
func (f *finder) beside(s *columns, name string) error {
	zeros, err := f.take(name+".qzeros", true, []int{s.groups, s.out * s.bits / 32}, hooks.I32)
	if err != nil {
		return err
	}
	scales, err := f.take(name+".scales", true, []int{s.groups, s.out}, numbers...)
	if err != nil {
		return err
	}
	s.qzeros, s.scales = *zeros, *scales
	if s.awq {
		return nil
	}
	index, err := f.take(name+".g_idx", false, []int{s.in}, hooks.I32)
	if err != nil || index == nil {
		return err
	}
	ordered, err := s.ordered(index)
	if !ordered {
		s.index = index
	}
	return err
}

// ordered reports a g_idx that only repeats the group size, and an error for an index of a missing group.
func (s *columns) ordered(index *container.Tensor) (bool, error) {
	raw := make([]byte, 4*s.in)
	if err := fill(index, raw, 0); err != nil {
		return false, err
	}
	ordered := true
	for i := range s.in {
		g := int(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		if g < 0 || g >= s.groups {
			return false, fmt.Errorf("g_idx gives input %d the group %d of %d", i, g, s.groups)
		}
		ordered = ordered && g == i/s.group
	}
	return ordered, nil
}
