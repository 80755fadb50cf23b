package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// width is a size of floats, and the instructions for integers of that size.
type width struct {
	bits int
	of   string

	loadZ, maskOf, keep        func(...Op)
	sub, add, least, most, far func(...Op)
	differ, compare            func(...Op)
}

var widths = []width{
	{
		8, "8", func(o ...Op) { VMOVDQU8_Z(o[0], o[1], o[2]) }, func(o ...Op) { VPMOVB2M(o[0], o[1]) }, func(o ...Op) { KMOVQ(o[0], o[1]) },
		VPSUBB, VPADDB, VPMINSB, VPMAXSB, VPMAXUB, VPTESTMB, VPCMPUB,
	},
	{
		16, "16", func(o ...Op) { VMOVDQU16_Z(o[0], o[1], o[2]) }, func(o ...Op) { VPMOVW2M(o[0], o[1]) }, func(o ...Op) { KMOVD(o[0], o[1]) },
		VPSUBW, VPADDW, VPMINSW, VPMAXSW, VPMAXUW, VPTESTMW, VPCMPUW,
	},
	{
		32, "32", func(o ...Op) { VMOVDQU32_Z(o[0], o[1], o[2]) }, func(o ...Op) { VPMOVD2M(o[0], o[1]) }, func(o ...Op) { KMOVW(o[0], o[1]) },
		VPSUBD, VPADDD, VPMINSD, VPMAXSD, VPMAXUD, VPTESTMD, VPCMPUD,
	},
	{
		64, "64", func(o ...Op) { VMOVDQU64_Z(o[0], o[1], o[2]) }, func(o ...Op) { VPMOVQ2M(o[0], o[1]) }, func(o ...Op) { KMOVB(o[0], o[1]) },
		VPSUBQ, VPADDQ, VPMINSQ, VPMAXSQ, VPMAXUQ, VPTESTMQ, VPCMPUQ,
	},
}

// elements is how many are in a register.
func (w width) elements() uint64 { return uint64(512 / w.bits) }

// repeat is a number in each element of 64 bits.
func (w width) repeat(x uint64) uint64 {
	all := x
	for b := w.bits; b < 64; b *= 2 {
		all |= all << b
	}
	return all
}

// constant is a register with the same 64 bits all over.
func constant(x uint64) VecVirtual {
	bits, v := GP64(), ZMM()
	MOVQ(U64(x), bits)
	VPBROADCASTQ(bits, v)
	return v
}

func (w width) sign() uint64 { return 1 << (w.bits - 1) }

// tail is a mask of the last n elements, fewer than a register has; it overwrites n.
func (w width) tail(n Register) Register {
	bits, k := GP64(), K()
	MOVQ(n, RCX)
	MOVQ(U64(1), bits)
	SHLQ(CL, bits)
	DECQ(bits)
	KMOVQ(bits, k)
	return k
}

// all is a mask of every element.
func (w width) all() Register {
	k := K()
	KXNORQ(k, k, k)
	return k
}

// place computes in x the rank of numbers within their type: 0 for both zeros, negative for negative numbers. The bits of a negative number are the
// bits of −0 plus the magnitude, so that −0 minus the bits is the negated magnitude.
func (w width) place(x, negative VecVirtual) {
	k := K()
	w.maskOf(x, k)
	w.sub(x, negative, k, x)
}

// rounds loops over registers of elements: body is given a mask for the last ones, where they do not fill a register, and where masks
// come from memory.
func (w width) rounds(n Register, masks Register, advance []Register, body func(k Register)) {
	size := w.elements()
	next := func() {
		for _, r := range advance {
			ADDQ(U32(64), r)
		}
		SUBQ(U32(size), n)
	}
	Label("loop")
	if masks != nil {
		k := K()
		w.keep(at(masks, 0), k)
		body(k)
		ADDQ(U32(size/8), masks)
		next()
		JG(LabelRef("loop"))
		return
	}
	CMPQ(n, U32(size))
	JL(LabelRef("tail"))
	body(nil)
	next()
	JMP(LabelRef("loop"))
	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	body(w.tail(n))
	Label("done")
}

