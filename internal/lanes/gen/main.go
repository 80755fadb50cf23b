// Gen writes ../fused_amd64.s: the passes over a strip of two tensors, for AVX-512 and for AVX2. It is a module of its own, so
// that the program does not depend on what its assembly is written with.
//
//	go run . >../fused_amd64.s
//
// Package lanes says in which order the sums are taken. Products of two float32 have 48 bits at most and are exact in float64, so
// that to multiply and add at once gives the bits of doing it in two steps; of anything wider products are rounded first.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, double := range []bool{false, true} {
		for _, one := range []bool{false, true} {
			for _, masked := range []bool{false, true} {
				products512(double, one, masked)
				deviations512(double, one, masked)
			}
		}
	}
	for _, w := range widths {
		for _, one := range []bool{false, true} {
			for _, masked := range []bool{false, true} {
				look512(w, one, masked, false)
			}
			if w.bits == 16 {
				look512(w, one, false, true)
			}
		}
		classify512(w)
	}
	for _, f := range narrow[1:] { // bfloat16 is widened by the first look
		widen512(f)
	}
	for _, one := range []bool{false, true} {
		products256(one)
	}
	deviations256()
	for _, w := range widths[:3] {
		for _, one := range []bool{false, true} {
			look256(w, one)
		}
	}
	for _, f := range narrow {
		widen256(f)
	}
	Generate()
}

// name is that of a function: what it does, to what, and with which instructions.
func name(what, of string, one, masked bool, isa string) string {
	if one {
		what += "One"
	}
	what += of
	if masked {
		what += "Masked"
	}
	return what + isa
}

// element is how the floats are called that the sums are taken of.
func element(double bool) string {
	if double {
		return "F64"
	}
	return "F32"
}

var labels int

// label returns a name that no other place has.
func label(what string) string {
	labels++
	return fmt.Sprintf("%s%d", what, labels)
}

// at is a place in memory.
func at(base Register, offset int) Mem { return Mem{Base: base, Disp: offset} }

// zero makes registers 0.
func zero(all ...VecVirtual) {
	for _, v := range all {
		VPXOR(v.AsX(), v.AsX(), v.AsX())
	}
}
