package compare_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A trace that calls its own tensors recomputed is excused from nothing but what the order has recomputed.
func TestClaimsOfDerivationExcuseNothing(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3n-tiny/hello.float32.safetensors")
	const fault = "layers.2.mlp.down_proj"
	claims := func(m *capture.Manifest) { m.Derived = m.Entries }
	local := testengine.Rewritten(t, golden, claims, func(key string, e hooks.Event) []hooks.Event {
		if key == fault {
			e.Tensor = byFactor(1 + 1e-5)(e.Tensor)
		}
		return []hooks.Event{e}
	})
	for _, ref := range []*capture.Trace{nil, golden} {
		res := isolated(t, "gemma3n-tiny", local, ref)
		if r := rowOfKey(t, res, fault); r.Blame != compare.Root || r.Derived || res.ExitCode() != 1 {
			t.Errorf("reference %t: %s %s, derived %t, exit %d", ref != nil, r.Verdict, r.Blame, r.Derived, res.ExitCode())
		}
		if res.Isolation.Certified < 300 {
			t.Errorf("reference %t: %d certified", ref != nil, res.Isolation.Certified)
		}
	}
	res := isolated(t, "gemma3n-tiny", testengine.Rewritten(t, golden, claims, nil), nil)
	if res.ExitCode() != 0 || res.Isolation.Certified < 300 {
		t.Errorf("a healthy trace with the same claims: exit %d, %d certified, %v", res.ExitCode(), res.Isolation.Certified, res.Incomplete)
	}
}

// A match without one certificate is a weaker one, and says so unless certificates were declined; where they were demanded,
// it is none.
func TestMatchWithoutCertificates(t *testing.T) {
	const dir = "gemma3-tiny"
	golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.float32.safetensors")
	ck, list := ordertest.Embedded(t, dir)
	tensors := []string{"input_ids", "layers.0.attn_residual"}
	bare := testengine.Rewritten(t, golden, nil, func(_ string, e hooks.Event) []hooks.Event {
		// That the later passes say where their tokens stand, and the first does not, leaves open where its tokens do.
		if slices.Contains(tensors, e.Name) || e.Name == order.PositionIDs && e.Pass > 0 {
			return []hooks.Event{e}
		}
		return nil
	})
	i, err := compare.NewIsolator(bare, list, reference.Weights(ck, hooks.F32), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what       string
		i          *compare.Isolator
		why        string
		certifying compare.Certifying
		exit       int
		says       string
	}{
		{"no isolator", nil, "the checkpoint is not known", compare.IfPossible, 0, "the checkpoint is not known"},
		{"declined", nil, "as asked for", compare.Declined, 0, ""},
		{"nothing that can be isolated", i, "", compare.IfPossible, 0, "position_ids of pass 0 was not captured"},
		{"nothing that can be isolated, and it was demanded", i, "", compare.Demanded, 1, "position_ids of pass 0 was not captured"},
		{"nothing that can be isolated, and each was required", i, "", compare.Required, 1, "position_ids of pass 0 was not captured"},
		{"no isolator, and each was required", nil, "the checkpoint is not known", compare.Required, 1, "the checkpoint is not known"},
	} {
		o := compare.Options{
			Order:         list,
			All:           true,
			Certification: compare.Certification{Isolator: c.i, NotIsolated: c.why, Certifying: c.certifying},
			Scope:         capture.Scope{Level: 3, Tensors: tensors},
		}
		res := run(t, bare, bare, o)
		if res.ExitCode() != c.exit || (res.Uncertified == "") != (c.says == "") || !strings.Contains(res.Uncertified, c.says) {
			t.Errorf("%s: exit %d, %q, %v", c.what, res.ExitCode(), res.Uncertified, res.Incomplete)
		}
		if got := strings.Join(res.Incomplete, "; "); strings.Contains(got, "certificates are required: the first is layers.0.attn_residual: ") != (c.certifying == compare.Required) {
			t.Errorf("%s: %s", c.what, got)
		}
	}
}

// A soft cap bounds every result. An entry whose bounds are as wide as that was not tested, whatever is in it: nobody is told that it is
// right, alone or beside a reference.
func TestBoundsAsWideAsTheTensorCertifyNothing(t *testing.T) {
	for _, dir := range []string{"gemma3n-tiny", "gemma2-tiny"} {
		golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.float32.safetensors")
		local := onlyLogits(t, golden)
		for _, ref := range []*capture.Trace{nil, golden} {
			r := isolated(t, dir, local, ref)
			row := rowOfKey(t, r, "logits")
			if r.ExitCode() != 1 || row.Isolated != nil || !strings.Contains(row.NotIsolated, "rounding may add an error of") && !strings.Contains(row.NotIsolated, "nothing bounds") {
				t.Errorf("%s: exit %d, %s, %+v, %q", dir, r.ExitCode(), row.Verdict, row.Isolated, row.NotIsolated)
			}
		}
	}
}

// onlyLogits is a trace with the token ids and logits in another order and with the wrong sign, and nothing between.
func onlyLogits(t *testing.T, golden *capture.Trace) *capture.Trace {
	t.Helper()
	return testengine.Rewritten(t, golden, nil, func(_ string, e hooks.Event) []hooks.Event {
		switch e.Name {
		case "input_ids", "position_ids":
			return []hooks.Event{e}
		case "logits":
			x := elementsOf(e.Tensor)
			e.Tensor = hooks.Tensor{DType: hooks.F32, Shape: e.Tensor.Shape}
			for k := range x {
				e.Tensor.Data = appendValue(e.Tensor.Data, hooks.F32, -x[(k*7)%len(x)])
			}
			return []hooks.Event{e}
		}
		return nil
	})
}

