package quant

// Values writes each element's value, rounded to float32. dst has one element per code.
func (c *Codes) Values(dst []float32) { c.each(dst, 0, values) }

// Values fills dst with the elements from number from on, dequantised; from and len(dst) are multiples of the tensor's Unit.
func (r *Reader) Values(dst []float32, from int64) error {
	var c Codes
	err := r.Codes(&c, from, len(dst))
	c.Values(dst[:len(c.Code)])
	return err
}

// Group is how many elements of a row share a step, or what their steps are multiples of.
func (t *Tensor) Group() int { return t.group }