// look512 looks at a stored strip. The bits of a float without the sign rank the type's numbers upwards from zero, as integers do. look512 finds
// the smallest and the largest rank of both sides, the largest distance in ranks, and the number of elements that differ. Each result is
// the first element of sixteen bytes: the smallest of the local side and of the reference, the largest, the distance, and the count.
//
// With widens the numbers are bfloat16, and are converted to float32 as well.
func look512(w width, one, masked, widens bool) {
	of := w.of
	if widens {
		of = "BF16"
	}
	TEXT(name("look", of, one, masked, "AVX512"), NOSPLIT, "func(out, l, r *byte, n int, masks *byte, to *float32)")
	negative := constant(w.repeat(w.sign()))
	out, n := Load(Param("out"), GP64()), Load(Param("n"), GP64())
	bases := []Register{Load(Param("r"), GP64())}
	if !one {
		bases = append(bases, Load(Param("l"), GP64()))
	}
	var masks Register
	if masked {
		masks = Load(Param("masks"), GP64())
	}
	var to Register
	var words [2]VecVirtual
	var uppers Register
	if widens {
		to = Load(Param("to"), GP64())
		words, uppers = upperWords()
	}
	var least, most [2]VecVirtual
	for i := range bases {
		least[i], most[i] = constant(w.repeat(w.sign()-1)), constant(w.repeat(w.sign()))
	}
	steps, unequal, unit := ZMM(), ZMM(), constant(w.repeat(1))
	VPXORQ(steps, steps, steps)
	VPXORQ(unequal, unequal, unequal)
	w.rounds(n, masks, bases, func(k Register) {
		var places [2]VecVirtual
		for i, base := range bases {
			x := ZMM()
			places[i] = x
			PREFETCHT0(at(base, ahead))
			if k == nil {
				VMOVDQU64(at(base, 0), x)
			} else {
				w.loadZ(at(base, 0), k, x)
			}
			for half := range words {
				if widens {
					single := ZMM()
					VPERMW_Z(x, words[half], uppers, single)
					VMOVUPS(single, at(to, (1-i)*stripBytes+64*half))
				}
			}
			w.place(x, negative)
			if k == nil {
				w.least(x, least[i], least[i])
				w.most(x, most[i], most[i])
			} else {
				w.least(x, least[i], k, least[i])
				w.most(x, most[i], k, most[i])
			}
		}
		if widens {
			ADDQ(U32(128), to)
		}
		if one {
			return
		}
		low, differ := ZMM(), K()
		w.least(places[0], places[1], low)
		w.most(places[0], places[1], places[0])
		w.sub(low, places[0], low)
		w.far(low, steps, steps)
		w.differ(low, low, differ)
		w.add(unit, unequal, differ, unequal)
	})
	w.one(w.least, sixteen(w.least, least[0]), at(out, 16))
	w.one(w.most, sixteen(w.most, most[0]), at(out, 48))
	if !one {
		w.one(w.least, sixteen(w.least, least[1]), at(out, 0))
		w.one(w.most, sixteen(w.most, most[1]), at(out, 32))
		w.one(w.far, sixteen(w.far, steps), at(out, 64))
		w.count(sixteen(w.add, unequal), at(out, 80))
	}
	VZEROUPPER()
	RET()
}

// stripBytes is the size of a strip of float32s.
const stripBytes = 4 * 2048

// upperWords are where the words of the first and of the last half of a register go where each becomes the upper half of 32 bits, and
// which words are upper halves. What is below them is 0.
func upperWords() (words [2]VecVirtual, uppers Register) {
	for half := range words {
		table := GLOBL(label("words"), RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(16*half+i)<<16))
		}
		words[half] = ZMM()
		VMOVDQU64(table, words[half])
	}
	bits := GP32()
	uppers = K()
	MOVL(U32(0xaaaaaaaa), bits)
	KMOVD(bits, uppers)
	return words, uppers
}

// ahead is how far a first look fetches into the cache what comes next, in bytes.
const ahead = 1024

// sixteen brings a register down to sixteen bytes.
func sixteen(op func(...Op), v VecVirtual) Op {
	half := ZMM()
	VEXTRACTI64X4(Imm(1), v, half.AsY())
	op(half.AsY(), v.AsY(), v.AsY())
	VEXTRACTI64X2(Imm(1), v.AsY(), half.AsX())
	op(half.AsX(), v.AsX(), v.AsX())
	return v.AsX()
}

