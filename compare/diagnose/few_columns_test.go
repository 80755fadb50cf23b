package diagnose_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/program"
)

// fewTargets is a judge whose target is known in some elements alone; the others are NaN.
type fewTargets struct {
	*honest
	known []int
}

func (f *fewTargets) Target() (y, half []float64) {
	y, half = f.honest.Target()
	y = slices.Clone(y)
	for i := range y {
		if !slices.Contains(f.known, i) {
			y[i] = math.NaN()
		}
	}
	return y, half
}

// A number is solved from the few columns of an entry that has some: all columns of a large vocabulary take more than a search has.
func TestANumberIsSolvedFromFewColumns(t *testing.T) {
	m := model(t)
	e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 {
		y := normed(in[0], w[0], m.List.Config.RMSNormEps)
		for i, v := range y {
			y[i] = float64(float32(math.Tanh(float64(float32(v/30)))) * 30)
		}
		return y
	})
	h, width := e.Judge.(*honest), m.List.Config.HiddenSize
	some := program.Some{Axis: 1, Keep: []int{0, 2}, Columns: []int{0, 3, 4, 7, 8, 9}}
	few := &fewTargets{h, nil}
	part := &honest{e: e}
	for _, token := range some.Keep {
		for _, column := range some.Columns {
			few.known = append(few.known, token*width+column)
			part.y = append(part.y, h.y[token*width+column])
		}
	}
	e.Few = &diagnose.Few{Some: some, Leaves: part.Leaves, Far: part.Far, Target: part.Target}
	for k := range part.y {
		e.Few.Left = append(e.Few.Left, k)
	}
	e.Judge = few
	if f := named(t, m, e); !f.Named() || !strings.Contains(f.Text(), "the result has a tanh soft cap of 30") {
		t.Errorf("%q", f.Text())
	}
}
