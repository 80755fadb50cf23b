package compare

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// positions holds position_ids to the token ids: the first token is at 0, and each pass goes on where the one before has ended.
// The ids themselves are taken as they are: no tensor says which they should have been. In one trace alone other positions are
// a mistake. Where both traces have the same ones, nobody says which are meant, and they show nothing.
func (w *walker) positions(p *pair) error {
	if p.row.Name != order.PositionIDs || p.seen != SeenWithin || p.row.Pass >= len(w.plan.past) {
		return nil
	}
	got, ok, err := integers(w.sides[local].trace, p.row.Pass, order.PositionIDs)
	if err != nil || !ok {
		return err
	}
	want := make([]int64, 0, w.plan.tokens[p.row.Pass])
	for _, row := range w.plan.scopes[local].Rows(w.plan.past[p.row.Pass], w.plan.tokens[p.row.Pass]) {
		want = append(want, int64(w.plan.past[p.row.Pass]+row))
	}
	if slices.Equal(got, want) {
		return nil
	}
	detail := fmt.Sprintf("the positions of %s are not those of its tokens in the sequence", capture.Key(p.row.Pass, order.InputIDs, 0))
	if len(got) == len(want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		detail += fmt.Sprintf(": token %d is at %d, not %d", at, got[at], want[at])
	}
	if w.o.Alone {
		p.see(SeenNumbers, "%s", detail)
		return nil
	}
	p.content, p.untested = Untested, detail
	return nil
}
