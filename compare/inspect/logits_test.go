package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/hooks"
)

func TestLogits(t *testing.T) {
	inf, row := math.Inf(1), 0
	for name, c := range map[string]struct {
		values  []float64
		ids     []int
		probs   []float64
		entropy float64
	}{
		"two equal ones: the lower id first": {[]float64{1, 3, 3, 0}, []int{1, 2, 0}, []float64{0.45764, 0.45764, 0.06194}, 0.97390},
		"certain":                            {[]float64{0, 1000, -1000, 0}, []int{1, 0, 3}, []float64{1, 0, 0}, 0},
		"masked tokens are no candidates":    {[]float64{-inf, 0, -inf, 0}, []int{1, 3}, []float64{0.5, 0.5}, math.Ln2},
		"one is NaN":                         {[]float64{1, math.NaN(), 0, -1}, []int{0, 2, 3}, []float64{math.NaN(), math.NaN(), math.NaN()}, math.NaN()},
		"one is infinite":                    {[]float64{1, inf, 0, -1}, []int{1, 0, 2}, []float64{math.NaN(), math.NaN(), math.NaN()}, math.NaN()},
		"all are masked":                     {[]float64{-inf, -inf, -inf, -inf}, []int{}, nil, math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			values := append(append([]float64{}, c.values...), 0, 0, 9, 0)
			tr := open(t, file(tensor("model.logits", hooks.F32, []int{1, 2, 4}, values...)))
			text := func(id int) string { return fmt.Sprintf("t%d", id) }
			l := one(t, tr, inspect.Options{Name: "model.logits", Row: &row, Top: 3, TokenText: text}).Logits
			var ids []int
			for i, k := range l.Top {
				ids = append(ids, k.ID)
				same(t, "probability", float64(k.Probability), c.probs[i])
				if *k.Text != text(k.ID) || float64(k.Logit) != c.values[k.ID] {
					t.Errorf("%+v", k)
				}
			}
			if fmt.Sprint(ids) != fmt.Sprint(c.ids) || fmt.Sprint(l.Row) != "[0 0]" || l.Rows != 2 {
				t.Errorf("ids %v of row %v of %d, want %v", ids, l.Row, l.Rows, c.ids)
			}
			same(t, "entropy", float64(l.Entropy), c.entropy)
			if last := one(t, tr, inspect.Options{Name: "model.logits"}).Logits; last.Top[0].ID != 2 || last.Top[0].Text != nil {
				t.Errorf("the last row: %+v", last)
			}
		})
	}
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-5 || math.IsNaN(got) != math.IsNaN(want) {
		t.Errorf("%s %v, want %v", what, got, want)
	}
}

// A row is asked of what has one.
func TestRowsThatAreNone(t *testing.T) {
	tr := open(t, file(tensor("logits", hooks.F32, []int{1, 2, 4}, 1), tensor("norm", hooks.F32, []int{1, 4}, 1)))
	for name, row := range map[string]int{"logits": 2, "norm": 0} {
		if _, err := inspect.Run(context.Background(), tr, inspect.Options{Name: name, Row: &row}); !errors.As(err, new(*inspect.OptionError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	row := -2
	if l := one(t, tr, inspect.Options{Name: "logits", Row: &row}).Logits; l.Row[1] != 0 {
		t.Errorf("row -2 is %v", l.Row)
	}
}
