package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// With AVX2 there are sixteen registers of four lanes and no masks: runs are taken eight lanes at a time, in whole rounds, and Go adds
// the remainder.

// products256 adds up whole rounds of a run of float32: see products512. The lanes are not folded.
func products256(one bool) {
	TEXT(name("products", "F32", one, false, "AVX2"), NOSPLIT, "func(s, l, r *byte, n int, diff, ref *float64)")
	s := Load(Param("s"), GP64())
	half := GP64()
	MOVQ(U64(2), half)
	shift := GP64() // into the lanes, in bytes of float64
	XORQ(shift, shift)
	Label("half")
	l, r, n := GP64(), Load(Param("r"), GP64()), Load(Param("n"), GP64())
	diff, ref := GP64(), Load(Param("ref"), GP64())
	quarter := GP64()
	MOVQ(shift, quarter)
	SHRQ(Imm(1), quarter)
	ADDQ(quarter, r)
	if !one {
		Load(Param("l"), l)
		Load(Param("diff"), diff)
		ADDQ(quarter, l)
	}
	var sumD, sumR, sumL, sumX, totalL, totalR [2]VecVirtual
	largest := YMM()
	lanes := func(sum *[2]VecVirtual, offset int, clear bool) {
		for q := range sum {
			sum[q] = YMM()
			if clear {
				VXORPD(sum[q], sum[q], sum[q])
			} else {
				VMOVUPD(Mem{Base: s, Disp: offset + 32*q, Index: shift, Scale: 1}, sum[q])
			}
		}
	}
	lanes(&sumR, 0, true)
	lanes(&totalR, sumsTotal+laneBytes, false)
	if !one {
		lanes(&sumD, 0, true)
		lanes(&sumL, 0, true)
		lanes(&sumX, 0, true)
		lanes(&totalL, sumsTotal, false)
		VMOVUPD(at(s, sumsLargest), largest)
	}
	magnitudes := GLOBL("magnitudes256_"+name("", "", one, false, ""), RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, U64(1<<63-1))
	}
	Label("loop")
	for q := range 2 {
		x, y, t := YMM(), YMM(), YMM()
		VCVTPS2PD(at(r, 16*q), y)
		VADDPD(y, totalR[q], totalR[q])
		VFMADD231PD(y, y, sumR[q])
		skip := label("columns")
		if one {
			TESTQ(ref, ref)
			JZ(LabelRef(skip))
		} else {
			VCVTPS2PD(at(l, 16*q), x)
			VADDPD(x, totalL[q], totalL[q])
			VFMADD231PD(x, x, sumL[q])
			VFMADD231PD(x, y, sumX[q])
			VSUBPD(y, x, x)
			VANDPD(magnitudes, x, t)
			VMAXPD(t, largest, largest)
			VMULPD(x, x, x)
			VADDPD(x, sumD[q], sumD[q])
			TESTQ(ref, ref)
			JZ(LabelRef(skip))
			columns := Mem{Base: diff, Disp: 32 * q, Index: shift, Scale: 1}
			VADDPD(columns, x, x)
			VMOVUPD(x, columns)
		}
		columns := Mem{Base: ref, Disp: 32 * q, Index: shift, Scale: 1}
		VMOVUPD(columns, t)
		VFMADD231PD(y, y, t)
		VMOVUPD(t, columns)
		Label(skip)
	}
	ADDQ(U32(64), r)
	next := label("next")
	if !one {
		ADDQ(U32(64), l)
	}
	TESTQ(ref, ref)
	JZ(LabelRef(next))
	ADDQ(U32(laneBytes), ref)
	if !one {
		ADDQ(U32(laneBytes), diff)
	}
	Label(next)
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
	put := func(sum [2]VecVirtual, offset int) {
		for q := range sum {
			VMOVUPD(sum[q], Mem{Base: s, Disp: offset + 32*q, Index: shift, Scale: 1})
		}
	}
	put(sumR, sumsLanes+laneBytes)
	put(totalR, sumsTotal+laneBytes)
	if !one {
		put(sumD, sumsLanes)
		put(sumL, sumsLanes+2*laneBytes)
		put(sumX, sumsLanes+3*laneBytes)
		put(totalL, sumsTotal)
		VMOVUPD(largest, at(s, sumsLargest))
	}
	ADDQ(U32(64), shift)
	DECQ(half)
	JNZ(LabelRef("half"))
	VZEROUPPER()
	RET()
}

