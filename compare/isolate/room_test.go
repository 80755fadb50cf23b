package isolate_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/naming"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

// A search takes as much of its account with little room as with much, and so comes to its end at the same mistake: values that are computed once more, since
// there was no room to keep them, are not counted once more.
func TestSearchesDoNotDependOnRoom(t *testing.T) {
	ctx := t.Context()
	trace := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	find := func(room int64) (tried, taken int) {
		i := isolatorOf(t, trace)
		var wrong []*isolate.Evidence
		for e := range i.List().Entries {
			n := order.Node{Entry: e}
			if order.NameOf(i.List().Entries[e].Name).Role() != order.NameOf("layers.0.self_attn.context").Role() || !i.Has(n) {
				continue
			}
			of, err := i.Trial(n)
			if err != nil {
				t.Fatal(err)
			}
			if err := of.Prepare(ctx); err != nil {
				t.Fatal(err)
			}
			wrong = append(wrong, &isolate.Evidence{Trial: of, Left: isolate.UpTo(0, len(of.Y.Data))})
		}
		// What changes nothing gives all entries but the last, so that each of them is read in turn.
		last := wrong[len(wrong)-1].Y.Data
		for k := range last {
			last[k] *= 1 + 0.01*math.Sin(float64(k))
		}
		model := naming.ModelOf(i.Isolator)
		model.Room, model.Work = room, 1<<23
		entries, err := naming.SuspectsOf(ctx, wrong, &isolate.Arithmetic{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := diagnose.Find(t.Context(), model, entries)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) < 2 || f.Named() || !f.Stopped || f.Tried < 50 {
			t.Fatalf("%d entries, %+v", len(entries), f)
		}
		return f.Tried, model.Taken()
	}
	tried, taken := find(1 << 30)
	if few, less := find(1 << 10); few != tried || less != taken {
		t.Errorf("%d mistakes took %d with little room, %d took %d with much", few, less, tried, taken)
	}
}
