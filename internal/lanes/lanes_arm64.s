#include "textflag.h"

// The lanes of lanes.go, two to a register. Go's assembler has no names for these instructions of Neon: their words are put together
// here, of two float64 each, with the registers in the order of Arm's manual: the result first. None multiplies and adds at once.
#define FADD2(d, n, m) WORD $(0x4E60D400 | (m)<<16 | (n)<<5 | (d))
#define FSUB2(d, n, m) WORD $(0x4EE0D400 | (m)<<16 | (n)<<5 | (d))
#define FMUL2(d, n, m) WORD $(0x6E60DC00 | (m)<<16 | (n)<<5 | (d))
#define FMIN2(d, n, m) WORD $(0x4EE0F400 | (m)<<16 | (n)<<5 | (d))
#define FMAX2(d, n, m) WORD $(0x4E60F400 | (m)<<16 | (n)<<5 | (d))
#define FABS2(d, n) WORD $(0x4EE0F800 | (n)<<5 | (d))

// SQUARES takes in four elements of both sides, V24 and V25 of the left and V26 and V27 of the right, in the registers of two lanes
// each: differences, right, left, products.
#define SQUARES(d0, d1, r0, r1, l0, l1, x0, x1) \
	FSUB2(28, 24, 26)  \
	FSUB2(29, 25, 27)  \
	FMUL2(28, 28, 28)  \
	FMUL2(29, 29, 29)  \
	FADD2(d0, d0, 28)  \
	FADD2(d1, d1, 29)  \
	FMUL2(30, 24, 26)  \
	FMUL2(31, 25, 27)  \
	FADD2(x0, x0, 30)  \
	FADD2(x1, x1, 31)  \
	FMUL2(24, 24, 24)  \
	FMUL2(25, 25, 25)  \
	FADD2(l0, l0, 24)  \
	FADD2(l1, l1, 25)  \
	FMUL2(26, 26, 26)  \
	FMUL2(27, 27, 27)  \
	FADD2(r0, r0, 26)  \
	FADD2(r1, r1, 27)

#define ZERO(a, b, c, d) \
	VEOR a.B16, a.B16, a.B16 \
	VEOR b.B16, b.B16, b.B16 \
	VEOR c.B16, c.B16, c.B16 \
	VEOR d.B16, d.B16, d.B16

// func productsNeon(out *[4]lanes, l, r *float64, n int)
// n is a multiple of 16, and not 0. Four lanes at a time, so that four sums of them stay in registers.
TEXT ·productsNeon(SB), NOSPLIT, $0-32
	MOVD out+0(FP), R0
	MOVD l+8(FP), R1
	MOVD r+16(FP), R2
	MOVD $4, R3

quarter:
	MOVD R1, R4
	MOVD R2, R5
	MOVD n+24(FP), R6
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)

loop:
	VLD1 (R4), [V24.D2, V25.D2]
	VLD1 (R5), [V26.D2, V27.D2]
	SQUARES(0, 1, 2, 3, 4, 5, 6, 7)
	ADD  $128, R4
	ADD  $128, R5
	SUBS $16, R6, R6
	BNE  loop

	MOVD R0, R7
	VST1 [V0.D2, V1.D2], (R7)
	ADD  $128, R7
	VST1 [V2.D2, V3.D2], (R7)
	ADD  $128, R7
	VST1 [V4.D2, V5.D2], (R7)
	ADD  $128, R7
	VST1 [V6.D2, V7.D2], (R7)
	ADD  $32, R0
	ADD  $32, R1
	ADD  $32, R2
	SUBS $1, R3, R3
	BNE  quarter
	RET

// DEVIATIONS takes in eight elements, of V24 to V27, in the registers of their lanes: distances from V31, and squares.
#define DEVIATIONS(s0, s1, s2, s3, q0, q1, q2, q3) \
	FSUB2(24, 24, 31)  \
	FSUB2(25, 25, 31)  \
	FSUB2(26, 26, 31)  \
	FSUB2(27, 27, 31)  \
	FADD2(s0, s0, 24)  \
	FADD2(s1, s1, 25)  \
	FADD2(s2, s2, 26)  \
	FADD2(s3, s3, 27)  \
	FMUL2(24, 24, 24)  \
	FMUL2(25, 25, 25)  \
	FMUL2(26, 26, 26)  \
	FMUL2(27, 27, 27)  \
	FADD2(q0, q0, 24)  \
	FADD2(q1, q1, 25)  \
	FADD2(q2, q2, 26)  \
	FADD2(q3, q3, 27)

// func deviationsNeon(out *[2]lanes, x *float64, n int, from float64)
// n is a multiple of 16, and not 0.
TEXT ·deviationsNeon(SB), NOSPLIT, $0-32
	MOVD out+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R2
	MOVD from+24(FP), R3
	VDUP R3, V31.D2
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)
	ZERO(V8, V9, V10, V11)
	ZERO(V12, V13, V14, V15)

