package quant

// Values writes each element's value, rounded to float32. dst has one element per code.
func (c *Codes) Values(dst []float32) { c.each(dst, 0, values) }

// Values fills dst with the elements from number from on, dequantised; from and len(dst) are multiples of the tensor's Unit.
func (r *Reader) Values(dst []float32, from int64) error {
	var c Codes
	for len(dst) > 0 {
		n := min(r.tensor.Batch, len(dst))
		if err := r.Codes(&c, from, n); err != nil {
			return err
		}
		c.Values(dst[:n])
		dst, from = dst[n:], from+int64(n)
	}
	return nil
}

// Group is how many elements of a row share a step, or what their steps are multiples of.
func (t *Tensor) Group() int { return t.group }
