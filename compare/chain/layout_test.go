package chain_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// relaying is a golden of llama-tiny in float32, of which copies are made in other numbers.
type relaying struct {
	ck     *checkpoint.Checkpoint
	list   *order.List
	golden *capture.Trace
	limits *gate.Limits // nil for the built-in limits
}

func newRelaying(t *testing.T) relaying {
	t.Helper()
	ck, list := ordertest.Embedded(t, "llama-tiny")
	return relaying{ck: ck, list: list, golden: testengine.OpenGolden(t, "golden/llama-tiny/decode.float32.safetensors")}
}

// products are the scores of layer 1 in a pass, computed from its queries and keys with both in other numbers: [h,T,S].
func (g relaying) products(t *testing.T, c change, pass int) []float64 {
	t.Helper()
	read := func(name string, f func([]float64, int)) (data []float64, shape []int) {
		v, err := g.golden.Value(pass, attended+name)
		if err != nil {
			t.Fatal(err)
		}
		if data = v.Data; f != nil {
			f(data, pass)
		}
		return data, v.Shape
	}
	q, qs := read("q_rope", c.queries)
	k, ks := read("keys", c.keys)
	heads, tokens, keys := qs[1], qs[2], ks[2]
	var out []float64
	for h := range heads {
		for i := range tokens {
			for s := range keys {
				var sum float64
				for d := range headDim {
					sum += float64(q[(h*tokens+i)*headDim+d] * k[(h*ks[1]/heads*keys+s)*headDim+d])
				}
				out = append(out, sum/math.Sqrt(headDim))
			}
		}
	}
	return out
}

// compare holds a copy of the golden to it, or to itself.
func (g relaying) compare(t *testing.T, alone bool, change func(name string, pass int, data []float64)) *compare.Result {
	t.Helper()
	local := testengine.Tampered(t, g.golden, func(_ string, r capture.Record, data []float64) ([]float64, hooks.DType) {
		change(r.Name, r.Pass, data)
		return data, r.DType
	})
	return g.held(t, alone, local)
}

// held compares a copy.
func (g relaying) held(t *testing.T, alone bool, local *capture.Trace) *compare.Result {
	t.Helper()
	i, err := compare.NewIsolator(local, g.list, reference.Weights(g.ck, hooks.F32), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := compare.Options{Order: g.list, Certification: compare.Certification{Isolator: i}, Judging: compare.Judging{Limits: g.limits}, All: true}
	var res *compare.Result
	if alone {
		res, err = compare.Alone(t.Context(), local, o)
	} else {
		res, err = compare.Traces(t.Context(), local, g.golden, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Contradiction(); err != nil {
		t.Error(err)
	}
	return res
}

const (
	headDim  = 8 // of llama-tiny
	attended = "layers.1.self_attn."
)

// apartPairs has the first halves of pairs before the second ones, and back is another order.
var (
	apartPairs = []int{0, 2, 4, 6, 1, 3, 5, 7}
	back       = []int{7, 6, 5, 4, 3, 2, 1, 0}
)

// reordered puts the channels of each head in another order.
func reordered(data []float64, by []int) {
	for at := 0; at < len(data); at += headDim {
		old := slices.Clone(data[at:][:headDim])
		for k, from := range by {
			data[at+k] = old[from]
		}
	}
}

func multiplyAll(data []float64, by float64) {
	for k := range data {
		data[k] *= by
	}
}

// change is what a port does otherwise in layer 1: to its queries, its keys, and the products of both. Scores are those of the golden,
// unless they are computed from what was changed.
type change struct {
	queries, keys, scores func(data []float64, pass int)
	computed              bool
}

// changed compares the golden with the change made.
func (g relaying) changed(t *testing.T, alone bool, c change) *compare.Result {
	t.Helper()
	return g.compare(t, alone, func(name string, pass int, data []float64) {
		switch {
		case c.computed && name == attended+"scores":
			copy(data, g.products(t, c, pass))
		case c.computed && name == attended+"scores_masked":
			for k, v := range g.products(t, c, pass) {
				if data[k] > -1e30 {
					data[k] = float64(float32(v))
				}
			}
		}
		c.make(name, pass, data)
	})
}

func (c change) make(name string, pass int, data []float64) {
	f := map[string]func([]float64, int){"q_rope": c.queries, "k_rope": c.keys, "keys": c.keys, "scores": c.scores}[strings.TrimPrefix(name, attended)]
	if strings.HasPrefix(name, attended) && f != nil {
		f(data, pass)
	}
}

func inOrder(by []int) func([]float64, int) {
	return func(data []float64, _ int) { reordered(data, by) }
}

func by(s float64) func([]float64, int) {
	return func(data []float64, _ int) { multiplyAll(data, s) }
}

// A change that is the same in queries and keys cancels in the scores: all of its entries match, with a note that says so.
func TestLayoutsMatch(t *testing.T) {
	g := newRelaying(t)
	for name, c := range map[string]change{
		"pairs apart in queries and keys": {queries: inOrder(apartPairs), keys: inOrder(apartPairs)},
		"reversed in both":                {queries: inOrder(back), keys: inOrder(back)},
		"a factor moved from keys":        {queries: by(0.5), keys: by(2)},
		"computed from both":              {queries: inOrder(back), keys: inOrder(back), computed: true},
	} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, alone %t", name, alone), func(t *testing.T) {
				r := g.changed(t, alone, c)
				if r.ExitCode() != 0 || r.Mismatches > 0 || r.Isolation.Bugs > 0 || r.Isolation.Layout == 0 || len(r.Layouts) != 1 {
					t.Fatalf("exit %d, %d mismatches, %d bugs, %d layout, %q, %q", r.ExitCode(), r.Mismatches, r.Isolation.Bugs, r.Isolation.Layout, r.Layouts, r.Incomplete)
				}
				if !strings.Contains(r.Layouts[0], "self_attn.q_rope, layer 1: ") && !strings.Contains(r.Layouts[0], "self_attn.q_rope and self_attn.k_rope, layer 1: ") || !strings.HasSuffix(r.Layouts[0], "cancels in self_attn.scores") {
					t.Errorf("layout: %s", r.Layouts[0])
				}
				for i := range r.Rows {
					row := &r.Rows[i]
					changed := row.Name == attended+"q_rope" || c.keys != nil && (row.Name == attended+"k_rope" || row.Name == attended+"keys")
					noted := slices.ContainsFunc(row.Notes, func(n compare.Note) bool { return n.Kind == compare.OtherLayout })
					if changed != noted && row.Name != attended+"scores" {
						t.Errorf("%s: changed %t, noted %t", row.Key(), changed, noted)
					}
				}
			})
		}
	}
}

