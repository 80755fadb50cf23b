package kernel

import (
	"golang.org/x/sys/cpu"

	"github.com/tracediff/tracediff/hooks"
)

var (
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && hasAVX2
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA // and F16C, which every processor with AVX2 has
)

// rowsOf returns the products of a format on this machine; nil without an implementation.
func rowsOf(format hooks.DType) *rows {
	switch {
	case hasAVX512 && widest >= 512:
		return rows512[format]
	case hasAVX2 && widest >= 256:
		return rows256[format]
	}
	return nil
}

var rows512 = map[hooks.DType]*rows{
	hooks.BF16: {8, 32, rowsBF16x1AVX512, rowsBF16x4AVX512, rowsBF16x8AVX512, runsBF16AVX512},
	hooks.F16:  {8, 16, rowsF16x1AVX512, rowsF16x4AVX512, rowsF16x8AVX512, runsF16AVX512},
	hooks.F32:  {8, 16, rowsF32x1AVX512, rowsF32x4AVX512, rowsF32x8AVX512, runsF32AVX512},
}

var rows256 = map[hooks.DType]*rows{
	hooks.BF16: {4, 16, rowsBF16x1AVX2, rowsBF16x4AVX2, rowsBF16x8AVX2, runsBF16AVX2},
	hooks.F16:  {4, 8, rowsF16x1AVX2, rowsF16x4AVX2, rowsF16x8AVX2, runsF16AVX2},
	hooks.F32:  {4, 8, rowsF32x1AVX2, rowsF32x4AVX2, rowsF32x8AVX2, runsF32AVX2},
}

//go:noescape
func rowsBF16x1AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsBF16x4AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsBF16x8AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func runsBF16AVX512(sums *float64, w *byte, stride, n int, x *float64, apart int)

//go:noescape
func rowsF16x1AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF16x4AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF16x8AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func runsF16AVX512(sums *float64, w *byte, stride, n int, x *float64, apart int)

//go:noescape
func rowsF32x1AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF32x4AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF32x8AVX512(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func runsF32AVX512(sums *float64, w *byte, stride, n int, x *float64, apart int)

//go:noescape
func rowsBF16x1AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsBF16x4AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsBF16x8AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func runsBF16AVX2(sums *float64, w *byte, stride, n int, x *float64, apart int)

//go:noescape
func rowsF16x1AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF16x4AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF16x8AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func runsF16AVX2(sums *float64, w *byte, stride, n int, x *float64, apart int)

//go:noescape
func rowsF32x1AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF32x4AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func rowsF32x8AVX2(sums *float64, w *byte, stride, n int, x *float64)

//go:noescape
func runsF32AVX2(sums *float64, w *byte, stride, n int, x *float64, apart int)
