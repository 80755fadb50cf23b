package lanes

import (
	"encoding/binary"

	"golang.org/x/sys/cpu"

	"github.com/tracediff/tracediff/hooks"
)

// The passes of fused_amd64.s, which gen writes. They keep no argument.

// The instructions of each set: what Intel calls x86-64-v4, and of v3 what is used.
var (
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && hasAVX2
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA // and F16C, which every processor with AVX2 has
)

// kernelsOf returns this machine's passes for a type; nil without an implementation.
func kernelsOf(d hooks.DType) *kernels {
	switch {
	case !vectors:
	case hasAVX512 && widest >= 512:
		return kernels512[d]
	case hasAVX2:
		return kernels256[d]
	}
	return nil
}

// nothing is a look at no element.
func (o *looked) nothing(size int) {
	*o = looked{}
	for side := range 2 {
		for b := range size {
			o[side][b] = 0xff
		}
		o[side][size-1], o[2+side][size-1] = 0x7f, 0x80
	}
}

// rest looks at elements one by one, starting at from; a nil local side is skipped.
func (o *looked) rest(raw [2][]byte, from, size int) {
	set := func(i int, x uint64) {
		for b := range size {
			o[i][b] = byte(x >> (8 * b))
		}
	}
	var least, most [2]int64
	var steps, unequal uint64
	for side := range 2 {
		least[side], most[side] = signed(o[side][:], size), signed(o[2+side][:], size)
	}
	steps, unequal = unsigned(o[4][:], size), unsigned(o[5][:], max(size, 2))
	sign := int64(1) << (8*size - 1)
	for at := from * size; at < len(raw[1]); at += size {
		var places [2]int64
		for side, b := range raw {
			if b == nil {
				continue
			}
			if places[side] = int64(unsigned(b[at:], size)) &^ sign; signed(b[at:], size) < 0 {
				places[side] = -places[side]
			}
			least[side], most[side] = min(least[side], places[side]), max(most[side], places[side])
		}
		if raw[0] == nil {
			continue
		}
		if far := max(places[0], places[1]) - min(places[0], places[1]); far > 0 {
			unequal++
			steps = max(steps, uint64(far))
		}
	}
	for side := range 2 {
		set(side, uint64(least[side]))
		set(2+side, uint64(most[side]))
	}
	set(4, steps)
	binary.LittleEndian.PutUint64(o[5][:], unequal)
}
