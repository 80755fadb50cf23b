package lanes

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sort"
	"unsafe"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Fused measures strips of two tensors of one float type from their stored bytes, without a float64 in memory, by a few passes over the
// first-level cache. Each pass decodes in registers and does everything that needs no result of an earlier pass. The results equal those of
// the package's other functions for the decoded strips, to the bit. A Fused may be used for one strip after the other.
//
// The passes are: [Fused.Look], which looks for excluded elements; [Fused.Classify] if there are any; a call of
// [Fused.Run] for every run of the strip, in order; and [Fused.Moments]. The many fields are the state of these passes and the memory that
// they use again.
type Fused struct {
	k    *kernels
	lim  *Limits
	l, r []byte // of the strip; l is nil where both sides are the same
	n    int
	seen Seen

	sums, spare sums
	out         looked // what the passes leave: here, since they are called by way of tables
	distances   distances
	holed       bool
	sorts       sorts
	part        [Strip/64 + 1]uint64 // the bits of a run
	values      [2][Strip]float32    // of types narrower than float32
	x           [2]*byte             // what the sums are taken of
	size        int                  // and the bytes of an element there
}

// Seen is what is to be seen of a strip without its sums.
type Seen struct {
	Least, Most [2]float64 // of both sides, of the elements that count; any zero may be either
	Unequal     int64      // elements that differ
	Steps       uint64     // the most numbers of the type between two of them: see [floats.Steps]
	Plain       bool       // every element counts
}

// Sorted counts the excluded elements of a strip by reason. Odd counts elements where only one side is finite or unmasked, or both are +Inf:
// the caller judges these, and they count if [Fused.Count] says so.
type Sorted struct {
	Masked, NaN, Low int64 // masked on both sides, NaN on both sides, −Inf on both sides
	Odd              []int
}

// sums is what the passes over runs keep: offsets of its fields are written into the assembly.
type sums struct {
	folded  [4]float64 // Σ(l−r)², Σr², Σl², Σl·r of the last run
	total   [2]lanes   // of the strip so far
	largest [8]float64 // any of them is the largest |l−r| so far
	lanes   [4]lanes   // of the last run, where they are not folded yet
}

// looked is what a look at a strip leaves: places among the numbers of the type, each the first element of sixteen bytes, and last the
// count of unequal ones, of 16 bits at least.
type looked [6][16]byte

// distances are, of each side, the mean of the elements that count, and the sums of their distances from it and of the squares of those.
type distances [2][3]float64

// sorts has a bit for each element.
type sorts struct{ count, masked, low, nan [Strip / 64]uint64 }

