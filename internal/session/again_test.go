package session

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// cancelling is a Progress that cancels its context after some steps.
type cancelling struct {
	left   *atomic.Int64
	cancel context.CancelFunc
}

func (p *cancelling) Step(_, _, _, _ int) {
	if p.left.Add(-1) == 0 {
		p.cancel()
	}
}

func (*cancelling) Doing(string) {}
func (*cancelling) Done()        {}

// A comparison of one process that is cancelled changes nothing of the next one, as where watch starts anew: the next has the result of a
// process in which nothing was cancelled. What was asked stays what it was.
func TestCompareAfterACancelledOne(t *testing.T) {
	seen := 0
	asked := func() Asked {
		return Asked{Observe: func(compare.Pair) error { seen++; return nil }, Limits: &gate.Limits{}, All: true, Fused: []string{"nothing"}, Mistake: func(c *order.Config) { c.RMSNormEps = 1e-5 }}
	}
	s := settings.Defaults()
	s.Tokens, s.DType, s.Reference = "2,527,876", "bfloat16", settings.Source{Kind: settings.KindGo}
	result := func(ctx context.Context, e *settings.Env, a Asked) (string, error) {
		r, err := Compare(ctx, e, s, a)
		if err != nil {
			return "", err
		}
		if r.Divergence == nil || r.Isolation.Bugs == 0 {
			t.Fatal("the comparison does not show what is to be tested")
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		// Where the traces lie, and whether the reference was there already.
		delete(all, "local")
		delete(all, "reference")
		data, err = json.Marshal(all)
		return string(data), err
	}
	fresh := func() *settings.Env {
		return &settings.Env{Dir: t.TempDir(), Notes: io.Discard, Errors: io.Discard, Process: settings.NewProcess()}
	}
	want, err := result(t.Context(), fresh(), asked())
	if err != nil {
		t.Fatal(err)
	}
	e, a := fresh(), asked()
	cancelled := 0
	for _, steps := range []int64{1, 40, 300, 700} {
		ctx, cancel := context.WithCancel(t.Context())
		left := &atomic.Int64{}
		left.Store(steps)
		e.Progress = func(string, string, func() int64) settings.Progress { return &cancelling{left, cancel} }
		switch _, err := result(ctx, e, a); {
		case err != nil && ctx.Err() != nil:
			cancelled++
		case err != nil:
			t.Fatalf("after %d steps: %v", steps, err)
		}
		cancel()
		e.Progress = nil
		if got, err := result(t.Context(), e, a); err != nil || got != want {
			t.Errorf("after a comparison that was cancelled after %d steps the result differs: %v\n%s\nwant\n%s", steps, err, got, want)
		}
	}
	if cancelled < 3 {
		t.Errorf("%d comparisons were cancelled", cancelled)
	}
	before := asked()
	if seen == 0 {
		t.Error("no pair was shown")
	}
	before.Mistake, a.Mistake, before.Observe, a.Observe = nil, nil, nil, nil // functions are not compared
	if !reflect.DeepEqual(a, before) {
		t.Errorf("what was asked is now %+v", a)
	}
}
