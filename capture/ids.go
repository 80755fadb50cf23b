package capture

import (
	"encoding/binary"
	"fmt"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// maxIDs bounds the tokens of one pass that IDs reads: no model has a longer context.
const maxIDs = 1 << 24

// OneSequence is what to do about a batch of several sequences.
const OneSequence = "run the port with one sequence, or dump one sequence of its batch"

// IDs returns the token ids of every pass: the tensors input_ids, of integers (int64 as torch has them, int32 as many engines
// do) and of shape [1, T], from pass 0 on. The error says which one is not like that, and a trace without any is an error.
func (t *Trace) IDs() ([][]int, error) {
	var passes [][]int
	for {
		r, ok := t.Lookup(len(passes), order.InputIDs)
		if !ok {
			break
		}
		if n, possible := hooks.Elements(r.Shape); r.DType != hooks.I64 && r.DType != hooks.I32 || len(r.Shape) != 2 || r.Shape[0] != 1 || !possible || n > maxIDs {
			if len(r.Shape) == 2 && r.Shape[0] > 1 && possible {
				return nil, hint.Add(fmt.Errorf("%s: %s has %d sequences, and one is read: its shape is %v, not [1, tokens]", t.Path(), r.Key, r.Shape[0], r.Shape), OneSequence)
			}
			return nil, fmt.Errorf("%s: %s is %s %v, want int64 or int32 [1, tokens]", t.Path(), r.Key, r.DType, r.Shape)
		}
		ids, err := t.Read(r)
		if err != nil {
			return nil, err
		}
		pass := make([]int, len(ids.Data)/r.DType.Size())
		for i := range pass {
			if r.DType == hooks.I32 {
				pass[i] = int(int32(binary.LittleEndian.Uint32(ids.Data[4*i:])))
			} else {
				pass[i] = int(int64(binary.LittleEndian.Uint64(ids.Data[8*i:])))
			}
		}
		passes = append(passes, pass)
	}
	if len(passes) == 0 {
		return nil, fmt.Errorf("%s has no %s: its input is not known", t.Path(), order.InputIDs)
	}
	return passes, nil
}
