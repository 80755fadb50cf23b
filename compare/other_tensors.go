package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

const (
	// sameValues is the relative L2 distance of two tensors below which they have the same values, but for rounding.
	sameValues = 2e-2
	// lookedAt bounds the elements that are compared of a tensor: its first.
	lookedAt = 1 << 12
)

// swapped returns a sentence if the local side has exchanged a row's name with the name of a second entry: each
// local tensor has the reference values of the other name. It returns "" otherwise. mapped says that the local
// names come from a map.
func swapped(pl *plan.Plan, mapped bool, r *Row) (string, error) {
	own, ok := pl.Entry(r.Name)
	if !ok || pl.Mode == sides.Alone || r.Class != gate.Value || r.Firing > 0 || own.Op == nil {
		return "", nil
	}
	ours, theirs := pl.Sides[local].Trace, pl.Sides[reference].Trace
	here, ok := ours.Lookup(r.Pass, r.Name)
	there, also := theirs.Lookup(r.Pass, r.Name)
	if !ok || !also {
		return "", nil
	}
	for i := range pl.List.Entries {
		e := &pl.List.Entries[i]
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
			if mapped { // which does not follow the values where the names say the opposite
				mend = "exchange their two lines in the map"
			}
			return fmt.Sprintf("%s has the values of %s's %s, and the reverse: if only the names are exchanged, %s", pl.Names[local].Tensor, pl.Names[reference].Trace, e.Name, mend), nil
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

// batched names the side with several sequences in an entry, where the comparison takes only one. It returns "" if
// no side has several.
func batched(pl *plan.Plan, pass int, name string) string {
	e, ok := pl.Entry(name)
	if !ok || len(e.Axes) == 0 || e.Axes[0] != order.AxisBatch {
		return ""
	}
	for side, s := range pl.Sides {
		rec, ok := s.Trace.Lookup(pass, name)
		if ok && len(rec.Shape) == len(e.Shape) && rec.Shape[0] > 1 && e.Shape[0] == 1 {
			return fmt.Sprintf("%s has %d sequences, and only one can be compared: %s", pl.Names[side].Trace, rec.Shape[0], capture.OneSequence)
		}
	}
	return ""
}

// otherLength is a hint for two tensors that have the same shape but for the number of tokens, if one side has no token ids. It is empty for any other
// pair of tensors.
func otherLength(pl *plan.Plan, r *Row) string {
	e, ok := pl.Entry(r.Name)
	if !ok {
		return ""
	}
	axes, without := strings.ReplaceAll(e.Axes, " ", ""), ""
	var shapes [2][]int
	for side, s := range pl.Sides {
		rec, _ := s.Trace.Lookup(r.Pass, r.Name)
		if shapes[side] = slices.Clone(rec.Shape); len(rec.Shape) != len(axes) {
			return ""
		}
		if _, has := s.Trace.Lookup(r.Pass, order.InputIDs); !has {
			without = pl.Names[side].Trace
		}
	}
	at := strings.IndexByte(axes, order.AxisToken)
	if without == "" || at < 0 || shapes[sides.Local][at] == shapes[sides.Reference][at] {
		return ""
	}
	tokens := [2]int{shapes[sides.Local][at], shapes[sides.Reference][at]}
	if shapes[sides.Local][at] = tokens[sides.Reference]; !slices.Equal(shapes[sides.Local], shapes[sides.Reference]) {
		return ""
	}
	return fmt.Sprintf("the two sides were given %d and %d tokens: another prompt, or a row with padding; dump %s, which %s does not have", tokens[sides.Local], tokens[sides.Reference], order.InputIDs, without)
}

// otherCells is a hint for two tensors whose shapes differ in one axis, if no configuration says which axis is that of keys: a static cache has
// cells without a key. It is empty for any other pair of tensors.
func otherCells(pl *plan.Plan, r *Row) string {
	l, ref := r.Local.Shape, r.Ref.Shape
	if pl.List != nil && pl.List.Config != nil || len(l) != len(ref) || len(l) < 3 {
		return ""
	}
	differ := 0
	for axis := range l {
		if l[axis] != ref[axis] {
			differ++
		}
	}
	if differ != 1 {
		return ""
	}
	return "if the axis is that of cached keys: with --model DIR, cells that hold no key are left out"
}
