package capture

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// maxIDs bounds the tokens of one pass that IDs reads: no model has a longer context.
const maxIDs = 1 << 24

// OneSequence is what to do about a batch of several sequences.
const OneSequence = "run the port with one sequence, or dump one sequence of its batch"

// IDs returns the token ids of every pass, from pass 0 on: the tensors input_ids, of shape [1, T] and integers of any width (torch has
// int64, many engines int32 or uint32). The error names a tensor of another shape or dtype; a trace without input_ids is an error.
func (t *Trace) IDs() ([][]int, error) {
	var passes [][]int
	for {
		r, ok := t.Lookup(len(passes), order.InputIDs)
		if !ok {
			break
		}
		if n, possible := hooks.Elements(r.Shape); !r.DType.Integer() || len(r.Shape) != 2 || r.Shape[0] != 1 || !possible || n > maxIDs {
			if len(r.Shape) == 2 && r.Shape[0] > 1 && possible {
				return nil, hint.Add(fmt.Errorf("%s: %s has %d sequences, and only one can be read: its shape is %v, not [1, tokens]", t.Path(), r.Key, r.Shape[0], r.Shape), OneSequence)
			}
			return nil, fmt.Errorf("%s: %s is %s %v, want integers [1, tokens]", t.Path(), r.Key, r.DType, r.Shape)
		}
		ids, err := t.Read(r)
		if err != nil {
			return nil, err
		}
		pass, err := wholeNumbers(ids)
		if err != nil {
			return nil, fmt.Errorf("%s: %s %w", t.Path(), r.Key, err)
		}
		passes = append(passes, pass)
	}
	if len(passes) == 0 {
		err := fmt.Errorf("%s has no %s: its input is not known", t.Path(), order.InputIDs)
		if t.Manifest().Scope.Narrow() { // the scope may leave out the ids
			return nil, err
		}
		return nil, hint.Add(err, "dump the token ids of every pass as "+order.InputIDs+", integers [1, tokens]")
	}
	return passes, nil
}

// maxWhole is the largest magnitude below which every integer is a float64.
const maxWhole = 1 << 53

// wholeNumbers are the elements of a tensor of integers. An element too large for a token id is an error.
func wholeNumbers(x hooks.Tensor) ([]int, error) {
	values := make([]float64, len(x.Data)/x.DType.Size())
	if err := floats.Decode(values, x.DType, x.Data); err != nil {
		return nil, err
	}
	all := make([]int, len(values))
	for i, v := range values {
		if math.Abs(v) >= maxWhole {
			return nil, fmt.Errorf("has %.0f, which is not a token id", v)
		}
		all[i] = int(v)
	}
	return all, nil
}