// deviations256 adds up the distances of whole rounds from a number and their squares, by lanes.
func deviations256() {
	TEXT("deviationsF32AVX2", NOSPLIT, "func(out *float64, x *byte, n int, from float64)")
	out, x, n := Load(Param("out"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	from := YMM()
	VBROADCASTSD(NewParamAddr("from", 24), from)
	var sum, squares [4]VecVirtual
	for q := range 4 {
		sum[q], squares[q] = YMM(), YMM()
		VXORPD(sum[q], sum[q], sum[q])
		VXORPD(squares[q], squares[q], squares[q])
	}
	Label("loop")
	for q := range 4 {
		d := YMM()
		VCVTPS2PD(at(x, 16*q), d)
		VSUBPD(from, d, d)
		VADDPD(d, sum[q], sum[q])
		VMULPD(d, d, d)
		VADDPD(d, squares[q], squares[q])
	}
	ADDQ(U32(64), x)
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
	for q := range 4 {
		VMOVUPD(sum[q], at(out, 32*q))
		VMOVUPD(squares[q], at(out, laneBytes+32*q))
	}
	VZEROUPPER()
	RET()
}

// look256 looks at registers of elements as they are stored: see look512. n is a multiple of what a register has, and not 0.
func look256(w width, one bool) {
	signed := map[int]func(Op, Op, Op){8: VPSIGNB, 16: VPSIGNW, 32: VPSIGND}[w.bits]
	equals := map[int]func(...Op){8: VPCMPEQB, 16: VPCMPEQW, 32: VPCMPEQD}[w.bits]
	TEXT(name("look", w.of, one, false, "AVX2"), NOSPLIT, "func(out, l, r *byte, n int)")
	out, n := Load(Param("out"), GP64()), Load(Param("n"), GP64())
	bases := []Register{Load(Param("r"), GP64())}
	if !one {
		bases = append(bases, Load(Param("l"), GP64()))
	}
	constant := func(x uint64) VecVirtual {
		bits, v := GP64(), YMM()
		MOVQ(U64(x), bits)
		VMOVQ(bits, v.AsX())
		VPBROADCASTQ(v.AsX(), v)
		return v
	}
	magnitude, none := constant(w.repeat(w.sign()-1)), constant(0)
	var least, most [2]VecVirtual
	for i := range bases {
		least[i], most[i] = constant(w.repeat(w.sign()-1)), constant(w.repeat(w.sign()))
	}
	steps, unequal, unit := constant(0), constant(0), constant(w.repeat(1))
	Label("loop")
	var places [2]VecVirtual
	for i, base := range bases {
		x, p := YMM(), YMM()
		places[i] = p
		PREFETCHT0(at(base, ahead))
		VMOVDQU(at(base, 0), x)
		VPAND(magnitude, x, p)
		signed(x, p, p)
		w.least(p, least[i], least[i])
		w.most(p, most[i], most[i])
	}
	if !one {
		low := YMM()
		w.least(places[0], places[1], low)
		w.most(places[0], places[1], places[0])
		w.sub(low, places[0], low)
		w.far(low, steps, steps)
		equals(none, low, low)
		w.add(unit, low, low) // 0 for equal ones, which compare as −1
		w.add(low, unequal, unequal)
	}
	for _, base := range bases {
		ADDQ(U32(32), base)
	}
	SUBQ(U32(w.elements()/2), n)
	JNZ(LabelRef("loop"))
	half := func(op func(...Op), v VecVirtual) Op {
		upper := XMM()
		VEXTRACTI128(Imm(1), v, upper)
		op(upper, v.AsX(), v.AsX())
		return v.AsX()
	}
	w.one(w.least, half(w.least, least[0]), at(out, 16))
	w.one(w.most, half(w.most, most[0]), at(out, 48))
	if !one {
		w.one(w.least, half(w.least, least[1]), at(out, 0))
		w.one(w.most, half(w.most, most[1]), at(out, 32))
		w.one(w.far, half(w.far, steps), at(out, 64))
		w.count(half(w.add, unequal), at(out, 80))
	}
	VZEROUPPER()
	RET()
}

// widen256 makes float32s of whole rounds of narrower numbers: see widen512.
func widen256(f format) {
	TEXT(name("widen", f.of, false, false, "AVX2"), NOSPLIT, "func(to *float32, from *byte, n int)")
	to, from, n := Load(Param("to"), GP64()), Load(Param("from"), GP64()), Load(Param("n"), GP64())
	scale := YMM()
	if f.of == "E4M3" {
		bits := GP32()
		MOVL(U32(0x43800000), bits) // 256: the exponents of float16 and e4m3 are 8 apart
		VMOVD(bits, scale.AsX())
		VPBROADCASTD(scale.AsX(), scale)
	}
	Label("loop")
	PREFETCHT0(at(from, ahead))
	x := YMM()
	switch f.of {
	case "BF16", "F16":
		for q := range 2 {
			if f.of == "F16" {
				VCVTPH2PS(at(from, 16*q), x)
			} else {
				VPMOVZXWD(at(from, 16*q), x)
				VPSLLD(Imm(16), x, x)
			}
			VMOVUPS(x, at(to, 32*q))
		}
	default:
		VPMOVZXBW(at(from, 0), x)
		halves(f, x)
		upper, y := XMM(), YMM()
		VEXTRACTI128(Imm(1), x, upper)
		for q, h := range []VecVirtual{x, upper} {
			VCVTPH2PS(h.AsX(), y)
			if f.of == "E4M3" {
				VMULPS(scale, y, y)
			}
			VMOVUPS(y, at(to, 32*q))
		}
	}
	ADDQ(U32(64), to)
	ADDQ(U32(16*f.size), from)
	SUBQ(U32(16), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
