package text_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
)

// How small a scale error would be detected is said so that it makes sense: on a tie any might, and a mask has no scale.
func TestPowerInWords(t *testing.T) {
	for _, c := range []struct {
		power measure.Number
		want  string // of the line, behind the outcome
		cell  string
	}{
		{3e-6, "; a 0.0003 % scale error would be detected here", "3e-06"},
		{0, "; any scale error might be detected here: an element lies between two numbers of its dtype", "any"},
		{measure.Number(math.NaN()), "", "-"},
	} {
		row := compare.Row{Name: "x", Verdict: compare.Mismatch, Class: gate.Value, Isolated: &compare.Isolated{Certificate: &isolate.Certificate{
			Outcome: isolate.Rounding, Power: c.power, Scale: 1, ScaleError: 1e-9, RelL2: 1e-7,
		}}}
		res := &compare.Result{Rows: []compare.Row{row}, Divergence: &compare.Divergence{Row: row}, Isolation: &compare.Isolation{Arithmetic: isolate.Auto, Bound: "probabilistic"}}
		var b strings.Builder
		if err := text.Write(&b, words.Of(res), text.Style{}.WithPower().WithView(text.Everything)); err != nil {
			t.Fatal(err)
		}
		line, cell := false, false
		for text := range strings.Lines(b.String()) {
			line = line || strings.Join(strings.Fields(text), " ") == "isolated ROUNDING, relative L2 1e-07"+c.want
			words := strings.Fields(text)
			cell = cell || len(words) > 8 && words[0] == "MISMATCH" && strings.Contains(text, "  "+c.cell+"  ")
		}
		if !line || !cell {
			t.Errorf("power %v: line %v, cell %v in\n%s", c.power, line, cell, b.String())
		}
	}
}