// one reduces sixteen bytes to one element and stores the element. The bytes after the element are undefined.
func (w width) one(op func(...Op), x Op, to Mem) {
	for bytes := 8; 8*bytes >= w.bits; bytes /= 2 {
		half := XMM()
		VPSRLDQ(Imm(uint64(bytes)), x, half)
		op(half, x, x)
	}
	VMOVQ(x, to)
}

// count adds sixteen bytes of counts, and stores the sum. For numbers of eight bits the sum has 64 bits, since a strip has more elements than
// eight bits can count.
func (w width) count(x Op, to Mem) {
	if w.bits > 8 {
		w.one(w.add, x, to)
		return
	}
	none := XMM()
	VPXOR(none, none, none)
	VPSADBW(none, x, x)
	widths[3].one(VPADDQ, x, to)
}

// Where classify512 leaves its bits, one for each element.
const (
	bitsCount  = 0   // takes part
	bitsMasked = 256 // is masked on both sides
	bitsLow    = 512 // is −Inf on both sides
	bitsNaN    = 768 // is NaN on both sides
)

// classify512 decides for each element of a strip whether it counts, and if not why; an element without a bit is for the caller to judge.
// Limits are ranks, in every element of 64 bits: the first rank of a mask value below zero, of the local side and of the reference; the first
// infinite rank; and the first NaN. With allowed, an element that either side masks is excluded; without, two equal mask values
// are.
func classify512(w width) {
	TEXT(name("classify", w.of, false, false, "AVX512"), NOSPLIT, "func(out, l, r *byte, n int, limits *uint64, allowed bool)")
	out, n := Load(Param("out"), GP64()), Load(Param("n"), GP64())
	l, r, limits, allowed := Load(Param("l"), GP64()), Load(Param("r"), GP64()), Load(Param("limits"), GP64()), Load(Param("allowed"), GP8())
	magnitude := constant(w.repeat(w.sign() - 1))
	var hide [2]VecVirtual
	finite, nan := ZMM(), ZMM()
	for i, v := range []*VecVirtual{&hide[0], &hide[1], &finite, &nan} {
		*v = ZMM()
		VPBROADCASTQ(at(limits, 8*i), *v)
	}
	const below, from = 1, 5 // kinds of comparison
	none := ZMM()
	VPXORQ(none, none, none)
	w.rounds(n, nil, []Register{l, r}, func(k Register) {
		every := k
		if every == nil {
			every = w.all()
		}
		var x, m [2]VecVirtual
		var hides [2]Register
		fin, nans := K(), K()
		for i, base := range []Register{l, r} {
			x[i], m[i], hides[i] = ZMM(), ZMM(), K()
			if k == nil {
				VMOVDQU64(at(base, 0), x[i])
			} else {
				w.loadZ(at(base, 0), k, x[i])
			}
			VPANDQ(magnitude, x[i], m[i])
			w.maskOf(x[i], hides[i])
			w.compare(Imm(from), hide[i], m[i], hides[i], hides[i])
			w.compare(Imm(below), nan, m[i], hides[i], hides[i])
			within := every
			isNaN := every
			if i == 1 {
				within, isNaN = fin, nans
			}
			w.compare(Imm(below), finite, m[i], within, fin)
			w.compare(Imm(from), nan, m[i], isNaN, nans)
		}
		masked, low, either := hides[0], hides[1], K()
		all, end := label("all"), label("end")
		KORQ(hides[0], hides[1], either)
		KANDQ(hides[0], hides[1], masked)
		KXORQ(low, low, low)
		TESTB(allowed, allowed)
		JZ(LabelRef(all))
		KANDNQ(fin, either, fin) // fin and not either
		JMP(LabelRef(end))
		Label(all)
		w.compare(Imm(0), x[0], x[1], masked, either) // mask values, and equal
		KANDQ(fin, either, masked)
		w.compare(Imm(from), finite, m[0], either, low)
		KANDNQ(fin, masked, fin)
		Label(end)
		for i, bits := range []Register{fin, masked, low, nans} {
			w.keep(bits, at(out, 256*i))
		}
		ADDQ(U32(w.elements()/8), out)
	})
	RET()
}