// A layout has to cancel within the limit of the entry in which it does: scores that are right on their own inputs, and further off than a person allows, are
// no end of a layout.
func TestALayoutCancelsWithinTheLimit(t *testing.T) {
	g := newRelaying(t)
	c := change{queries: inOrder(back), keys: inOrder(back), computed: true}
	for rtol, cancels := range map[float64]bool{1e-3: true, 1e-12: false} {
		g.limits = &gate.Limits{
			Rules:   []gate.Rule{{Tensors: attended + "scores*", Tolerance: gate.Tolerance{RTol: rtol}}},
			Default: &gate.Tolerance{RTol: 10},
		}
		r := g.changed(t, false, c)
		if (r.Isolation.Layout > 0) != cancels || (r.Isolation.Bugs == 0) != cancels {
			t.Errorf("limit %g: %d in a layout, %d bugs, layouts %q", rtol, r.Isolation.Layout, r.Isolation.Bugs, r.Layouts)
		}
	}
}

// What does not cancel is a mismatch, at the entry in which it begins.
func TestWhatDoesNotCancelIsNoLayout(t *testing.T) {
	g := newRelaying(t)
	odd := func(data []float64, pass int) {
		if pass%2 == 1 {
			reordered(data, apartPairs)
		}
	}
	for name, c := range map[string]change{
		"queries alone, as a hook has it":      {queries: inOrder(apartPairs)},
		"a factor of scores in queries":        {queries: by(0.25)},
		"queries alone":                        {queries: inOrder(apartPairs), computed: true},
		"keys alone":                           {keys: inOrder(apartPairs), computed: true},
		"another order in keys":                {queries: inOrder(apartPairs), keys: inOrder(back), computed: true},
		"in some passes":                       {queries: odd, keys: odd},
		"queries of some passes":               {queries: odd, keys: inOrder(apartPairs), computed: true},
		"factors that do not cancel":           {queries: by(0.5), keys: by(4), computed: true},
		"a factor too many":                    {queries: by(2), computed: true},
		"scores that are wrong":                {queries: inOrder(apartPairs), keys: inOrder(apartPairs), scores: func(data []float64, _ int) { data[0] *= 1.01 }},
		"another mistake in the same queries":  {queries: func(data []float64, _ int) { reordered(data, apartPairs); data[3] *= 1.01 }, keys: inOrder(apartPairs)},
		"another mistake in keys of one token": {queries: inOrder(back), keys: func(data []float64, _ int) { reordered(data, back); multiplyAll(data[:headDim], 2) }},
	} {
		for _, alone := range []bool{false, true}[:1+len(name)%2] {
			t.Run(fmt.Sprintf("%s, alone %t", name, alone), func(t *testing.T) {
				r := g.changed(t, alone, c)
				if r.ExitCode() != 1 || r.Divergence == nil || r.Isolation.Bugs == 0 {
					t.Fatalf("exit %d, %d mismatches, %d bugs, layouts %q", r.ExitCode(), r.Mismatches, r.Isolation.Bugs, r.Layouts)
				}
				if first := r.Divergence.Row.Name; !slices.Contains([]string{"q_rope", "k_rope"}, strings.TrimPrefix(first, attended)) {
					t.Errorf("the first divergence is %s", first)
				}
			})
		}
	}
}

