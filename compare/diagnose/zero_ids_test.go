package diagnose_test

import (
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// scaledLookup is three times the rows of a table.
type scaledLookup struct{ op.Linear }

func (scaledLookup) Kind() string { return "scaled_lookup" }

func (scaledLookup) Steps(b *program.Builder, in, w []program.Var) program.Var {
	return b.Mul("product", b.Lookup(in[0], w[0], 20, false), b.Scalar("constant", 3))
}

// Rows of zeros are those of an id if they stand between other rows, or if the id comes twice. At the end of the tokens they may be rows of places as well.
func TestRowsOfZerosByIDAndByPlace(t *testing.T) {
	for _, c := range []struct {
		ids  []float64
		zero map[int]bool // tokens
		key  string
	}{
		{[]float64{3, 7, 12, 5, 9, 1, 2, 4}, map[int]bool{2: true}, "lookup.other-rows(place=lookup.ids,runs=12=-)"},
		{[]float64{3, 7, 12, 5, 9, 1, 2, 2}, map[int]bool{6: true, 7: true}, "lookup.other-rows(place=lookup.ids,runs=2=-)"},
		{[]float64{3, 7, 12, 5, 9, 1, 2, 4}, map[int]bool{7: true}, "rows.zeros(place=zeros,of=tensor:layers.0.self_attn.o_proj,by=zeros,n=1,m=8,at=tokens 7)"},
		{[]float64{3, 7, 12, 5, 9, 1, 2, 4}, map[int]bool{0: true, 1: true}, "rows.zeros(place=zeros,of=tensor:layers.0.self_attn.o_proj,by=zeros,n=2,m=8,at=tokens 0, 1)"},
	} {
		o := operation{"layers.0.self_attn.o_proj", scaledLookup{}, "btc", []int{1, 8, 16}, []program.Value{{Shape: []int{1, 8}, Data: c.ids}}, nil, nil}
		for r := range 20 {
			o.matrix = append(o.matrix, wave(16, 31*r+2))
		}
		m := model(t)
		m.Passes[0].Tokens = 8
		f := named(t, m, o.made(t, m, func(_ [][]float64, y []float64) {
			for i := range y {
				if y[i] = 3 * o.matrix[int(c.ids[i/16])][i%16]; c.zero[i/16] {
					y[i] = 0
				}
			}
		}))
		if f.Key() != c.key {
			t.Errorf("%v: %q, %s, want %s", c.zero, f.What, f.Key(), c.key)
		}
	}
}
