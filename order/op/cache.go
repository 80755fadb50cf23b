package op

// Cache appends this pass's keys or values to those of the pass before, along the key axis of [B,h,S,D], of which a
// windowed layer has kept the last Window−1. Inputs: this pass's, the pass before's (absent in pass 0).
// With Transpose the first input is [B,T,h,D].
type Cache struct {
	Window    int  `json:"window,omitempty"`
	Transpose bool `json:"transpose,omitempty"`
}

// Kind is "cache".
func (Cache) Kind() string { return "cache" }

// Eval copies, and with each element its bound.
func (o Cache) Eval(c Call) (Value, error) {
	heads, keys, d := c.Shape[1], c.Shape[2], c.Shape[3]
	now := c.In[0]
	tokens := len(now.Data) / heads / d
	kept := keys - tokens
	return c.each(func(i int) Num {
		h, s, j := i/d/keys, i/d%keys, i%d
		if s < kept {
			before := c.In[1]
			n := len(before.Data) / heads / d
			return before.at((h*n+n-kept+s)*d + j)
		}
		if t := s - kept; o.Transpose {
			return now.at((t*heads+h)*d + j)
		} else {
			return now.at((h*tokens+t)*d + j)
		}
	})
}

// Exact: elements are copied.
func (Cache) Exact() {}

// Keys are appended. With Transpose the cache is of values, which no rotation has transposed before.
func (o Cache) Keys() Keys {
	if o.Transpose {
		return NoKeys
	}
	return AppendKeys
}
