package diagnose_test

import (
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// repeated multiplies four heads by two, each of which goes with two that follow each other.
type repeated struct{}

func (repeated) Kind() string { return "repeated" }

func (repeated) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := b.Split(in[0], 1, 2)
	y := b.Expand(b.Permute(in[1], 0, 1, -1, 2, 3), x.Shape)
	return b.Reshape(b.Mul("product", x, y), b.Shape...)
}

// attention is that of 4 heads of queries with 2 of keys and values, without a softmax.
type attention struct{}

func (attention) Kind() string { return "attention" }

func (attention) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	q := b.Split(in[0], 1, 2)
	return b.Reshape(b.Dot("context", "bkgts,bksd->bkgtd", b.Dot("scores", "bkgtd,bksd->bkgts", q, in[1]), in[2]), b.Shape...)
}

// Heads that are tiled, and one token that is read for all, are named.
func TestTiledHeadsAreNamed(t *testing.T) {
	four, two := []int{1, 4, 8, 8}, []int{1, 2, 8, 8}
	product, attended := reading(repeated{}, four, four, two), reading(attention{}, four, four, two, two)
	product.axes, attended.axes = "bhtc", "bhtc"
	times := func(at func(i int) int) wrongly {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = in[0][i] * in[1][at(i)]
			}
		}
	}
	attend := func(heads ...int) wrongly {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for s := range 8 {
					score, key := 0.0, (heads[i/64]*8+s)*8
					for d := range 8 {
						score += in[0][i/8*8+d] * in[1][key+d]
					}
					y[i] += score * in[2][key+i%8]
				}
			}
		}
	}
	token := func(k int) wrongly {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = in[0][i] + in[1][k*16+i%16]
			}
		}
	}
	for _, c := range []looped{
		{"heads.tiled", "KV heads are tiled, not repeated: query head h reads KV head h mod n, not h / n", attended, attend(0, 1, 0, 1), attend(1, 0, 1, 0)},
		{"heads.tiled-reads", "layers.*.self_attn.o_proj is tiled, not repeated: reader i of 4, such as a head, reads number i mod 2, not i / 2", product, times(func(i int) int { return i % 128 }), times(func(i int) int { return (i + 64) % 128 })},
		{"elements.one-index", "layers.*.self_attn.o_proj is read at index 7 of its tokens everywhere", sumOf8(), token(7), token(6)},
	} {
		c.hold(t)
	}
}

// A projection without its bias is told from one with half of it.
func TestABiasThatIsLeftOutIsNamed(t *testing.T) {
	m := weighted(t)
	of := func(by float64) string {
		e := rightEntry(t, m, query)
		bias := each(gridOf(e.Weights[1])[0], func(x float64) float64 { return x * by })
		return string(found(t, m, e, linear(e.Call.In[0].Data, gridOf(e.Weights[0]), bias)).Kind)
	}
	if none, half := of(0), of(0.5); none != "bias.left-out" || half == "bias.left-out" {
		t.Errorf("no bias is %q, and half of it %q", none, half)
	}
}

// A cache of five slots that keeps the oldest two of the four that it had has their numbers. One that keeps two in the wrong order has another name.
func TestTheOldestSlotsAreNamed(t *testing.T) {
	cached := operation{"layers.0.self_attn.keys", op.Cache{}, "bhsc", []int{1, 1, 5, 8}, []program.Value{{Shape: []int{1, 1, 3, 8}, Data: wave(24, 1)}, {Shape: []int{1, 1, 4, 8}, Data: wave(32, 9)}}, nil, nil}
	keeps := func(slots ...int) (key, says string) {
		m := model(t)
		e := cached.made(t, m, func(in [][]float64, y []float64) {
			for k, slot := range slots {
				copy(y[8*k:], in[1][8*slot:][:8])
			}
		})
		e.Node.Pass, e.Inputs[0].Pass, e.Inputs[1] = 1, 1, order.Node{Entry: e.Node.Entry}
		f := named(t, m, e)
		return string(f.Mistake.Kind), f.What
	}
	const says = "keeps keys 0 to 1 of layers.*.self_attn.keys of the previous pass, not 2 to 3: the oldest, not the newest"
	if kind, what := keeps(0, 1); kind != "index.oldest" || what != says {
		t.Errorf("%s: %q", kind, what)
	}
	if kind, what := keeps(1, 0); kind == "index.oldest" {
		t.Errorf("slots in another order are %q", what)
	}
}
