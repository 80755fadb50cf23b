package lanes

import (
	"math"
	"unsafe"

	"github.com/tracediff/tracediff/hooks"
)

// The functions of fused_amd64.s for AVX2 measure whole registers and rounds; Go measures the remainder. Strips with excluded elements, and
// float64, take the other path.

//go:noescape
func productsF32AVX2(s *sums, l, r *byte, n int, diff, ref *float64)

//go:noescape
func productsOneF32AVX2(s *sums, l, r *byte, n int, diff, ref *float64)

//go:noescape
func deviationsF32AVX2(out *[2]lanes, x *byte, n int, from float64)

//go:noescape
func look8AVX2(out *looked, l, r *byte, n int)

//go:noescape
func lookOne8AVX2(out *looked, l, r *byte, n int)

//go:noescape
func look16AVX2(out *looked, l, r *byte, n int)

//go:noescape
func lookOne16AVX2(out *looked, l, r *byte, n int)

//go:noescape
func look32AVX2(out *looked, l, r *byte, n int)

//go:noescape
func lookOne32AVX2(out *looked, l, r *byte, n int)

//go:noescape
func widenBF16AVX2(to *float32, from *byte, n int)

//go:noescape
func widenF16AVX2(to *float32, from *byte, n int)

//go:noescape
func widenE5M2AVX2(to *float32, from *byte, n int)

//go:noescape
func widenE4M3AVX2(to *float32, from *byte, n int)

var (
	products256 = [2][2]productsPass{
		{func(s *sums, l, r *byte, n int, _ *byte, diff, ref *float64) {
			if whole := n &^ (Count - 1); whole > 0 {
				productsF32AVX2(s, l, r, whole, diff, ref)
			} else {
				s.lanes = [4]lanes{}
			}
			s.rest(l, r, n, diff, ref)
		}},
		{func(s *sums, _, r *byte, n int, _ *byte, _, ref *float64) {
			if whole := n &^ (Count - 1); whole > 0 {
				productsOneF32AVX2(s, nil, r, whole, nil, ref)
			} else {
				s.lanes = [4]lanes{}
			}
			s.restOfOne(r, n, ref)
		}},
	}
	look256x8  = look256(hooks.F8E5M2, look8AVX2, lookOne8AVX2)
	look256x16 = look256(hooks.F16, look16AVX2, lookOne16AVX2)
	look256x32 = look256(hooks.F32, look32AVX2, lookOne32AVX2)
)

var kernels256 = map[hooks.DType]*kernels{
	hooks.F32:    {4, nil, look256x32, products256, deviations256, nil},
	hooks.BF16:   {2, widen256(hooks.BF16, widenBF16AVX2), look256x16, products256, deviations256, nil},
	hooks.F16:    {2, widen256(hooks.F16, widenF16AVX2), look256x16, products256, deviations256, nil},
	hooks.F8E5M2: {1, widen256(hooks.F8E5M2, widenE5M2AVX2), look256x8, products256, deviations256, nil},
	hooks.F8E4M3: {1, widen256(hooks.F8E4M3, widenE4M3AVX2), look256x8, products256, deviations256, nil},
}

func singles(p *byte, n int) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(p)), n) }

// rest adds the elements of a run that are no whole round, and folds the lanes.
func (s *sums) rest(l, r *byte, n int, diff, ref *float64) {
	x, y := singles(l, n), singles(r, n)
	for i := n &^ (Count - 1); i < n; i++ {
		a, b, j := float64(x[i]), float64(y[i]), i%Count
		d := a - b
		s.lanes[0][j] += float64(d * d)
		s.lanes[1][j] += float64(b * b)
		s.lanes[2][j] += float64(a * a)
		s.lanes[3][j] += float64(a * b)
		s.total[0][j] += a
		s.total[1][j] += b
		s.largest[0] = max(s.largest[0], math.Abs(d))
		if ref != nil {
			unsafe.Slice(diff, n)[i] += float64(d * d)
			unsafe.Slice(ref, n)[i] += float64(b * b)
		}
	}
	for i := range s.folded {
		s.folded[i] = s.lanes[i].fold()
	}
}

func (s *sums) restOfOne(r *byte, n int, ref *float64) {
	y := singles(r, n)
	for i := n &^ (Count - 1); i < n; i++ {
		b, j := float64(y[i]), i%Count
		s.lanes[1][j] += float64(b * b)
		s.total[1][j] += b
		if ref != nil {
			unsafe.Slice(ref, n)[i] += float64(b * b)
		}
	}
	s.folded = [4]float64{1: s.lanes[1].fold()}
}

var deviations256 = [2][2]deviationPass{
	{func(out *distances, s *sums, l, r *byte, n int, _ *byte, count float64) {
		out[0] = distancesOf(s.total[0], l, n, count)
		out[1] = distancesOf(s.total[1], r, n, count)
	}},
	{func(out *distances, s *sums, _, r *byte, n int, _ *byte, count float64) {
		out[1] = distancesOf(s.total[1], r, n, count)
	}},
}

// distancesOf are those of one side.
func distancesOf(total lanes, x *byte, n int, count float64) [3]float64 {
	from := total.fold() / count
	var both [2]lanes
	whole := n &^ (Count - 1)
	if whole > 0 {
		deviationsF32AVX2(&both, x, whole, from)
	}
	for j, v := range singles(x, n)[whole:] {
		d := float64(v) - from
		both[0][j] += d
		both[1][j] += float64(d * d)
	}
	return [3]float64{from, both[0].fold(), both[1].fold()}
}

// look256 are the two looks by registers of 32 bytes; d is any type of that size.
func look256(d hooks.DType, both, one func(out *looked, l, r *byte, n int)) [2][2]lookPass {
	pass := func(of func(out *looked, l, r *byte, n int), sides ...int) lookPass {
		return func(out *looked, l, r *byte, n int, _ *byte, _ *[2][Strip]float32) {
			size := d.Size()
			whole := n &^ (32/size - 1)
			if whole > 0 {
				of(out, l, r, whole)
			} else {
				out.nothing(size)
			}
			raw := [2][]byte{nil, unsafe.Slice(r, n*size)}
			if len(sides) == 2 {
				raw[0] = unsafe.Slice(l, n*size)
			}
			out.rest(raw, whole, size)
		}
	}
	return [2][2]lookPass{{pass(both, 0, 1)}, {pass(one, 1)}}
}

// widen256 makes float32s by registers, and the rest one by one.
func widen256(d hooks.DType, whole func(to *float32, from *byte, n int)) func(to *float32, from *byte, n int) {
	return func(to *float32, from *byte, n int) {
		by := n &^ (Count - 1)
		if by > 0 {
			whole(to, from, by)
		}
		for i, values, size := by, unsafe.Slice(to, n), d.Size(); i < n; i++ {
			code := uint64(0)
			for b, x := range unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(from), i*size)), size) {
				code |= uint64(x) << (8 * b)
			}
			values[i] = float32(valueOf(d, code))
		}
	}
}