loop:
	VLD1.P 64(R1), [V24.D2, V25.D2, V26.D2, V27.D2]
	DEVIATIONS(0, 1, 2, 3, 8, 9, 10, 11)
	VLD1.P 64(R1), [V24.D2, V25.D2, V26.D2, V27.D2]
	DEVIATIONS(4, 5, 6, 7, 12, 13, 14, 15)
	SUBS   $16, R2, R2
	BNE    loop

	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	VST1.P [V4.D2, V5.D2, V6.D2, V7.D2], 64(R0)
	VST1.P [V8.D2, V9.D2, V10.D2, V11.D2], 64(R0)
	VST1.P [V12.D2, V13.D2, V14.D2, V15.D2], 64(R0)
	RET

// SURVEY takes in eight elements, of V24 to V27: their lanes, and in V16 to V19 the least and V20 to V23 the largest.
#define SURVEY(s0, s1, s2, s3) \
	FADD2(s0, s0, 24)  \
	FADD2(s1, s1, 25)  \
	FADD2(s2, s2, 26)  \
	FADD2(s3, s3, 27)  \
	FMIN2(16, 16, 24)  \
	FMIN2(17, 17, 25)  \
	FMIN2(18, 18, 26)  \
	FMIN2(19, 19, 27)  \
	FMAX2(20, 20, 24)  \
	FMAX2(21, 21, 25)  \
	FMAX2(22, 22, 26)  \
	FMAX2(23, 23, 27)

// func surveyNeon(out *surveyed, x *float64, n int)
// n is a multiple of 16, and not 0. The least and the largest say nothing of a NaN.
TEXT ·surveyNeon(SB), NOSPLIT, $0-24
	MOVD out+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R2
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)
	VLD1 (R1), [V16.D2, V17.D2, V18.D2, V19.D2]
	VLD1 (R1), [V20.D2, V21.D2, V22.D2, V23.D2]

loop:
	VLD1.P 64(R1), [V24.D2, V25.D2, V26.D2, V27.D2]
	SURVEY(0, 1, 2, 3)
	VLD1.P 64(R1), [V24.D2, V25.D2, V26.D2, V27.D2]
	SURVEY(4, 5, 6, 7)
	SUBS   $16, R2, R2
	BNE    loop

	FMIN2(16, 16, 18)
	FMIN2(17, 17, 19)
	FMAX2(18, 20, 22)
	FMAX2(19, 21, 23)
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	VST1.P [V4.D2, V5.D2, V6.D2, V7.D2], 64(R0)
	VST1   [V16.D2, V17.D2, V18.D2, V19.D2], (R0)
	RET

// func columnsNeon(diff, ref, l, r *float64, n int)
// n is a multiple of 4, and not 0.
TEXT ·columnsNeon(SB), NOSPLIT, $0-40
	MOVD diff+0(FP), R0
	MOVD ref+8(FP), R1
	MOVD l+16(FP), R2
	MOVD r+24(FP), R3
	MOVD n+32(FP), R4

loop:
	VLD1.P 32(R2), [V24.D2, V25.D2]
	VLD1.P 32(R3), [V26.D2, V27.D2]
	VLD1   (R0), [V0.D2, V1.D2]
	VLD1   (R1), [V2.D2, V3.D2]
	FSUB2(24, 24, 26)
	FSUB2(25, 25, 27)
	FMUL2(24, 24, 24)
	FMUL2(25, 25, 25)
	FMUL2(26, 26, 26)
	FMUL2(27, 27, 27)
	FADD2(0, 0, 24)
	FADD2(1, 1, 25)
	FADD2(2, 2, 26)
	FADD2(3, 3, 27)
	VST1.P [V0.D2, V1.D2], 32(R0)
	VST1.P [V2.D2, V3.D2], 32(R1)
	SUBS   $4, R4, R4
	BNE    loop
	RET

// func largestNeon(out *[2]float64, l, r *float64, n int)
// n is a multiple of 16, and not 0; nothing is NaN. Any of the two is the largest.
TEXT ·largestNeon(SB), NOSPLIT, $0-32
	MOVD out+0(FP), R0
	MOVD l+8(FP), R1
	MOVD r+16(FP), R2
	MOVD n+24(FP), R3
	ZERO(V0, V1, V2, V3)

loop:
	VLD1.P 64(R1), [V16.D2, V17.D2, V18.D2, V19.D2]
	VLD1.P 64(R2), [V20.D2, V21.D2, V22.D2, V23.D2]
	FSUB2(16, 16, 20)
	FSUB2(17, 17, 21)
	FSUB2(18, 18, 22)
	FSUB2(19, 19, 23)
	FABS2(16, 16)
	FABS2(17, 17)
	FABS2(18, 18)
	FABS2(19, 19)
	FMAX2(0, 0, 16)
	FMAX2(1, 1, 17)
	FMAX2(2, 2, 18)
	FMAX2(3, 3, 19)
	SUBS   $8, R3, R3
	BNE    loop

	FMAX2(0, 0, 1)
	FMAX2(2, 2, 3)
	FMAX2(0, 0, 2)
	VST1 [V0.D2], (R0)
	RET
