package naming_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// field is a number of a configuration, and the numbers that a port has in its place.
type field struct {
	name   string
	set    func(config map[string]any, x float64)
	others []float64
	number func(x float64) float64 // the number of the formula
	called string                  // what the words of the number begin with
	named  float64                 // the least share of the wrong roles that has a name in bfloat16; all have one in float32
}

func identity(x float64) float64 { return x }

// fields are numbers of the model "gemma2".
var fields = []field{
	{"rms_norm_eps", setField("rms_norm_eps"), []float64{1e-8, 3e-6, 2e-5, 3.7e-5, 7e-4, 0.0123}, identity, "", 0.6},
	{"sliding_window", func(config map[string]any, x float64) { config["sliding_window"] = int(x) }, []float64{2, 3, 5, 6, 7, 8, 9, 10}, identity, "", 1},
	{"attn_logit_softcapping", setField("attn_logit_softcapping"), []float64{1.5, 2.3, 3, 7, 50}, identity, "", 1},
	{"final_logit_softcapping", setField("final_logit_softcapping"), []float64{2, 2.7, 30}, identity, "", 1},
	{"query_pre_attn_scalar", setField("query_pre_attn_scalar"), []float64{5, 6, 8, 16, 65}, func(x float64) float64 { return 1 / math.Sqrt(x) }, "1/√", 1},
	{"rope_theta", func(config map[string]any, x float64) {
		config["rope_parameters"] = map[string]any{"rope_type": "default", "rope_theta": x}
	}, []float64{500, 8000, 12345, 70000, 1e6}, identity, "", 1},
}

func setField(name string) func(config map[string]any, x float64) {
	return func(config map[string]any, x float64) { config[name] = x }
}

// A port with another number of the configuration has one name in every role that shows it: that number. No role has another name.
func TestANumberOfTheConfigurationHasOneName(t *testing.T) {
	for _, f := range fields {
		for _, d := range []hooks.DType{hooks.F32, hooks.BF16} {
			t.Run(fmt.Sprintf("%s in %s", f.name, d), func(t *testing.T) {
				t.Parallel()
				named, all, least := 0, 0, f.named
				if d == hooks.F32 {
					least = 1
				}
				for _, x := range f.others {
					for role, found := range namesWith(t, f, x, d) {
						all++
						switch {
						case !found.Named():
							t.Logf("%g: %s has no name: %s", x, role, found)
						case !hasNumber(found.Mistake, f.number(x)) || !strings.HasPrefix(found.Mistake.Called, f.called):
							t.Errorf("%g: %s is named %s", x, role, found)
						default:
							named++
						}
					}
				}
				if all < len(f.others)/2 || float64(named) < least*float64(all) {
					t.Errorf("%d of %d wrong roles are named", named, all)
				}
			})
		}
	}
}

// hasNumber reports whether a mistake is a number within the digits that a role shows. No query of the port's nine tokens sees a window of nine keys, which is
// a window that is left out.
func hasNumber(m diagnose.Mistake, x float64) bool {
	switch {
	case m.Kind == "mask.window-left-out":
		return x >= float64(portTokens[0])
	case m.First != "" || !m.X.Has:
		return false
	case m.Others.Less:
		return x <= m.X.Value
	}
	return math.Abs(m.X.Value/x-1) < 0.001
}

// namesWith are the names of the wrong roles of a port with another number, by role.
func namesWith(t *testing.T, f field, x float64, d hooks.DType) map[string]*diagnose.Finding {
	t.Helper()
	config := maps.Clone(portModels["gemma2"].config)
	config["rms_norm_eps"] = 1e-6
	c := portCaseOf(t, "gemma2", config)
	f.set(config, x)
	return namesOf(t, c, portCaseOf(t, "gemma2", config), d)
}

// namesOf are the names of the wrong roles of a port whose model is another than it should be, by role.
func namesOf(t *testing.T, c, port ordertest.Case, d hooks.DType) map[string]*diagnose.Finding {
	t.Helper()
	port.Passes = c.Passes
	strict := testengine.Style("strict", testengine.Kernels{Adder: testengine.Adder{Block: 1, Lanes: 1}, DType: d}, nil)
	g := &testengine.Engine{Name: "port", DType: d, Choose: func(*order.Entry, int) testengine.Arithmetic { return strict }}
	trace := g.Start(t, port, g.Choose, nil).Trace()
	i, err := compare.NewIsolator(trace, c.List, reference.Weights(c.Checkpoint, d), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]*diagnose.Finding{}
	for _, r := range trace.Records() {
		role := order.NameOf(r.Name).Role()
		if c.List.Index(r.Name) < 0 || names[role] != nil {
			continue
		}
		z, err := i.Certify(t.Context(), r.Name, r.Pass)
		if err != nil || z.Outcome != isolate.Bug { // nothing computes the ids
			continue
		}
		if names[role], err = i.Name(t.Context(), r.Name); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// A window of any size is named in layers that should have none.
func TestAnAddedWindowOfAnySizeIsNamed(t *testing.T) {
	var all []plantedName
	for n := range 7 {
		size := n + 2
		all = append(all, plantedName{
			name: fmt.Sprint(size), model: "llama", at: "mask.full", want: fmt.Sprintf("the mask has a sliding window of %d, ", size),
			wrong: sees(func(q, k float64) bool { return k <= q && q-k < float64(size) }),
		})
	}
	holdNames(t, all)
}

// The norm of values has no weight, and no other role has its program. With small values a norm that is applied twice has the values of a smaller epsilon, within the
// rounding bounds. The number is the simpler name.
func TestANumberIsNoOperationThatIsAppliedTwice(t *testing.T) {
	draw := func(eps float64) ordertest.Case {
		return ordertest.DrawWith(t, "gemma3n_text", 0, func(config map[string]any) {
			ordertest.Acceptable(config)
			config["rms_norm_eps"] = eps
		})
	}
	const role = "layers.*.self_attn.v_norm"
	found := namesOf(t, draw(1e-6), draw(1e-8), hooks.F32)[role]
	if found == nil || !found.Named() || !hasNumber(found.Mistake, 1e-8) {
		t.Errorf("%s: %v", role, found)
	}
}