// A mistake behind a layout is found, and the layout is one still.
func TestMistakeBehindALayoutIsFound(t *testing.T) {
	g := newRelaying(t)
	both := change{queries: inOrder(apartPairs), keys: inOrder(apartPairs)}
	const wrong = "layers.1.mlp.down_proj"
	r := g.compare(t, false, func(name string, pass int, data []float64) {
		if both.make(name, pass, data); name == wrong {
			multiplyAll(data, 1.5)
		}
	})
	if r.ExitCode() != 1 || r.Divergence == nil || r.Divergence.Row.Name != wrong || len(r.Layouts) != 1 {
		t.Fatalf("exit %d, divergence %+v, layouts %q", r.ExitCode(), r.Divergence, r.Layouts)
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Isolated != nil && row.Isolated.Outcome == isolate.Bug && row.Name != wrong && !strings.HasPrefix(row.Name, "layers.1.") {
			t.Errorf("%s is a BUG", row.Key())
		}
	}
}

// Where what follows is the same whatever the queries are, nothing cancels: of one token, the softmax is 1.
func TestNothingCancelsInWhatIsConstant(t *testing.T) {
	g := newRelaying(t)
	path := filepath.Join(t.TempDir(), "one.safetensors")
	if _, err := reference.Walk(t.Context(), reference.Job{
		List: g.list, DType: hooks.F32, Passes: [][]int{{2}}, Checkpoint: g.ck, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 2}},
	}); err != nil {
		t.Fatal(err)
	}
	g.golden = testengine.Open(t, path)
	if _, ok := g.golden.Lookup(0, attended+"scores"); ok {
		t.Fatal("scores are captured at level 2")
	}
	if r := g.changed(t, true, change{}); r.Isolation.Bugs > 0 {
		t.Fatalf("%d bugs without a change", r.Isolation.Bugs)
	}
	for _, alone := range []bool{false, true} {
		r := g.changed(t, alone, change{queries: by(2)})
		if r.ExitCode() != 1 || r.Divergence == nil || r.Divergence.Row.Name != attended+"q_rope" || len(r.Layouts) > 0 {
			t.Errorf("exit %d, %+v, layouts %q", r.ExitCode(), r.Divergence, r.Layouts)
		}
	}
}

// Of orders that are drawn for queries and for keys, those that are equal cancel, and no others.
func TestDrawnOrdersCancelWhereTheyAreEqual(t *testing.T) {
	g := newRelaying(t)
	rng := rand.New(rand.NewPCG(14, 1))
	for k := range 8 {
		q := rng.Perm(headDim)
		keys := slices.Clone(q)
		if k%2 == 1 { // two of them exchanged
			a := rng.IntN(headDim)
			b := (a + 1 + rng.IntN(headDim-1)) % headDim
			keys[a], keys[b] = keys[b], keys[a]
		}
		c := change{queries: inOrder(q), keys: inOrder(keys), computed: true}
		if r := g.changed(t, k%4 < 2, c); r.ExitCode() != k%2 {
			t.Errorf("queries %v, keys %v: exit %d, layouts %q", q, keys, r.ExitCode(), r.Layouts)
		}
	}
}

// A constant that is not rounded as the model rounds it is the same in exact arithmetic, and no layout: it changes results and cancels
// nowhere.
func TestRoundingIsNoLayout(t *testing.T) {
	ck, list := ordertest.Embedded(t, "gemma3n-tiny")
	golden := testengine.OpenGolden(t, "golden/gemma3n-tiny/window.bfloat16.safetensors")
	rows, err := golden.Value(0, "embed_tokens.lookup")
	if err != nil {
		t.Fatal(err)
	}
	scale := math.Sqrt(float64(list.Config.HiddenSize)) // bfloat16 has 5.65625 for 5.65685
	local := testengine.Tampered(t, golden, func(_ string, r capture.Record, data []float64) ([]float64, hooks.DType) {
		if r.Name == "embed_tokens" || r.Name == "inputs_embeds" {
			for k, x := range rows.Data {
				data[k] = floats.Round(hooks.BF16, x*scale)
			}
		}
		return data, r.DType
	})
	i, err := compare.NewIsolator(local, list, reference.Weights(ck, hooks.BF16), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compare.Alone(t.Context(), local, compare.Options{Order: list, Certification: compare.Certification{Isolator: i}, All: true})
	if err != nil {
		t.Fatal(err)
	}
	if row := rowOfKey(t, r, "embed_tokens"); row.Isolated == nil || row.Isolated.Outcome != isolate.Bug || len(r.Layouts) > 0 {
		t.Errorf("%+v, layouts %q", row.Isolated, r.Layouts)
	}
}

func rowOfKey(t *testing.T, r *compare.Result, key string) *compare.Row {
	t.Helper()
	for i := range r.Rows {
		if r.Rows[i].Key() == key {
			return &r.Rows[i]
		}
	}
	t.Fatalf("no row %s", key)
	return nil
}
