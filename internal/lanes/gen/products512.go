package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Where the parts of type sums lie.
const (
	sumsTotal   = 32
	sumsLargest = 288
	sumsLanes   = 352
	laneBytes   = 128 // of the sixteen lanes of one sum
)

// pair512 has the registers of one pass, a field for each: each sum has its lanes 0 to 7 in the first, 8 to 15 in the second.
type pair512 struct {
	double, one     bool
	l, r, diff, ref Register
	sumD, sumR      [2]VecVirtual
	sumL, sumX      [2]VecVirtual
	totalL, totalR  [2]VecVirtual
	largest         [2]VecVirtual
	unit            VecVirtual // 1, all over: see [pair512.less]
}

// products512 adds up a run of two tensors: squares and products, folded; the totals, which go on from run to run; the largest
// difference; and, where there are columns, (l − r)² and r² to those. Of one tensor it has the squares, the total and the columns of r.
//
// Without masks the last elements that are no whole round are read by a mask. With masks there is a bit for each element, and those
// whose bit is 0 are taken for zeros.
func products512(double, one, masked bool) {
	TEXT(name("products", element(double), one, masked, "AVX512"), NOSPLIT, "func(s, l, r *byte, n int, masks *byte, diff, ref *float64)")
	s := Load(Param("s"), GP64())
	p := pair512{double: double, one: one, r: Load(Param("r"), GP64()), ref: Load(Param("ref"), GP64()), largest: [2]VecVirtual{ZMM(), ZMM()}}
	n := Load(Param("n"), GP64())
	sums := []*[2]VecVirtual{&p.sumR}
	if !one {
		p.l, p.diff = Load(Param("l"), GP64()), Load(Param("diff"), GP64())
		sums = []*[2]VecVirtual{&p.sumD, &p.sumR, &p.sumL, &p.sumX}
	}
	for _, sum := range sums {
		*sum = [2]VecVirtual{ZMM(), ZMM()}
		VPXORQ(sum[0], sum[0], sum[0])
		VPXORQ(sum[1], sum[1], sum[1])
	}
	totals := []*[2]VecVirtual{&p.totalR}
	places := []int{sumsTotal + laneBytes}
	if !one {
		totals, places = append(totals, &p.totalL), append(places, sumsTotal)
		VMOVUPD(at(s, sumsLargest), p.largest[0])
		VMOVAPD(p.largest[0], p.largest[1])
		p.unit = constant(math.Float64bits(1))
	}
	for i, total := range totals {
		for h := range total {
			total[h] = ZMM()
			VMOVUPD(at(s, places[i]+64*h), total[h])
		}
	}
	if masked {
		masks := Load(Param("masks"), GP64())
		Label("loop")
		k := K()
		KMOVW(at(masks, 0), k)
		p.round(k)
		ADDQ(Imm(2), masks)
		p.advance()
		SUBQ(Imm(16), n)
		JG(LabelRef("loop"))
	} else {
		Label("loop")
		CMPQ(n, Imm(16))
		JL(LabelRef("tail"))
		p.round(nil)
		p.advance()
		SUBQ(Imm(16), n)
		JMP(LabelRef("loop"))
		Label("tail")
		TESTQ(n, n)
		JZ(LabelRef("done"))
		p.round(lowBits(n))
		Label("done")
	}
	for i, total := range totals {
		for h := range total {
			VMOVUPD(total[h], at(s, places[i]+64*h))
		}
	}
	if one {
		fold(p.sumR, at(s, 8))
	} else {
		VMAXPD(p.largest[1], p.largest[0], p.largest[0])
		VMOVUPD(p.largest[0], at(s, sumsLargest))
		for i, sum := range sums {
			fold(*sum, at(s, 8*i))
		}
	}
	VZEROUPPER()
	RET()
}

// lowBits is a mask of the first n of sixteen; it overwrites n.
func lowBits(n Register) Register {
	bits, k := GP64(), K()
	MOVQ(n, RCX)
	MOVL(U32(1), bits.As32())
	SHLQ(CL, bits)
	DECQ(bits)
	KMOVW(bits.As32(), k)
	return k
}

