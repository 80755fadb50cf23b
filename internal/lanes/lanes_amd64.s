#include "textflag.h"

// The lanes of lanes.go, four to a register. No instruction here multiplies and adds at once: every product is rounded.

// func productsAVX2(out *[4]lanes, l, r *float64, n int)
// n is a multiple of 16, and not 0. Lanes 0 to 7 first, then 8 to 15: the sums of all would not fit the registers.
TEXT ·productsAVX2(SB), NOSPLIT, $0-32
	MOVQ out+0(FP), DX
	MOVQ l+8(FP), SI
	MOVQ r+16(FP), DI
	MOVQ $2, BX

half:
	MOVQ   SI, R9
	MOVQ   DI, R10
	MOVQ   n+24(FP), CX
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	VXORPD Y4, Y4, Y4
	VXORPD Y5, Y5, Y5
	VXORPD Y6, Y6, Y6
	VXORPD Y7, Y7, Y7

loop:
	VMOVUPD (R9), Y8
	VMOVUPD (R10), Y9
	VSUBPD  Y9, Y8, Y10
	VMULPD  Y10, Y10, Y10
	VADDPD  Y10, Y0, Y0
	VMULPD  Y9, Y9, Y11
	VADDPD  Y11, Y2, Y2
	VMULPD  Y8, Y8, Y12
	VADDPD  Y12, Y4, Y4
	VMULPD  Y9, Y8, Y13
	VADDPD  Y13, Y6, Y6
	VMOVUPD 32(R9), Y8
	VMOVUPD 32(R10), Y9
	VSUBPD  Y9, Y8, Y10
	VMULPD  Y10, Y10, Y10
	VADDPD  Y10, Y1, Y1
	VMULPD  Y9, Y9, Y11
	VADDPD  Y11, Y3, Y3
	VMULPD  Y8, Y8, Y12
	VADDPD  Y12, Y5, Y5
	VMULPD  Y9, Y8, Y13
	VADDPD  Y13, Y7, Y7
	ADDQ    $128, R9
	ADDQ    $128, R10
	SUBQ    $16, CX
	JNZ     loop

	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMOVUPD Y2, 128(DX)
	VMOVUPD Y3, 160(DX)
	VMOVUPD Y4, 256(DX)
	VMOVUPD Y5, 288(DX)
	VMOVUPD Y6, 384(DX)
	VMOVUPD Y7, 416(DX)
	ADDQ    $64, DX
	ADDQ    $64, SI
	ADDQ    $64, DI
	DECQ    BX
	JNZ     half
	VZEROUPPER
	RET

// func deviationsAVX2(out *[2]lanes, x *float64, n int, from float64)
// n is a multiple of 16, and not 0.
TEXT ·deviationsAVX2(SB), NOSPLIT, $0-32
	MOVQ         out+0(FP), DX
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD from+24(FP), Y15
	VXORPD       Y0, Y0, Y0
	VXORPD       Y1, Y1, Y1
	VXORPD       Y2, Y2, Y2
	VXORPD       Y3, Y3, Y3
	VXORPD       Y4, Y4, Y4
	VXORPD       Y5, Y5, Y5
	VXORPD       Y6, Y6, Y6
	VXORPD       Y7, Y7, Y7

loop:
	VMOVUPD (SI), Y8
	VMOVUPD 32(SI), Y9
	VMOVUPD 64(SI), Y10
	VMOVUPD 96(SI), Y11
	VSUBPD  Y15, Y8, Y8
	VSUBPD  Y15, Y9, Y9
	VSUBPD  Y15, Y10, Y10
	VSUBPD  Y15, Y11, Y11
	VADDPD  Y8, Y0, Y0
	VADDPD  Y9, Y1, Y1
	VADDPD  Y10, Y2, Y2
	VADDPD  Y11, Y3, Y3
	VMULPD  Y8, Y8, Y8
	VMULPD  Y9, Y9, Y9
	VMULPD  Y10, Y10, Y10
	VMULPD  Y11, Y11, Y11
	VADDPD  Y8, Y4, Y4
	VADDPD  Y9, Y5, Y5
	VADDPD  Y10, Y6, Y6
	VADDPD  Y11, Y7, Y7
	ADDQ    $128, SI
	SUBQ    $16, CX
	JNZ     loop

	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMOVUPD Y2, 64(DX)
	VMOVUPD Y3, 96(DX)
	VMOVUPD Y4, 128(DX)
	VMOVUPD Y5, 160(DX)
	VMOVUPD Y6, 192(DX)
	VMOVUPD Y7, 224(DX)
	VZEROUPPER
	RET

