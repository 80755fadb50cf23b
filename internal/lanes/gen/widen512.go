package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// format is a float type that is narrower than float32.
type format struct {
	of   string
	size int // in bytes
}

var narrow = []format{{"BF16", 2}, {"F16", 2}, {"E5M2", 1}, {"E4M3", 1}}

// widen512 makes float32s of narrower numbers. The NaN of float8_e4m3 becomes 480, the number after the largest.
func widen512(f format) {
	TEXT(name("widen", f.of, false, false, "AVX512"), NOSPLIT, "func(to *float32, from *byte, n int)")
	to, from, n := Load(Param("to"), GP64()), Load(Param("from"), GP64()), Load(Param("n"), GP64())
	scale := ZMM()
	if f.of == "E4M3" {
		bits := GP32()
		MOVL(U32(0x43800000), bits) // 256: the exponents of float16 and e4m3 are 8 apart
		VPBROADCASTD(bits, scale)
	}
	round := func(k Register) {
		x := ZMM()
		words, src := x.AsY(), at(from, 0)
		PREFETCHT0(at(from, ahead))
		switch {
		case f.of == "F16":
			if k == nil {
				VCVTPH2PS(src, x)
			} else {
				VCVTPH2PS_Z(src, k, x)
			}
		default:
			if k == nil {
				VPMOVZXBW(src, words)
			} else {
				VPMOVZXBW_Z(src, k, words)
			}
			halves(f, x)
			VCVTPH2PS(words, x)
			if f.of == "E4M3" {
				VMULPS(scale, x, x)
			}
		}
		VMOVUPS(x, at(to, 0))
	}
	Label("loop")
	CMPQ(n, Imm(16))
	JL(LabelRef("tail"))
	round(nil)
	ADDQ(U32(64), to)
	ADDQ(U32(16*f.size), from)
	SUBQ(Imm(16), n)
	JMP(LabelRef("loop"))
	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	round(lowBits(n))
	Label("done")
	VZEROUPPER()
	RET()
}

// halves makes float16s of float8s: those of e5m2 are their upper byte, and of e4m3 numbers that are 256 times too small.
func halves(f format, x VecVirtual) {
	words := x.AsY()
	if f.of == "E5M2" {
		VPSLLW(Imm(8), words, words)
		return
	}
	// The sign to the top, the seven other bits below it and one of the exponent's: (b<<8 &^ 0x7fff) | (b<<7 & 0x3fff).
	sign := YMM()
	VPSLLW(Imm(8), words, sign)
	VPSRLW(Imm(15), sign, sign)
	VPSLLW(Imm(15), sign, sign)
	VPSLLW(Imm(9), words, words)
	VPSRLW(Imm(2), words, words)
	VPOR(sign, words, words)
}
