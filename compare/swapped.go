package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/internal/floats"
)

const (
	// sameValues is the relative L2 distance of two tensors below which they have the same values, but for rounding.
	sameValues = 2e-2
	// lookedAt bounds the elements that are compared of a tensor: its first.
	lookedAt = 1 << 12
)

// swapped says of a row that the local side has it and another entry under each other's names: each has the values that the reference has
// under the other. It is empty where none has.
func (w *walker) swapped(r *Row) (string, error) {
	own, ok := w.entryOf(r.Name)
	if !ok || w.o.Alone || w.o.Order == nil || r.Class != gate.Value || r.Firing > 0 || own.Op == nil {
		return "", nil
	}
	ours, theirs := w.sides[local].trace, w.sides[reference].trace
	here, ok := ours.Lookup(r.Pass, r.Name)
	there, also := theirs.Lookup(r.Pass, r.Name)
	if !ok || !also {
		return "", nil
	}
	for i := range w.o.Order.Entries {
		e := &w.o.Order.Entries[i]
		l, ok := ours.Lookup(r.Pass, e.Name)
		other, also := theirs.Lookup(r.Pass, e.Name)
		if !ok || !also || e == own || !slices.Equal(l.Shape, here.Shape) || !slices.Equal(other.Shape, here.Shape) {
			continue
		}
		same := true
		for _, pair := range []struct {
			l    capture.Record
			r    capture.Record
			near bool
		}{{here, other, true}, {l, there, true}, {l, other, false}} {
			near, err := nearStart(ours, pair.l, theirs, pair.r)
			if err != nil {
				return "", err
			}
			if same = near == pair.near; !same {
				break
			}
		}
		if same {
			mend := "a map puts them right (tracediff map LOCAL REFERENCE)"
			if w.o.Map != nil { // which does not follow the values where the names say the opposite
				mend = "exchange their two lines in the map"
			}
			return fmt.Sprintf("%s has the values of %s's %s, and the reverse: if it is the names that are exchanged, %s", w.names[local].Tensor, w.names[reference].Trace, e.Name, mend), nil
		}
	}
	return "", nil
}

// nearStart reports whether the first elements of two tensors are the same but for rounding.
func nearStart(a *capture.Trace, l capture.Record, b *capture.Trace, r capture.Record) (bool, error) {
	x, err := start(a, l)
	if x == nil || err != nil {
		return false, err
	}
	y, err := start(b, r)
	if y == nil || err != nil {
		return false, err
	}
	var apart, norm float64
	for i := range y {
		if x[i] == y[i] || math.Abs(y[i]) > hiddenScore {
			continue
		}
		apart += (x[i] - y[i]) * (x[i] - y[i])
	}
	for _, v := range y {
		if math.Abs(v) <= hiddenScore {
			norm += v * v
		}
	}
	return apart <= sameValues*sameValues*norm, nil // not where either has a NaN
}

// hiddenScore is more than any number that is no mask.
const hiddenScore = 1e9

// start are the first elements of a tensor; nil for one without floats.
func start(t *capture.Trace, r capture.Record) ([]float64, error) {
	if !r.DType.Float() || r.Size == 0 {
		return nil, nil
	}
	raw := make([]byte, min(r.Size, int64(lookedAt*r.DType.Size())))
	if n, err := t.ReadAt(r, raw, 0); n < len(raw) {
		return nil, err
	}
	x := make([]float64, len(raw)/r.DType.Size())
	return x, floats.Decode(x, r.DType, raw)
}
