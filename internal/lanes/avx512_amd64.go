package lanes

import "github.com/tracediff/tracediff/hooks"

// What fused_amd64.s has for AVX-512. Of each the second has masks, and "one" stands for two sides that are the same.

type (
	lookPass      = func(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)
	productsPass  = func(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)
	deviationPass = func(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)
)

//go:noescape
func productsF32AVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func productsF32MaskedAVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func productsOneF32AVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func productsOneF32MaskedAVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func deviationsF32AVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func deviationsOneF32AVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func deviationsF32MaskedAVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func deviationsOneF32MaskedAVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func productsF64AVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func productsF64MaskedAVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func productsOneF64AVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func productsOneF64MaskedAVX512(s *sums, l, r *byte, n int, masks *byte, diff, ref *float64)

//go:noescape
func deviationsF64AVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func deviationsOneF64AVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func deviationsF64MaskedAVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func deviationsOneF64MaskedAVX512(out *distances, s *sums, l, r *byte, n int, masks *byte, count float64)

//go:noescape
func look8AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func look8MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne8AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne8MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func classify8AVX512(out *sorts, l, r *byte, n int, limits *uint64, allowed bool)

//go:noescape
func look16AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func look16MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne16AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne16MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func classify16AVX512(out *sorts, l, r *byte, n int, limits *uint64, allowed bool)

//go:noescape
func look32AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func look32MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne32AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne32MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func classify32AVX512(out *sorts, l, r *byte, n int, limits *uint64, allowed bool)

//go:noescape
func look64AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func look64MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne64AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOne64MaskedAVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func classify64AVX512(out *sorts, l, r *byte, n int, limits *uint64, allowed bool)

//go:noescape
func lookBF16AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func lookOneBF16AVX512(out *looked, l, r *byte, n int, masks *byte, to *[2][Strip]float32)

//go:noescape
func widenF16AVX512(to *float32, from *byte, n int)

//go:noescape
func widenE5M2AVX512(to *float32, from *byte, n int)

//go:noescape
func widenE4M3AVX512(to *float32, from *byte, n int)

var (
	products512F32 = [2][2]productsPass{{productsF32AVX512, productsF32MaskedAVX512}, {productsOneF32AVX512, productsOneF32MaskedAVX512}}
	products512F64 = [2][2]productsPass{{productsF64AVX512, productsF64MaskedAVX512}, {productsOneF64AVX512, productsOneF64MaskedAVX512}}
	look512x8      = [2][2]lookPass{{look8AVX512, look8MaskedAVX512}, {lookOne8AVX512, lookOne8MaskedAVX512}}
	look512x16     = [2][2]lookPass{{look16AVX512, look16MaskedAVX512}, {lookOne16AVX512, lookOne16MaskedAVX512}}
	look512BF16    = [2][2]lookPass{{lookBF16AVX512, look16MaskedAVX512}, {lookOneBF16AVX512, lookOne16MaskedAVX512}} // these first ones widen
	look512x32     = [2][2]lookPass{{look32AVX512, look32MaskedAVX512}, {lookOne32AVX512, lookOne32MaskedAVX512}}
	look512x64     = [2][2]lookPass{{look64AVX512, look64MaskedAVX512}, {lookOne64AVX512, lookOne64MaskedAVX512}}

	deviations512F32 = [2][2]deviationPass{{deviationsF32AVX512, deviationsF32MaskedAVX512}, {deviationsOneF32AVX512, deviationsOneF32MaskedAVX512}}
	deviations512F64 = [2][2]deviationPass{{deviationsF64AVX512, deviationsF64MaskedAVX512}, {deviationsOneF64AVX512, deviationsOneF64MaskedAVX512}}
)

var kernels512 = map[hooks.DType]*kernels{
	hooks.F64:    {8, nil, look512x64, products512F64, deviations512F64, classify64AVX512},
	hooks.F32:    {4, nil, look512x32, products512F32, deviations512F32, classify32AVX512},
	hooks.BF16:   {2, nil, look512BF16, products512F32, deviations512F32, classify16AVX512},
	hooks.F16:    {2, widenF16AVX512, look512x16, products512F32, deviations512F32, classify16AVX512},
	hooks.F8E5M2: {1, widenE5M2AVX512, look512x8, products512F32, deviations512F32, classify8AVX512},
	hooks.F8E4M3: {1, widenE4M3AVX512, look512x8, products512F32, deviations512F32, classify8AVX512},
}
