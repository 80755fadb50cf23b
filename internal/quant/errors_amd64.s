#include "textflag.h"

// func addErrors(s *errorSums, codes *int16, x *float64, n int, step, offset, half float64) uint64
// n is a multiple of 4, from 4 to 64. The sums of even and of odd elements are added in their order.
TEXT ·addErrors(SB), NOSPLIT, $0-64
	MOVQ s+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ x+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSD step+32(FP), Y8
	VBROADCASTSD offset+40(FP), Y9
	VBROADCASTSD half+48(FP), Y10
	VPCMPEQQ Y11, Y11, Y11
	VPSRLQ $1, Y11, Y11 // all bits but the sign
	VMOVUPD (DI), X0
	VMOVUPD 16(DI), X1
	VBROADCASTSD 32(DI), Y2
	VBROADCASTSD 40(DI), Y3
	XORQ AX, AX

loop:
	VPMOVSXWD (SI), X4
	VCVTDQ2PD X4, Y4
	VMULPD Y8, Y4, Y4
	VADDPD Y9, Y4, Y4
	VMOVUPD (DX), Y5
	VSUBPD Y5, Y4, Y4
	VMULPD Y4, Y4, Y6
	VEXTRACTF128 $1, Y6, X7
	VADDPD X6, X0, X0
	VADDPD X7, X0, X0
	VMULPD Y5, Y5, Y6
	VEXTRACTF128 $1, Y6, X7
	VADDPD X6, X1, X1
	VADDPD X7, X1, X1
	VANDPD Y11, Y4, Y4
	VCMPPD $0x1e, Y10, Y4, Y6 // |d| > half
	VMOVMSKPD Y6, R9
	SHRQ $4, AX
	SHLQ $60, R9
	ORQ R9, AX
	VMINPD Y2, Y5, Y2 // a NaN changes nothing
	VMAXPD Y3, Y5, Y3
	ADDQ $8, SI
	ADDQ $32, DX
	SUBQ $4, CX
	JNZ loop

	VMOVUPD X0, (DI)
	VMOVUPD X1, 16(DI)
	VEXTRACTF128 $1, Y2, X4
	VMINPD X2, X4, X2
	VPERMILPD $1, X2, X4
	VMINSD X2, X4, X2
	VMOVSD X2, 32(DI)
	VEXTRACTF128 $1, Y3, X4
	VMAXPD X3, X4, X3
	VPERMILPD $1, X3, X4
	VMAXSD X3, X4, X3
	VMOVSD X3, 40(DI)
	VZEROUPPER
	MOVQ AX, ret+56(FP)
	RET
