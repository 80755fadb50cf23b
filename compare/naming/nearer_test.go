package naming_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/naming"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// An epsilon of 1e-5 for 1e-6 moves whole rows by less than right code may be off. The rows name the mistake where the entries are known to be wrong, and
// a search that decides whether entries are wrong does not take them for a proof.
func TestMistakesWithinTheBoundsDecideNothing(t *testing.T) {
	trace := testengine.Open(t, "../../fixtures/bench/norm-eps-of-llama2.float32.transformers.safetensors")
	ck, list := ordertest.Embedded(t, "gemma-tiny")
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.F32), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const role = "layers.*.post_attention_layernorm"
	f, err := i.Name(t.Context(), "layers.0.post_attention_layernorm")
	if err != nil || f.Key() != "number.value(place=rms_norm.eps,of=epsilon,x=1e-05)" {
		t.Fatalf("%v, %v", f, err)
	}
	var wrong []*isolate.Evidence
	for at := range list.Entries {
		if order.NameOf(list.Entries[at].Name).Role() != role {
			continue
		}
		for pass := range i.Env().Passes {
			e, err := i.Evidence(t.Context(), order.Node{Entry: at, Pass: pass})
			if err != nil {
				t.Fatal(err)
			}
			if e != nil && len(e.Left) > 0 {
				wrong = append(wrong, e)
			}
		}
	}
	entries, err := naming.SuspectsOf(t.Context(), wrong, &isolate.Arithmetic{})
	if err != nil || len(entries) < 5 {
		t.Fatal(len(entries), err)
	}
	if f, err := diagnose.FindSteps(t.Context(), naming.ModelOf(i.Isolator), entries); err != nil || f.Explains() {
		t.Errorf("entries that may be right have the mistake %v, %v", f, err)
	}
}

// Errors of rows without a rule, and errors as small as the usual ones, have no name.
func TestSmallErrorsOfRowsHaveNoName(t *testing.T) {
	const eps = 1.4e-6
	for name, by := range map[string]func(row int) float64{
		"errors without a rule": func(row int) float64 { return 1 + 1e-6*math.Sin(float64(row*row)) },
		"usual errors":          func(int) float64 { return 1 + 4e-9 },
	} {
		norm := rmsOf(eps, 0, plainWeight)
		f := plantedName{model: "fine", at: "post_attention_layernorm", wrong: func(p *wrongPort) []float64 {
			y := norm(p)
			for i := range y {
				y[i] *= by(i / p.In[0].Last())
			}
			return y
		}}.named(t)
		if f.Named() {
			t.Errorf("%s: %v", name, f)
		}
	}
}