// A certificate is held to the limit of its own entry: bounds that reach further than the built-in limits certify an entry whose limit a person has set
// further still.
func TestACertificateIsHeldToTheLimitOfItsEntry(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma2-tiny/decode.float32.safetensors")
	local := onlyLogits(t, golden)
	ck, list := ordertest.Embedded(t, "gemma2-tiny")
	for rtol, certified := range map[float64]bool{1: false, 1e6: true} {
		i, err := compare.NewIsolator(local, list, reference.Weights(ck, hooks.F32), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := compare.Options{Order: list, All: true, Judging: compare.Judging{Limits: &gate.Limits{Default: &gate.Tolerance{RTol: rtol}}}}
		o.Isolator = i
		row := rowOfKey(t, run(t, local, golden, o), "logits")
		if (row.Isolated != nil) != certified || !certified && !strings.Contains(row.NotIsolated, "rounding may add an error of") {
			t.Errorf("limit %g: %+v, %q", rtol, row.Isolated, row.NotIsolated)
		}
	}
}

// Where scores are as large as those of trained models, the bounds of an attention whose inside was not captured reach further than any
// limit. Its value is known all the same, and an output that is as near to it as a certificate demands is certified.
func TestAttentionOverLargeScoresIsCertifiedByItsError(t *testing.T) {
	c := ordertest.DrawWith(t, "gemma3", 7, func(config map[string]any) { config["query_pre_attn_scalar"] = 1e-2 })
	inside := regexp.MustCompile(`^(mask|rotary)\.|self_attn\.(._rope|keys|values|scores.*|probs.*|context)$`)
	whole := testengine.LocalModel(t, c, hooks.F32)
	undeclared := func(m *capture.Manifest) { m.Scope, m.Entries = capture.Scope{}, nil }
	shown := func(factor float64) *capture.Trace {
		return testengine.Rewritten(t, whole, undeclared, func(_ string, e hooks.Event) []hooks.Event {
			switch {
			case inside.MatchString(e.Name):
				return nil
			case strings.HasSuffix(e.Name, "self_attn.o_proj"):
				e = edited(e, func(_ int, v float64) float64 { return v * factor })
			}
			return []hooks.Event{e}
		})
	}
	judge := func(local *capture.Trace) *compare.Result {
		i, err := compare.NewIsolator(local, c.List, reference.Weights(c.Checkpoint, hooks.F32), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return run(t, local, whole, compare.Options{Order: c.List, All: true, Certification: compare.Certification{Isolator: i}})
	}
	wide := 0
	res := judge(shown(1 + 1e-7)) // a unit of float32: what an engine of other sums makes
	for _, row := range res.Rows {
		if !strings.HasSuffix(row.Name, "self_attn.o_proj") {
			continue
		}
		if row.Isolated == nil || !row.Isolated.Good() {
			t.Errorf("%s: %+v, %q", row.Key(), row.Isolated, row.NotIsolated)
		} else if row.Isolated.Reach > 1e-3 {
			wide++
		}
	}
	if wide == 0 || res.ExitCode() != 0 {
		t.Errorf("exit %d, %d entries whose bounds reach further than the limit", res.ExitCode(), wide)
	}
	if res := judge(shown(1.02)); res.ExitCode() != 1 {
		t.Errorf("outputs of attention that are 2 %% too large: exit %d", res.ExitCode())
	}
}

// In 16 bits some choice of roundings in a softmax over large scores gives nearly any output. A mistake that gives every element in transformers'
// own arithmetic is the mistake all the same.
func TestMistakeInAttentionOverLargeScoresIsNamed(t *testing.T) {
	draw := func(theta float64) ordertest.Case {
		return ordertest.DrawWith(t, "gemma3", 7, func(config map[string]any) {
			config["query_pre_attn_scalar"] = 1e-2
			config["rope_parameters"] = map[string]any{
				"full_attention":    map[string]any{"rope_type": "default", "rope_theta": theta},
				"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": theta},
			}
		})
	}
	inside := regexp.MustCompile(`^(mask|rotary)\.|self_attn\.(._norm|._rope|keys|values|scores.*|probs.*|context)$`)
	right, wrong := draw(1e4), draw(1e3)
	local := testengine.Rewritten(t, testengine.LocalModel(t, wrong, hooks.BF16), func(m *capture.Manifest) { m.Scope, m.Entries, m.Config = capture.Scope{}, nil, nil }, func(_ string, e hooks.Event) []hooks.Event {
		if inside.MatchString(e.Name) {
			return nil
		}
		return []hooks.Event{e}
	})
	i, err := compare.NewIsolator(local, right.List, reference.Weights(right.Checkpoint, hooks.BF16), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res := run(t, local, nil, compare.Options{Order: right.List, All: true, Certification: compare.Certification{Isolator: i}})
	row := rowOfKey(t, res, "layers.0.self_attn.o_proj")
	if row.Isolated == nil || row.Isolated.Outcome != isolate.Bug || !strings.HasPrefix(row.Isolated.Mistake, "theta is 1000;") {
		t.Errorf("%+v, %q", row.Isolated, row.NotIsolated)
	}
}
