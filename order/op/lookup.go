package op

import "github.com/tracediff/tracediff/order/program"

// Lookup takes rows of a table: out[t] = W[ids[t]]. Input: ids. Weight: the table.
// With Fallback, an id outside [0, Rows) takes row 0, as the per-layer table of Gemma 3n does.
type Lookup struct {
	Rows     int  `json:"rows"`
	Fallback bool `json:"fallback,omitempty"`
}

// Kind is "lookup".
func (Lookup) Kind() string { return "lookup" }

// Steps takes rows.
func (o Lookup) Steps(b *program.Builder, in, w []program.Var) program.Var {
	return b.Lookup(in[0], w[0], o.Rows, o.Fallback)
}

// Exact: elements are copied.
func (Lookup) Exact() {}
