// Gen writes ../rows_amd64.s: products of a few rows of weights, as they are stored, with some tokens, for AVX-512 and for AVX2. It
// is a module of its own, so that the program does not depend on what its assembly is written with.
//
//	go run . >../rows_amd64.s
//
// A lane has one row, and takes its columns one after the other: what a sum is does not depend on the width of the registers. Weights
// become float64 in registers. A product of two float32 has 48 bits at most and is exact in float64, so that to multiply and add at
// once gives the bits of doing it in two steps.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, s := range []*set{avx512, avx2} {
		for _, format := range []string{"BF16", "F16", "F32"} {
			rows(format, 1, 2, s)
			for _, tokens := range []int{1, 4, 8} {
				rows(format, tokens, 1, s)
			}
		}
	}
	Generate()
}

// set is what a set of instructions does in its own way: a field for each operation that the generator writes.
type set struct {
	name string
	rows int // and lanes of float64 in a register

	wide, half func() VecVirtual // registers of so many float64, and of so many float32
	clear      func(v VecVirtual)
	splat      func(from Register, to VecVirtual)
	load       func(from Mem, to VecVirtual)
	store      func(v VecVirtual, to Mem)
	turn       func(load func(row int) VecVirtual) []VecVirtual // of rows of 32 bits: a half has all rows of one column
	low, high  func(v VecVirtual) Op                            // halves
	and        func(a, b, to Op)
	shift      func(v Op, to VecVirtual)                 // into the upper half of 32 bits
	add        func(w VecVirtual, x Mem, sum VecVirtual) // sum += w·x, x the same in all lanes
}

// columns are how many numbers of a row a round takes, and size the bytes of each.
func (s *set) columns(format string) (columns, size int) {
	switch format {
	case "BF16":
		return 4 * s.rows, 2
	case "F16":
		return 2 * s.rows, 2
	}
	return 2 * s.rows, 4
}

// rows adds up the products of rows of weights, stride bytes apart, with tokens: n columns of each, of x [n, tokens]. The sums are
// [tokens, rows], from 0 on. n is a multiple of what a round takes, and not 0. A sum has to wait for its last addition: with one
// token two runs of n columns are taken side by side. The second begins apart bytes of x after the first, and as many columns of w.
func rows(format string, tokens, runs int, s *set) {
	name := fmt.Sprintf("rows%sx%d%s", format, tokens, s.name)
	if runs == 2 {
		name = fmt.Sprintf("runs%s%s", format, s.name)
	}
	arguments := "func(sums *float64, w *byte, stride, n int, x *float64)"
	if runs == 2 {
		arguments = "func(sums *float64, w *byte, stride, n int, x *float64, apart int)"
	}
	TEXT(name, NOSPLIT, arguments)
	sums, w, n, x := Load(Param("sums"), GP64()), Load(Param("w"), GP64()), Load(Param("n"), GP64()), Load(Param("x"), GP64())
	stride, stride3 := Load(Param("stride"), GP64()), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	columns, size := s.columns(format)
	ws, xs := []Register{w}, []Register{x}
	if runs == 2 {
		apart := Load(Param("apart"), GP64())
		ws, xs = append(ws, GP64()), append(xs, GP64())
		LEAQ(Mem{Base: x, Index: apart, Scale: 1}, xs[1])
		SHRQ(Imm(uint64(3-size/2)), apart)
		LEAQ(Mem{Base: w, Index: apart, Scale: 1}, ws[1])
	}
	var upper VecVirtual
	if format == "BF16" {
		bits := GP64()
		upper = s.half()
		MOVQ(U64(0xffff0000ffff0000), bits)
		s.splat(bits, upper)
	}
	acc := make([]VecVirtual, runs*tokens)
	for i := range acc {
		acc[i] = s.wide()
		s.clear(acc[i])
	}
	Label("loop")
	for run := range runs {
		column := 0
		use := func(narrow Op) {
			wide := s.wide()
			VCVTPS2PD(narrow, wide)
			for t := range tokens {
				s.add(wide, Mem{Base: xs[run], Disp: 8 * (column*tokens + t)}, acc[run*tokens+t])
			}
			column++
		}
		both := func(narrow Op) {
			if format != "BF16" {
				use(narrow)
				return
			}
			even, odd := s.half(), s.half()
			s.shift(narrow, even)
			s.and(upper, narrow, odd)
			use(even)
			use(odd)
		}
		turned := s.turn(load(s, format, ws[run], stride, stride3))
		for ; len(turned) > 0; turned = turned[4:] {
			for _, v := range turned[:4] {
				both(s.low(v))
			}
			for _, v := range turned[:4] {
				both(s.high(v))
			}
		}
		ADDQ(U32(uint32(columns*size)), ws[run])
		ADDQ(U32(uint32(columns*tokens*8)), xs[run])
	}
	SUBQ(U32(uint32(columns)), n)
	JNZ(LabelRef("loop"))
	for i, v := range acc {
		s.store(v, Mem{Base: sums, Disp: 8 * s.rows * i})
	}
	VZEROUPPER()
	RET()
}

// load returns what loads 32 bits a lane of a row: float32, or two bfloat16.
func load(s *set, format string, w, stride, stride3 Register) func(row int) VecVirtual {
	var fifth, next Register
	return func(row int) VecVirtual {
		base := w
		if row >= 4 {
			if fifth == nil {
				fifth = GP64()
				LEAQ(Mem{Base: w, Index: stride, Scale: 4}, fifth)
			}
			base = fifth
		}
		if row%4 == 0 {
			// The rows after these: no processor prefetches beyond a page.
			next = GP64()
			LEAQ(Mem{Base: base, Index: stride, Scale: uint8(s.rows)}, next)
		}
		from := []Mem{
			{Base: base},
			{Base: base, Index: stride, Scale: 1},
			{Base: base, Index: stride, Scale: 2},
			{Base: base, Index: stride3, Scale: 1},
		}[row%4]
		PREFETCHT0(Mem{Base: next, Index: from.Index, Scale: from.Scale})
		v := s.wide()
		if format == "F16" {
			VCVTPH2PS(from, v)
		} else {
			s.load(from, v)
		}
		return v
	}
}
