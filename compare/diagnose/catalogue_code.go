package diagnose

import (
	"path"

	"github.com/tracediff/tracediff/order/program"
)

// String is the place in a sentence: "`hidden_states * scale` (modeling_x.py:213)", "the division within `attn.softmax(-1)` (port.py:40)". Without a known
// expression, the operation has the name that torch gives to it.
func (c Code) String() string {
	var text string
	switch {
	case c == Code{}:
		return ""
	case c.Expression != "":
		text = "`" + c.Expression + "`"
	case c.Line == "" && c.Operation == "constants":
		text = "a constant"
	case c.Line == "" && c.Operation == "view":
		text = "a view"
	default:
		text = "torch's " + c.Operation
	}
	if c.Line != "" {
		text += " (" + path.Base(c.Line) + ")"
	}
	if c.Within != "" {
		return c.Within + " within " + text
	}
	return text
}

// innerWords is a step within an operation, in words.
func innerWords(st *program.Step) string {
	switch {
	case st.Prim == program.Number:
		return "the number " + short(st.Number().Value)
	case innerSteps[st.Prim] != "":
		return innerSteps[st.Prim]
	}
	return "the step " + st.Prim.String()
}

// innerSteps are the primitives as steps within an operation.
var innerSteps = map[program.Prim]string{
	program.Vector: "the constants", program.Cat: "the concatenation", program.Neg: "the minus", program.Max: "the maximum", program.RowMax: "the maximum of the row",
	program.Floor: "the rounding down", program.Lookup: "the lookup", program.Mask: "the mask", program.Round: "the rounding", program.Copy: "the rounding",
	program.Choose: "the choice", program.Gather: "the selection", program.Rank: "the ranking", program.Scatter: "the scatter", program.Collect: "the scatter",
	program.Add: "the addition", program.Sub: "the difference", program.Mul: "the product", program.Div: "the division", program.Sqrt: "the root", program.Rsqrt: "the inverse root",
	program.Exp: "the exponential", program.Tanh: "the tanh", program.Erf: "the erf", program.Cos: "the cosine", program.Sin: "the sine", program.Log: "the logarithm",
	program.Log1p: "the logarithm", program.Expm1: "the exponential", program.Pow: "the power", program.Angle: "the angle", program.Sum: "the sum", program.Dot: "the matrix product",
	program.Affine: "the matrix product", program.Solve: "the solution",
}
