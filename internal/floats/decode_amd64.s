#include "textflag.h"

// func widenBF16(dst *float64, src *byte, n int)
// n is a multiple of 16, and not 0. A bfloat16 is the upper half of a float32.
TEXT ·widenBF16(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VPSLLD $16, Y0, Y0
	VPSLLD $16, Y1, Y1
	VEXTRACTI128 $1, Y0, X2
	VEXTRACTI128 $1, Y1, X3
	VCVTPS2PD X0, Y0
	VCVTPS2PD X2, Y2
	VCVTPS2PD X1, Y1
	VCVTPS2PD X3, Y3
	VMOVUPD Y0, (DI)
	VMOVUPD Y2, 32(DI)
	VMOVUPD Y1, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ $32, SI
	ADDQ $128, DI
	SUBQ $16, CX
	JNZ loop

	VZEROUPPER
	RET

// func widenF32(dst *float64, src *byte, n int)
// n is a multiple of 16, and not 0.
TEXT ·widenF32(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VCVTPS2PD (SI), Y0
	VCVTPS2PD 16(SI), Y1
	VCVTPS2PD 32(SI), Y2
	VCVTPS2PD 48(SI), Y3
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ $64, SI
	ADDQ $128, DI
	SUBQ $16, CX
	JNZ loop

	VZEROUPPER
	RET
