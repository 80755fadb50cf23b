package op

import "fmt"

// Lookup takes rows of a table: out[t] = W[ids[t]]. Input: ids. Weight: the table.
// With Fallback, an id outside [0, Rows) takes row 0, as the per-layer table of Gemma 3n does.
type Lookup struct {
	Rows     int  `json:"rows"`
	Fallback bool `json:"fallback,omitempty"`
}

// Kind is "lookup".
func (Lookup) Kind() string { return "lookup" }

// Eval takes rows, exactly: what it copies has no bound.
func (o Lookup) Eval(c Call) (Value, error) {
	out, ids := c.result(), c.In[0]
	_, width := c.W[0].Size()
	for t := range ids.Data {
		row, err := ids.index(t, o.Rows)
		if err != nil {
			if !o.Fallback {
				return Value{}, fmt.Errorf("looking up a token: %w", err)
			}
			row = 0
		}
		if err := c.W[0].Row(out.Data[t*width:(t+1)*width], row); err != nil {
			return Value{}, err
		}
	}
	return out, nil
}

// Exact: elements are copied.
func (Lookup) Exact() {}
