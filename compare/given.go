package compare

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/order"
)

// positionIDs is the argument of the model that says where in the sequence its tokens stand.
const positionIDs = "position_ids"

// given judges an argument of the model in a trace alone, where nothing else does. The token ids are taken as they are: a
// trace is of some prompt, and no tensor says which it should have been. Positions follow from them: the first token is at 0,
// and each pass goes on where the one before has ended.
func (w *walker) given(r *Row) error {
	if !w.o.Alone || r.Name != positionIDs || r.Verdict != Match || r.Pass >= len(w.plan.past) {
		return nil
	}
	got, ok, err := integers(w.sides[local].trace, r.Pass, positionIDs)
	if err != nil || !ok {
		return err
	}
	want := make([]int64, w.plan.tokens[r.Pass])
	for i := range want {
		want[i] = int64(w.plan.past[r.Pass] + i)
	}
	if slices.Equal(got, want) {
		return nil
	}
	detail := fmt.Sprintf("the positions of %s are not those of its tokens in the sequence", capture.Key(r.Pass, order.InputIDs, 0))
	if len(got) == len(want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		detail += fmt.Sprintf(": token %d is at %d, not %d", at, got[at], want[at])
	}
	r.mismatch(gate.Value, detail)
	return nil
}
