package gguf

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
)

// Type is how the elements of a tensor are stored: ggml's number for it.
type Type uint32

// layout describes a type: name, elements and bytes of a block, and the dtype after reading.
type layout struct {
	name            string
	elements, bytes int64
	dtype           hooks.DType
	block           quant.Block
}

// layouts are ggml's types. The numbers that are missing were given up, and no file of today has them.
var layouts = map[Type]layout{
	0: numbersIn("F32", hooks.F32), 1: numbersIn("F16", hooks.F16), 30: numbersIn("BF16", hooks.BF16), 28: numbersIn("F64", hooks.F64),
	24: numbersIn("I8", hooks.I8), 25: numbersIn("I16", hooks.I16), 26: numbersIn("I32", hooks.I32), 27: numbersIn("I64", hooks.I64),

	2: coded(quant.Q4_0), 3: coded(quant.Q4_1), 6: coded(quant.Q5_0), 7: coded(quant.Q5_1), 8: coded(quant.Q8_0),
	12: coded(quant.Q4_K), 13: coded(quant.Q5_K), 14: coded(quant.Q6_K),

	9: unread("Q8_1", 32, 36), 10: unread("Q2_K", 256, 84), 11: unread("Q3_K", 256, 110), 15: unread("Q8_K", 256, 292),
	16: unread("IQ2_XXS", 256, 66), 17: unread("IQ2_XS", 256, 74), 18: unread("IQ3_XXS", 256, 98), 19: unread("IQ1_S", 256, 50),
	20: unread("IQ4_NL", 32, 18), 21: unread("IQ3_S", 256, 110), 22: unread("IQ2_S", 256, 82), 23: unread("IQ4_XS", 256, 136),
	29: unread("IQ1_M", 256, 56), 34: unread("TQ1_0", 256, 54), 35: unread("TQ2_0", 256, 66),
	39: unread("MXFP4", 32, 17), 40: unread("NVFP4", 64, 36), 41: unread("Q1_0", 128, 18), 42: unread("Q2_0", 64, 18),
}

func numbersIn(name string, d hooks.DType) layout {
	return layout{name: name, elements: 1, bytes: int64(d.Size()), dtype: d}
}

func coded(b quant.Block) layout {
	return layout{name: b.String(), elements: int64(b.Elements()), bytes: int64(b.Bytes()), block: b}
}

func unread(name string, elements, bytes int64) layout {
	return layout{name: name, elements: elements, bytes: bytes}
}

// String is ggml's name of the type.
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}
