package isolate_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A run in double precision that was stored as float32 is known as one, however many elements are looked at together. An entry of more elements, whose tokens
// cannot be looked at apart, is not looked at: masked scores of a long prompt.
func TestComputedWiderInPieces(t *testing.T) {
	trace := inDoublePrecision(t, "gemma3-tiny", func(string) bool { return true })
	for _, block := range []int{isolate.BlockElements, 40} {
		i := isolatorIn(t, trace, "gemma3-tiny")
		i.Block = block
		if wide, err := i.Forms.ComputedWider(t.Context()); !wide || err != nil {
			t.Errorf("in blocks of %d elements it is no run in double precision: %v", block, err)
		}
		for _, name := range []string{"layers.1.self_attn.scores_masked", "layers.1.out"} {
			n := order.Node{Entry: i.List().Index(name)}
			of, err := i.Unread(n, i.Has)
			if err != nil {
				t.Fatal(err)
			}
			e, _, err := arithmetic.GivenWider(t.Context(), i.Isolator, n)
			if large := block == 40 && name != "layers.1.out"; err != nil || arithmetic.TooLarge(of) != large || large && e != nil {
				t.Errorf("in blocks of %d elements %s is too large: %v, and %v is looked at: %v", block, name, arithmetic.TooLarge(of), e != nil, err)
			}
		}
	}
}

// Attention of which inputs with more digits give what transformers' arithmetic leaves is known as that, and a wrong query of it too, however many queries are
// computed at one time. No more queries are looked at together.
func TestAttentionGivenWiderSomeQueriesAtATime(t *testing.T) {
	ctx := t.Context()
	const name = "layers.1.self_attn.context"
	exact := inDoublePrecision(t, "gemma3-tiny", func(name string) bool { return !strings.Contains(name, "scores") && !strings.Contains(name, "probs") })
	i := isolatorIn(t, exact, "gemma3-tiny")
	n := order.Node{Entry: i.List().Index(name)}
	of, err := i.Trial(n)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := of.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{}})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := of.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{Wide: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []bool{false, true} {
		trace := withOther(t, exact, name, func(x []float64) {
			for k := range x { // beyond the bounds of transformers' arithmetic, and within those of inputs with more digits
				x[k] = strict.X.Data[k] + (strict.X.Bound[k]+wide.X.Bound[k])/2
			}
			if wrong {
				x[len(x)-1]++
			}
		})
		for _, block := range []int{isolate.BlockElements, 150} {
			i := isolatorIn(t, trace, "gemma3-tiny")
			i.Block = block
			of, err := i.Unread(n, i.Has)
			if err != nil {
				t.Fatal(err)
			}
			e, gives, err := arithmetic.GivenWider(t.Context(), i.Isolator, n)
			if err != nil || e == nil || len(e.Left) == 0 || gives == wrong {
				t.Fatalf("in blocks of %d elements, wrong %v: %v is left, and is given by inputs with more digits: %v, %v", block, wrong, e, gives, err)
			}
			queries, tokens := of.Queries(), i.Env().Passes[0].Tokens
			if (block == 150) != (queries > 1 && queries < tokens) {
				t.Fatalf("blocks of %d elements have %d queries", block, queries)
			}
			if block == 150 && len(e.Y.Data) != len(strict.Y.Data)/tokens*queries {
				t.Errorf("%d of %d elements are looked at together", len(e.Y.Data), len(strict.Y.Data))
			}
		}
	}
}

// inDoublePrecision is what a model computes without rounding, stored as float32, of the tensors that are captured.
func inDoublePrecision(t *testing.T, model string, captured func(name string) bool) *capture.Trace {
	t.Helper()
	ck, list := ordertest.Embedded(t, model)
	path := filepath.Join(t.TempDir(), "exact.safetensors")
	if _, err := reference.Walk(t.Context(), reference.Job{
		Checkpoint: ck, List: list, DType: hooks.F32, Exact: true, Passes: [][]int{{2, 5, 9, 40, 33, 7, 8}}, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	}); err != nil {
		t.Fatal(err)
	}
	exact, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Close()
	m := exact.Manifest()
	m.DType, m.Scope, m.Entries = hooks.F32, capture.Scope{}, nil
	path = filepath.Join(t.TempDir(), "stored.safetensors")
	w, err := capture.Create(path, m, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range exact.Records() {
		if !captured(r.Name) {
			continue
		}
		x, err := exact.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.DType == hooks.F64 {
			v, err := exact.Value(r.Pass, r.Name)
			if err != nil {
				t.Fatal(err)
			}
			x = hooks.Tensor{DType: hooks.F32, Shape: x.Shape}
			for _, y := range v.Data {
				x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(float32(y)))
			}
		}
		if err := w.Observe(hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: x}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	trace, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trace.Close() })
	return trace
}
