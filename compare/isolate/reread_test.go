package isolate_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

// An engine that multiplies the activation before it is rounded to bfloat16 has the same certificates whether its products are certified as a whole or a token
// at a time, and so has one with a wrong layer. The operand of a few tokens is computed again for these tokens alone.
func TestRereadSomeTokensAtATime(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		trace := fusedProducts(t, "qwen3-tiny/decode.bfloat16", wrong)
		want := map[string]string{}
		for _, block := range []int{isolate.BlockElements, 1} {
			i := isolatorIn(t, trace, "qwen3-tiny")
			i.Block = block
			fused, bugs := 0, 0
			for layer := range i.List().Config.NumLayers {
				name := fmt.Sprintf("layers.%d.mlp.gated", layer)
				of, err := i.Unread(order.Node{Entry: i.List().Index(name)}, i.Has)
				if err != nil {
					t.Fatal(err)
				}
				if (of.Block() == 1) != (block == 1) {
					t.Fatalf("%s has blocks of %d tokens", name, of.Block())
				}
				c, err := i.Certify(t.Context(), name, 0)
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(c.Arithmetic, "reads mlp.act_fn before it is rounded") {
					fused++
				}
				if c.Outcome == isolate.Bug {
					bugs++
				}
				got := fmt.Sprintf("%s %s: %d of %d, %d outside", c.Outcome, c.Arithmetic, c.Unequal, c.Elements, c.Outside)
				if block == isolate.BlockElements {
					want[name] = got
				} else if got != want[name] {
					t.Errorf("%s a token at a time: %s, want %s", name, got, want[name])
				}
				e, err := i.Evidence(t.Context(), of.Node)
				if err != nil {
					t.Fatal(err)
				}
				again, err := isolate.Recompute(t.Context(), e.Trial, isolate.Operand{Role: "mlp.act_fn"}, nil)
				if err != nil || again == nil {
					t.Fatalf("%s is not computed again: %v", name, err)
				}
				if !slices.Equal(again.Y.Data, e.Y.Data) || len(again.Call.In[0].Data) != len(e.Call.In[0].Data) {
					t.Errorf("%s: of %d elements, %d are computed again", name, len(e.Y.Data), len(again.Y.Data))
				}
			}
			if fused == 0 || (bugs > 0) != wrong {
				t.Errorf("in blocks of %d elements %d products read the activation before it is rounded, and %d are wrong: %v", block, fused, bugs, want)
			}
		}
	}
}

// An operand that is computed from other tokens too, as the context of attention, is computed again from all of them for the tokens that are looked at.
func TestRereadContextOfSomeTokens(t *testing.T) {
	ctx := t.Context()
	trace := testengine.OpenGolden(t, "golden/qwen3-tiny/decode.bfloat16.safetensors")
	n, again := order.Node{}, [2]*isolate.Judgement{}
	var kept []int
	for k, block := range []int{1, isolate.BlockElements} {
		i := isolatorIn(t, trace, "qwen3-tiny")
		i.Block, n.Entry = block, i.List().Index("layers.1.self_attn.o_proj")
		e, err := i.Evidence(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			kept = e.Rows()
		}
		of, err := isolate.Recompute(t.Context(), e.Trial, isolate.Operand{Role: "self_attn.context"}, nil)
		if err != nil || of == nil {
			t.Fatalf("it is not computed again: %v", err)
		}
		if again[k], err = of.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{}}); err != nil {
			t.Fatal(err)
		}
	}
	some, all := again[0], again[1]
	width := some.X.Shape[len(some.X.Shape)-1]
	if len(kept) == 0 || len(some.Y.Data) != len(kept)*width || len(some.Y.Data) >= len(all.Y.Data) {
		t.Fatalf("%d of %d elements are computed again, for %d tokens", len(some.Y.Data), len(all.Y.Data), len(kept))
	}
	for k, token := range kept {
		for c := range width {
			at, of := k*width+c, token*width+c
			if some.X.Data[at] != all.X.Data[of] || some.X.Bound[at] != all.X.Bound[of] || some.Y.Data[at] != all.Y.Data[of] {
				t.Fatalf("element %d of token %d is computed again as %v ± %v, want %v ± %v", c, token, some.X.Data[at], some.X.Bound[at], all.X.Data[of], all.X.Bound[of])
			}
		}
	}
}

// fusedProducts is a golden of bfloat16 without what follows the product in the MLP, which is that of the unrounded activation; wrong: twice as large in
// one layer.
func fusedProducts(t *testing.T, golden string, wrong bool) *capture.Trace {
	t.Helper()
	from := testengine.OpenGolden(t, "golden/"+golden+".safetensors")
	m := from.Manifest()
	m.Scope, m.Entries = capture.Scope{}, nil
	path := filepath.Join(t.TempDir(), "fused.safetensors")
	w, err := capture.Create(path, m, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string][]float64{}
	for _, r := range from.Records() {
		_, name, mlp := strings.Cut(r.Name, ".mlp.")
		if !mlp && r.Name != order.InputIDs && r.Name != order.PositionIDs || name == "down_proj" {
			continue
		}
		x, err := from.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if mlp {
			v, err := from.Value(r.Pass, r.Name)
			if err != nil {
				t.Fatal(err)
			}
			numbers[name] = v.Data
		}
		if name == "gated" {
			x.Data = x.Data[:0:0]
			for k, gate := range numbers["gate_proj"] {
				y := float32(gate/(1+math.Exp(-gate))) * float32(numbers["up_proj"][k])
				if wrong && r.Pass == 0 && strings.HasPrefix(r.Name, "layers.1.") {
					y *= 2
				}
				x.Data = binary.LittleEndian.AppendUint16(x.Data, floats.BF16(y))
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