// advance goes on by sixteen elements.
func (p *pair512) advance() {
	size := U32(64)
	if p.double {
		size = 128
	}
	ADDQ(size, p.r)
	if !p.one {
		ADDQ(size, p.l)
	}
}

// load reads half of a round as float64.
func (p *pair512) load(base, k Register, half int) VecVirtual {
	x := ZMM()
	switch {
	case p.double && k == nil:
		VMOVUPD(at(base, 64*half), x)
	case p.double:
		VMOVUPD_Z(at(base, 64*half), k, x)
	case k == nil:
		VCVTPS2PD(at(base, 32*half), x)
	default:
		VCVTPS2PD_Z(at(base, 32*half), k, x)
	}
	return x
}

// addProduct adds x·y to a sum, and returns the product where it has to be rounded first.
func (p *pair512) addProduct(x, y, sum VecVirtual) {
	if !p.double {
		VFMADD231PD(x, y, sum)
		return
	}
	product := ZMM()
	VMULPD(x, y, product)
	VADDPD(product, sum, sum)
}

// less takes y away from x. Where products are added in one step it is x·1 − y, which is the same to the bit: processors that have
// pipes for sums and others for products are short of the first.
func (p *pair512) less(x, y VecVirtual) {
	if p.double {
		VSUBPD(y, x, x)
	} else {
		VFMSUB213PD(y, p.unit, x)
	}
}

// more adds x to a sum in the same way.
func (p *pair512) more(sum, x VecVirtual) {
	if p.double {
		VADDPD(x, sum, sum)
	} else {
		VFMADD231PD(p.unit, x, sum)
	}
}

// round takes in sixteen elements, or those whose bit in k is 1.
func (p *pair512) round(k Register) {
	skip := label("columns")
	var d2, right [2]VecVirtual
	var ks [2]Register
	for h := range 2 {
		if k != nil {
			ks[h] = k
			if h == 1 {
				ks[h] = K()
				KSHIFTRW(Imm(8), k, ks[h])
			}
		}
		r := p.load(p.r, ks[h], h)
		right[h] = r
		VADDPD(r, p.totalR[h], p.totalR[h])
		p.addProduct(r, r, p.sumR[h])
		if p.one {
			continue
		}
		l := p.load(p.l, ks[h], h)
		p.more(p.totalL[h], l)
		p.addProduct(l, l, p.sumL[h])
		p.addProduct(l, r, p.sumX[h])
		d := l
		p.less(d, r)
		VRANGEPD(Imm(0b1011), d, p.largest[h], p.largest[h]) // the larger magnitude of two
		VMULPD(d, d, d)
		VADDPD(d, p.sumD[h], p.sumD[h])
		d2[h] = d
	}
	TESTQ(p.ref, p.ref)
	JZ(LabelRef(skip))
	for h := range 2 {
		if !p.one {
			addTo(at(p.diff, 64*h), d2[h], ks[h])
		}
		old := ZMM()
		if k == nil {
			VMOVUPD(at(p.ref, 64*h), old)
		} else {
			VMOVUPD_Z(at(p.ref, 64*h), ks[h], old)
		}
		p.addProduct(right[h], right[h], old)
		store(old, at(p.ref, 64*h), ks[h])
	}
	if !p.one {
		ADDQ(U32(laneBytes), p.diff)
	}
	ADDQ(U32(laneBytes), p.ref)
	Label(skip)
}

// addTo adds x to columns; k may be nil.
func addTo(columns Mem, x VecVirtual, k Register) {
	if k == nil {
		VADDPD(columns, x, x)
	} else {
		VADDPD_Z(columns, x, k, x)
	}
	store(x, columns, k)
}

func store(x VecVirtual, to Mem, k Register) {
	if k == nil {
		VMOVUPD(x, to)
	} else {
		VMOVUPD(x, k, to)
	}
}

// fold adds sixteen lanes up and stores the sum. It overwrites them.
func fold(sum [2]VecVirtual, to Mem) { VMOVSD(folded(sum).AsX(), to) }

