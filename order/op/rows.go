package op

import "github.com/tracediff/tracediff/order/program"

// Rows are rows of a table that depend on no id: out[t] = W[First + t·By], as those of learned positions. Weight: the table.
type Rows struct {
	First int `json:"first"`
	By    int `json:"by"` // 1, or 0 where every token has the same row
}

// Kind is "rows".
func (Rows) Kind() string { return "rows" }

// Steps takes rows.
func (o Rows) Steps(b *program.Builder, _, w []program.Var) program.Var {
	tokens := b.Shape[len(b.Shape)-2]
	rows := w[0].Shape[0]
	if len(w[0].Shape) != 2 || o.First < 0 || o.First+o.By*(tokens-1) >= rows {
		return b.Fail("rows %d to %d of %v", o.First, o.First+o.By*(tokens-1), w[0].Shape)
	}
	ids := make([]float64, tokens)
	for t := range ids {
		ids[t] = float64(o.First + t*o.By)
	}
	return b.Lookup(b.Constant("", ids, []int{tokens}), w[0], rows, false)
}

// Exact: elements are copied.
func (Rows) Exact() {}