// kernels are the passes of one type of floats. Of two indexes the first stands for a single side, the second for masks.
type kernels struct {
	size  int                                  // in bytes
	widen func(to *float32, from *byte, n int) // nil where the look without masks does it, or nobody has to
	look  [2][2]func(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

	products   [2][2]func(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)
	deviations [2][2]func(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)
	classify   func(out *sorts, l, r *byte, n int, limits *uint64, allowed bool) // nil: strips with holes are not measured
}

// Limits are what makes an element of a pair not count, as places among the numbers of a float type.
type Limits struct {
	d       hooks.DType
	k       *kernels
	plain   [2]int64  // per side: elements nearer to zero than this count, whatever the other side has
	codes   [4]uint64 // from which on a number below zero is masked, per side; not finite; NaN: repeated through 64 bits
	allowed bool
}

// NewLimits are those of a type and, per side, of the number below whose negative an element is masked; allowed says that what
// either side masks does not count, else two equal ones do not. It is nil where this machine, or the type, has no fused passes.
func NewLimits(d hooks.DType, huge [2]float64, allowed bool) *Limits {
	k := kernelsOf(d)
	if k == nil {
		return nil
	}
	width := 8 * d.Size()
	first := func(is func(x float64) bool) uint64 {
		return uint64(sort.Search(1<<(width-1)-1, func(code int) bool { return is(valueOf(d, uint64(code))) }))
	}
	lim := &Limits{d: d, k: k, allowed: allowed}
	for side, h := range huge {
		lim.plain[side] = int64(first(func(x float64) bool { return !(x < h) }))
		lim.codes[side] = first(func(x float64) bool { return !(x <= h) })
	}
	lim.codes[2] = first(func(x float64) bool { return !(x <= math.MaxFloat64) })
	lim.codes[3] = first(func(x float64) bool { return x != x })
	for i := range lim.codes {
		for b := width; b < 64; b *= 2 {
			lim.codes[i] |= lim.codes[i] << b
		}
	}
	return lim
}

// valueOf is the number with some bits.
func valueOf(d hooks.DType, code uint64) float64 {
	switch d {
	case hooks.F64:
		return math.Float64frombits(code)
	case hooks.F32:
		return float64(math.Float32frombits(uint32(code)))
	case hooks.BF16:
		return float64(floats.FromBF16(uint16(code)))
	}
	var raw [8]byte
	var x [1]float64
	binary.LittleEndian.PutUint64(raw[:], code)
	if err := floats.Decode(x[:], d, raw[:]); err != nil {
		panic(err) // lanes: floats of no known type
	}
	return x[0]
}

// valueAt is the number at a place: below zero the places are those of the negatives.
func valueAt(d hooks.DType, place int64) float64 {
	if place < 0 {
		return -valueOf(d, uint64(-place))
	}
	return valueOf(d, uint64(place))
}

// Look begins with a strip of two tensors, of as many bytes; l is nil where it has the bytes of r.
func (f *Fused) Look(lim *Limits, l, r []byte) Seen {
	f.lim, f.k, f.l, f.r, f.holed = lim, lim.k, l, r, false
	f.n = len(r) / f.k.size
	f.sums.total, f.sums.largest = [2]lanes{}, [8]float64{}
	for side, raw := range [][]byte{l, r} {
		switch {
		case raw == nil:
			f.x[side] = nil
		case f.k.size < 4:
			if f.k.widen != nil {
				f.k.widen(&f.values[side][0], &raw[0], f.n)
			}
			f.x[side], f.size = bytesOf(&f.values[side][0]), 4
		default:
			f.x[side], f.size = &raw[0], f.k.size
		}
	}
	f.look(nil)
	return f.seen
}

// look sets f.seen.
func (f *Fused) look(masks *byte) {
	out, one := &f.out, index(f.l == nil)
	f.k.look[one][index(masks != nil)](out, first(f.l), &f.r[0], f.n, masks, &f.values)
	d := f.lim.d
	f.seen = Seen{Plain: true}
	for side := range 2 {
		from := max(side, one)
		least, most := signed(out[from][:], f.k.size), signed(out[2+from][:], f.k.size)
		f.seen.Least[side], f.seen.Most[side] = valueAt(d, least), valueAt(d, most)
		f.seen.Plain = f.seen.Plain && -f.lim.plain[side] < least && most < f.lim.plain[side]
	}
	if one == 0 {
		f.seen.Steps, f.seen.Unequal = unsigned(out[4][:], f.k.size), int64(unsigned(out[5][:], max(f.k.size, 2)))
	}
}

// unsigned is the number that some bytes begin with.
func unsigned(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func signed(b []byte, size int) int64 {
	free := 64 - 8*size
	return int64(unsigned(b, size)<<free) >> free
}

// Sorts reports whether strips with elements that do not count can be measured; where they cannot, [Fused.Classify] may not be called.
func (l *Limits) Sorts() bool { return l.k.classify != nil }

// Classify says which elements of the strip do not count.
func (f *Fused) Classify() (s Sorted) {
	f.holed = true
	left := &f.r[0]
	if f.l != nil {
		left = &f.l[0]
	}
	f.sorts = sorts{}
	f.k.classify(&f.sorts, left, &f.r[0], f.n, &f.lim.codes[0], f.lim.allowed)
	for i := range f.sorts.count {
		s.Masked += int64(bits.OnesCount64(f.sorts.masked[i]))
		s.NaN += int64(bits.OnesCount64(f.sorts.nan[i]))
		s.Low += int64(bits.OnesCount64(f.sorts.low[i]))
		odd := ^(f.sorts.count[i] | f.sorts.masked[i] | f.sorts.nan[i] | f.sorts.low[i])
		for ; odd != 0; odd &= odd - 1 {
			if at := 64*i + bits.TrailingZeros64(odd); at < f.n {
				s.Odd = append(s.Odd, at)
			}
		}
	}
	return s
}

// Count has an odd element count after all.
func (f *Fused) Count(at int) { f.sorts.count[at/64] |= 1 << (at % 64) }

// Counts reports whether an element counts.
func (f *Fused) Counts(at int) bool { return !f.holed || f.sorts.count[at/64]>>(at%64)&1 == 1 }

// Again looks at the strip once more, without what does not count, and says how many elements do.
func (f *Fused) Again() (s Seen, count int) {
	for _, w := range f.sorts.count {
		count += bits.OnesCount64(w)
	}
	f.look(bytesOf(&f.sorts.count[0]))
	return f.seen, count
}

// Run adds up a run of the strip, at and n being its first element and their number, and adds the squares of its elements to the
// columns, which may be nil. Aligned says that every run of the strip begins at a whole round of lanes, so that the totals of the
// strip go on from run to run; where they do not, call [Fused.Totals] first.
func (f *Fused) Run(at, n int, aligned bool, diff, ref []float64) Squares {
	s := &f.sums
	if !aligned {
		s = &f.spare
	}
	f.products(s, at, n, diff, ref)
	sum := Squares{Diff: s.folded[0], Ref: s.folded[1], Local: s.folded[2], Cross: s.folded[3]}
	if f.l == nil {
		sum = Squares{Ref: sum.Ref, Local: sum.Ref, Cross: sum.Ref}
	}
	return sum
}

// Totals adds the strip up without regard to its runs.
func (f *Fused) Totals() { f.products(&f.sums, 0, f.n, nil, nil) }

func (f *Fused) products(s *sums, at, n int, diff, ref []float64) {
	var masks *byte
	if f.holed {
		masks = f.bitsOf(at, n)
	}
	var d, r *float64
	if ref != nil {
		d, r = &diff[:n][0], &ref[:n][0]
	}
	f.k.products[index(f.l == nil)][index(f.holed)](s, f.element(0, at), f.element(1, at), n, masks, d, r)
}

// bitsOf is which elements of a run count.
func (f *Fused) bitsOf(at, n int) *byte {
	clear(f.part[:])
	for i := 0; i < n; i += 64 {
		from := (at + i) / 64
		word := f.sorts.count[from] >> (at % 64)
		if at%64 != 0 && from+1 < len(f.sorts.count) {
			word |= f.sorts.count[from+1] << (64 - at%64)
		}
		if n-i < 64 {
			word &= 1<<(n-i) - 1
		}
		f.part[i/64] = word
	}
	return bytesOf(&f.part[0])
}

// Largest is max |l − r| of the elements that were added up.
func (f *Fused) Largest() (most float64) {
	for _, x := range f.sums.largest {
		most = max(most, x)
	}
	return most
}

// Moments returns the moments of the counting elements of both sides; count is their number.
func (f *Fused) Moments(count int) (m [2]Moments) {
	if count == 0 {
		return m
	}
	var masks *byte
	if f.holed {
		masks = bytesOf(&f.sorts.count[0])
	}
	one := index(f.l == nil)
	f.k.deviations[one][index(f.holed)](&f.distances, &f.sums, f.element(0, 0), f.element(1, 0), f.n, masks, float64(count))
	for side := one; side < 2; side++ {
		d, o := &f.distances[side], &m[side]
		o.N, o.pivot, o.Min, o.Max = int64(count), d[0], f.seen.Least[side], f.seen.Most[side]
		o.deviate(d[1], d[2])
	}
	if one == 1 {
		m[0] = m[1]
	}
	return m
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// first is the address of the first byte; nil for no bytes.
func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

func bytesOf[T any](p *T) *byte { return (*byte)(unsafe.Pointer(p)) }

// element is where an element of a side is; nil where the side is not looked at.
func (f *Fused) element(side, at int) *byte {
	if f.x[side] == nil {
		return nil
	}
	return (*byte)(unsafe.Add(unsafe.Pointer(f.x[side]), at*f.size))
}