// folded adds sixteen lanes up, in halves. It overwrites them.
func folded(sum [2]VecVirtual) VecVirtual {
	a, half := sum[0], ZMM()
	VADDPD(sum[1], a, a)
	VEXTRACTF64X4(Imm(1), a, half.AsY())
	VADDPD(half.AsY(), a.AsY(), a.AsY())
	VEXTRACTF64X2(Imm(1), a.AsY(), half.AsX())
	VADDPD(half.AsX(), a.AsX(), a.AsX())
	VPERMILPD(Imm(1), a.AsX(), half.AsX())
	VADDSD(half.AsX(), a.AsX(), a.AsX())
	return a
}

// deviations512 computes the means of a strip from the totals of its count elements, and adds the distances from the means and their squares. For
// each side it writes the mean, the sum and the squares; for a single tensor, those of the second side.
func deviations512(double, one, masked bool) {
	TEXT(name("deviations", element(double), one, masked, "AVX512"), NOSPLIT, "func(out, s, l, r *byte, n int, masks *byte, count float64)")
	p := pair512{double: double, one: one, r: Load(Param("r"), GP64()), unit: constant(math.Float64bits(1))}
	sides := []side512{{base: p.r, out: 24}}
	if !one {
		p.l = Load(Param("l"), GP64())
		sides = append(sides, side512{base: p.l})
	}
	out, sums, n := Load(Param("out"), GP64()), Load(Param("s"), GP64()), Load(Param("n"), GP64())
	for i := range sides {
		s := &sides[i]
		total := sumsTotal + laneBytes*(1-i)
		for h := range 2 {
			s.sum[h], s.squares[h] = ZMM(), ZMM()
			VMOVUPD(at(sums, total+64*h), s.sum[h])
		}
		s.from = folded(s.sum)
		VDIVSD(NewParamAddr("count", 48), s.from.AsX(), s.from.AsX())
		VMOVSD(s.from.AsX(), at(out, s.out))
		VBROADCASTSD(s.from.AsX(), s.from)
		s.sum[0] = ZMM() // the mean has its place
		for h := range 2 {
			VPXORQ(s.sum[h], s.sum[h], s.sum[h])
			VPXORQ(s.squares[h], s.squares[h], s.squares[h])
		}
	}
	round := func(k Register) {
		for h := range 2 {
			kh := k
			if k != nil && h == 1 {
				kh = K()
				KSHIFTRW(Imm(8), k, kh)
			}
			for i := range sides {
				s := &sides[i]
				d := p.load(s.base, kh, h)
				switch {
				case k != nil:
					VSUBPD_Z(s.from, d, kh, d)
				case p.double:
					VSUBPD(s.from, d, d)
				default:
					p.less(d, s.from)
				}
				if i == 0 {
					VADDPD(d, s.sum[h], s.sum[h])
				} else {
					p.more(s.sum[h], d)
				}
				VMULPD(d, d, d)
				VADDPD(d, s.squares[h], s.squares[h])
			}
		}
	}
	if masked {
		masks := Load(Param("masks"), GP64())
		Label("loop")
		k := K()
		KMOVW(at(masks, 0), k)
		round(k)
		ADDQ(Imm(2), masks)
		p.advance()
		SUBQ(Imm(16), n)
		JG(LabelRef("loop"))
	} else {
		Label("loop")
		CMPQ(n, Imm(16))
		JL(LabelRef("tail"))
		round(nil)
		p.advance()
		SUBQ(Imm(16), n)
		JMP(LabelRef("loop"))
		Label("tail")
		TESTQ(n, n)
		JZ(LabelRef("done"))
		round(lowBits(n))
		Label("done")
	}
	for i := range sides {
		s := &sides[i]
		fold(s.sum, at(out, s.out+8))
		fold(s.squares, at(out, s.out+16))
	}
	VZEROUPPER()
	RET()
}

// side512 is one side of deviations512.
type side512 struct {
	base         Register
	out          int // where what is found of it is written
	from         VecVirtual
	sum, squares [2]VecVirtual
}