// func surveyAVX2(out *surveyed, x *float64, n int)
// n is a multiple of 16, and not 0. The least and the largest may be any of two zeros, and say nothing of a NaN.
TEXT ·surveyAVX2(SB), NOSPLIT, $0-24
	MOVQ    out+0(FP), DX
	MOVQ    x+8(FP), SI
	MOVQ    n+16(FP), CX
	VXORPD  Y0, Y0, Y0
	VXORPD  Y1, Y1, Y1
	VXORPD  Y2, Y2, Y2
	VXORPD  Y3, Y3, Y3
	VMOVUPD (SI), Y4
	VMOVAPD Y4, Y5
	VMOVAPD Y4, Y6
	VMOVAPD Y4, Y7

loop:
	VMOVUPD (SI), Y8
	VMOVUPD 32(SI), Y9
	VMOVUPD 64(SI), Y10
	VMOVUPD 96(SI), Y11
	VADDPD  Y8, Y0, Y0
	VADDPD  Y9, Y1, Y1
	VADDPD  Y10, Y2, Y2
	VADDPD  Y11, Y3, Y3
	VMINPD  Y8, Y4, Y4
	VMINPD  Y9, Y5, Y5
	VMINPD  Y10, Y4, Y4
	VMINPD  Y11, Y5, Y5
	VMAXPD  Y8, Y6, Y6
	VMAXPD  Y9, Y7, Y7
	VMAXPD  Y10, Y6, Y6
	VMAXPD  Y11, Y7, Y7
	ADDQ    $128, SI
	SUBQ    $16, CX
	JNZ     loop

	VMINPD  Y5, Y4, Y4
	VMAXPD  Y7, Y6, Y6
	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMOVUPD Y2, 64(DX)
	VMOVUPD Y3, 96(DX)
	VMOVUPD Y4, 128(DX)
	VMOVUPD Y6, 160(DX)
	VZEROUPPER
	RET

// func columnsAVX2(diff, ref, l, r *float64, n int)
// n is a multiple of 4, and not 0.
TEXT ·columnsAVX2(SB), NOSPLIT, $0-40
	MOVQ diff+0(FP), R8
	MOVQ ref+8(FP), R9
	MOVQ l+16(FP), SI
	MOVQ r+24(FP), DI
	MOVQ n+32(FP), CX

loop:
	VMOVUPD (SI), Y0
	VMOVUPD (DI), Y1
	VSUBPD  Y1, Y0, Y0
	VMULPD  Y0, Y0, Y0
	VMULPD  Y1, Y1, Y1
	VADDPD  (R8), Y0, Y0
	VADDPD  (R9), Y1, Y1
	VMOVUPD Y0, (R8)
	VMOVUPD Y1, (R9)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, R8
	ADDQ    $32, R9
	SUBQ    $4, CX
	JNZ     loop
	VZEROUPPER
	RET

// func largestAVX2(l, r *float64, n int) float64
// n is a multiple of 16, and not 0; nothing is NaN.
TEXT ·largestAVX2(SB), NOSPLIT, $0-32
	MOVQ     l+0(FP), SI
	MOVQ     r+8(FP), DI
	MOVQ     n+16(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLQ   $1, Y15, Y15
	VXORPD   Y0, Y0, Y0
	VXORPD   Y1, Y1, Y1
	VXORPD   Y2, Y2, Y2
	VXORPD   Y3, Y3, Y3

loop:
	VMOVUPD (SI), Y4
	VMOVUPD 32(SI), Y5
	VMOVUPD 64(SI), Y6
	VMOVUPD 96(SI), Y7
	VSUBPD  (DI), Y4, Y4
	VSUBPD  32(DI), Y5, Y5
	VSUBPD  64(DI), Y6, Y6
	VSUBPD  96(DI), Y7, Y7
	VANDPD  Y15, Y4, Y4
	VANDPD  Y15, Y5, Y5
	VANDPD  Y15, Y6, Y6
	VANDPD  Y15, Y7, Y7
	VMAXPD  Y4, Y0, Y0
	VMAXPD  Y5, Y1, Y1
	VMAXPD  Y6, Y2, Y2
	VMAXPD  Y7, Y3, Y3
	ADDQ    $128, SI
	ADDQ    $128, DI
	SUBQ    $16, CX
	JNZ     loop

	VMAXPD       Y1, Y0, Y0
	VMAXPD       Y3, Y2, Y2
	VMAXPD       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPD       X1, X0, X0
	VPERMILPD    $1, X0, X1
	VMAXSD       X1, X0, X0
	VMOVSD       X0, ret+24(FP)
	VZEROUPPER
	RET
