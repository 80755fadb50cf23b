package order_test

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// normal is a weight of random numbers, the same for the same name, small enough for streams to stay of one size.
type normal struct {
	name string
	size [2]int
}

func (w normal) Size() (rows, cols int) { return w.size[0], w.size[1] }

func (w normal) Row(dst []float64, i int) error {
	h := fnv.New64a()
	h.Write([]byte(w.name))
	r := rand.New(rand.NewPCG(h.Sum64(), uint64(i)))
	for k := range dst {
		dst[k] = 2 * r.NormFloat64() / math.Sqrt(float64(len(dst)))
	}
	return nil
}

func normals(w order.Weight) (program.Rows, error) {
	name, size := w.Name, [2]int{1, w.Shape[len(w.Shape)-1]}
	if w.Fallback != "" {
		name = w.Fallback
	}
	if len(w.Shape) == 2 {
		size[0] = w.Shape[0]
	}
	return normal{name, size}, nil
}

// logits evaluates a list, exactly, on ids fed in passes of these sizes, and returns the logits of all of them.
func logits(t *rapid.T, l *order.List, ids, tokens []int) []float64 {
	var targets []order.Node
	for pass := range tokens {
		targets = append(targets, order.Node{Entry: l.Index("logits"), Pass: pass})
	}
	argument := func(n order.Node) bool { return l.Entries[n.Entry].Op.Kind() == "argument" }
	plan, err := l.Plan(argument, targets)
	if err != nil {
		t.Fatal(err)
	}
	passes := order.Passes(tokens)
	var out []float64
	env := order.Env{
		Arith: program.Arith{DType: hooks.F32}, Passes: passes, Weights: normals,
		Read: func(n order.Node) (program.Value, error) {
			p := passes[n.Pass]
			v := program.Value{Shape: []int{1, p.Tokens}}
			for at := p.Past; at < p.Past+p.Tokens; at++ {
				number := at
				if l.Entries[n.Entry].Name == order.InputIDs {
					number = ids[at]
				}
				v.Data = append(v.Data, float64(number))
			}
			return v, nil
		},
		Visit: func(n order.Node, v program.Value) error {
			if n.Entry == l.Index("logits") {
				out = append(out, v.Data...)
			}
			return nil
		},
	}
	if err := plan.Run(context.Background(), env); err != nil {
		t.Fatal(err)
	}
	return out
}

// Fed at once or pass by pass, across the window, tokens have the same logits: positions, masks, caches and the keys of
// shared layers fit each other in every family.
func TestDecodingIsPrefill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawList(t)
		passes := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 4).Draw(t, "passes")
		n := 0
		for _, p := range passes {
			n += p
		}
		ids := rapid.SliceOfN(rapid.IntRange(0, l.Config.VocabSize-1), n, n).Draw(t, "ids")
		at, by := logits(t, l, ids, []int{n}), logits(t, l, ids, passes)
		if len(at) != len(by) || len(at) != n*l.Config.VocabSize {
			t.Fatalf("%d and %d logits, want %d", len(at), len(by), n*l.Config.VocabSize)
		}
		if i := slices.IndexFunc(at, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }); i >= 0 {
			t.Fatalf("logit %d is %g", i, at[i])
		}
		for i := range at {
			if d := math.Abs(at[i] - by[i]); d > 1e-9*(1+math.Abs(at[i])) {
				t.Fatalf("logit %d is %g in one pass, %g in passes of %v", i, at[i], by[i], passes)
			}
		}
	})
}
