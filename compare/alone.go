package compare

// One trace alone is walked as if it were both sides, since that is how its entries are found, read and counted. What the
// walk measures between the trace and itself says nothing, and no report has it.

// traces are the sides, and one where both are one trace.
func (w *walker) traces() []side {
	if w.o.Alone {
		return w.sides[:1]
	}
	return w.sides[:]
}

// strip takes out of the result of a trace alone everything that is about two: of a row the numbers of its tensor are left.
func (r *Result) strip() {
	if !r.Alone {
		return
	}
	r.Reference = Side{}
	for i := range r.Inputs {
		r.Inputs[i].Reference = nil
	}
	for i := range r.Rows {
		r.Rows[i].strip()
	}
	if r.Divergence != nil {
		r.Divergence.Row.strip()
	}
}

func (r *Row) strip() {
	if r.Metrics != nil {
		own := r.Metrics.Local
		r.Stats = &own
	}
	r.Ref, r.Metrics, r.Gate, r.Growth = Tensor{}, nil, nil, 0
}
