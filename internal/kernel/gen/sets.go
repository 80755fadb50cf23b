package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

var avx512 = &set{
	name: "AVX512", rows: 8,
	wide:  func() VecVirtual { return ZMM() },
	half:  func() VecVirtual { return YMM() },
	clear: func(v VecVirtual) { VPXORQ(v, v, v) },
	splat: func(from Register, to VecVirtual) { VPBROADCASTQ(from, to) },
	load:  func(from Mem, to VecVirtual) { VMOVDQU32(from, to) },
	store: func(v VecVirtual, to Mem) { VMOVUPD(v, to) },
	turn:  turn512,
	low:   func(v VecVirtual) Op { return v.AsY() },
	high: func(v VecVirtual) Op {
		h := YMM()
		VEXTRACTI64X4(Imm(1), v, h)
		return h
	},
	and:   func(a, b, to Op) { VPANDD(a, b, to) },
	shift: func(v Op, to VecVirtual) { VPSLLD(Imm(16), v, to) },
	add:   func(w VecVirtual, x Mem, sum VecVirtual) { VFMADD231PD_BCST(x, w, sum) },
}

var avx2 = &set{
	name: "AVX2", rows: 4,
	wide:  func() VecVirtual { return YMM() },
	half:  func() VecVirtual { return XMM() },
	clear: func(v VecVirtual) { VXORPD(v, v, v) },
	splat: func(from Register, to VecVirtual) {
		VMOVQ(from, to)
		VPBROADCASTQ(to, to)
	},
	load:  func(from Mem, to VecVirtual) { VMOVDQU(from, to) },
	store: func(v VecVirtual, to Mem) { VMOVUPD(v, to) },
	turn:  func(load func(row int) VecVirtual) []VecVirtual { return four(load, 0) },
	low:   func(v VecVirtual) Op { return v.AsX() },
	high: func(v VecVirtual) Op {
		h := XMM()
		VEXTRACTI128(Imm(1), v, h)
		return h
	},
	and:   func(a, b, to Op) { VPAND(a, b, to) },
	shift: func(v Op, to VecVirtual) { VPSLLD(Imm(16), v, to) },
	add: func(w VecVirtual, x Mem, sum VecVirtual) {
		all := YMM()
		VBROADCASTSD(x, all)
		VFMADD231PD(all, w, sum)
	},
}

// four turns four rows: of every four lanes of 32 bits register i has lane i of all rows.
func four(load func(row int) VecVirtual, first int) []VecVirtual {
	var lower, upper [2]VecVirtual
	for i := range 2 {
		a, b := load(first+2*i), load(first+2*i+1)
		upper[i] = like(a)
		VPUNPCKHDQ(b, a, upper[i])
		lower[i] = a
		VPUNPCKLDQ(b, a, lower[i])
	}
	out := []VecVirtual{like(lower[0]), like(lower[0]), like(lower[0]), like(lower[0])}
	for i, half := range [][2]VecVirtual{lower, upper} {
		VPUNPCKLQDQ(half[1], half[0], out[2*i])
		VPUNPCKHQDQ(half[1], half[0], out[2*i+1])
	}
	return out
}

func like(v VecVirtual) VecVirtual {
	if v.Size() == 64 {
		return ZMM()
	}
	return YMM()
}

// turn512 turns eight rows of sixteen: the first four registers have two columns each, of the first eight, and the others of the second.
func turn512(load func(row int) VecVirtual) []VecVirtual {
	a, b := four(load, 0), four(load, 4)
	lower, upper := ZMM(), ZMM()
	VMOVDQU64(lanes("lower", 0, 1, 8, 9, 2, 3, 10, 11), lower)
	VMOVDQU64(lanes("upper", 4, 5, 12, 13, 6, 7, 14, 15), upper)
	out := make([]VecVirtual, 8)
	for i := range 4 {
		out[i] = ZMM()
		VMOVDQA64(a[i], out[i])
		VPERMT2Q(b[i], lower, out[i])
		out[4+i] = a[i]
		VPERMT2Q(b[i], upper, out[4+i])
	}
	return out
}

var known = map[string]Mem{}

// lanes is a constant: which lanes of 64 bits to take, of two registers.
func lanes(name string, all ...uint64) Mem {
	if m, ok := known[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i, x := range all {
		DATA(8*i, U64(x))
	}
	known[name] = m
	return m
}
