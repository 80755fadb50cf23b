package compare_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// shippedFolder has traces of keras-hub as its own from_preset loads the checkpoints; fixtures/wild/README.md says what is wrong.
const shippedFolder = "keras-preset"

// shippedPort is what has to be found in one trace, and what keras-hub computes in place of the model.
type shippedPort struct {
	first  string         // where a comparison with the golden stops; empty where it does not
	wrong  *regexp.Regexp // names of all entries that are wrong; nil where none is
	found  int            // of these how many are called BUG, at least
	hidden *regexp.Regexp // keys of those that need not be found, each for a reason: see the table
	unsure *regexp.Regexp // names of those that may be UNIDENTIFIED

	edit  func(config map[string]any) // makes it the configuration of what keras-hub computes
	epsQK float64                     // of the norms of queries and keys; 0 the configuration's
}

var (
	ropesAndAttention = regexp.MustCompile(`\.self_attn\.([qk]_rope|o_proj)$`)
	biasesAndRopes    = `\.self_attn\.([qkvo]_proj|[qk]_rope)$|\.mlp\.(gate|up|down)_proj$`
	// In a sliding layer whose window holds one token four times, all values are the same: the scale of scores changes nothing.
	sameValues = regexp.MustCompile(`^pass[34]/layers\.0\.self_attn\.o_proj$`)
)

var shippedPorts = map[string]shippedPort{
	"qwen3-tiny.float32": {
		first: "layers.0.self_attn.q_norm", wrong: regexp.MustCompile(`\.self_attn\.[qk]_norm$`), found: 30, epsQK: 1e-5,
	},
	// No element of it differs from that with the right epsilon.
	"qwen3-tiny.bfloat16": {epsQK: 1e-5},
	"llama-tiny.float32": {
		first: "layers.0.input_layernorm", wrong: regexp.MustCompile(biasesAndRopes + `|layernorm$|^norm$`), found: 165, edit: llamaAsShipped,
		// Off by less than 1e-6, which is less than the bound of a sum of 16 squares.
		hidden: regexp.MustCompile(`^pass[34]/norm$|^pass4/layers\.2\.input_layernorm$|^pass[24]/layers\.2\.post_attention_layernorm$`),
	},
	// Of the norms no element differs from that with the right epsilon.
	"llama-tiny.bfloat16": {
		first: "layers.0.self_attn.q_proj", wrong: regexp.MustCompile(biasesAndRopes), found: 135, edit: llamaAsShipped,
	},
	"gemma2-tiny.float32": {
		first: "layers.0.self_attn.q_rope", wrong: ropesAndAttention, found: 43, hidden: sameValues, edit: gemma2AsShipped,
	},
	// In bfloat16 the roundings within attention, each chosen for itself, may make as much as the wrong scale does.
	"gemma2-tiny.bfloat16": {
		first: "layers.0.self_attn.q_rope", wrong: ropesAndAttention, found: 30, hidden: sameValues, edit: gemma2AsShipped,
		unsure: regexp.MustCompile(`\.o_proj$`),
	},
	"qwen2-tiny.float32": {
		first: "layers.1.self_attn.o_proj", wrong: regexp.MustCompile(`^layers\.[12]\.self_attn\.o_proj$`), found: 10, edit: qwen2AsShipped,
	},
	"qwen2-tiny.bfloat16": {
		first: "layers.1.self_attn.o_proj", wrong: regexp.MustCompile(`^layers\.[12]\.self_attn\.o_proj$`), found: 10, edit: qwen2AsShipped,
	},
}

func llamaAsShipped(config map[string]any) {
	config["rms_norm_eps"] = 1e-6
	config["attention_bias"], config["mlp_bias"] = false, false
	config["rope_parameters"] = map[string]any{"rope_theta": 100.0, "rope_type": "default"}
}

func gemma2AsShipped(config map[string]any) {
	config["query_pre_attn_scalar"] = config["head_dim"]
	config["rope_parameters"] = map[string]any{"rope_theta": 10000.0, "rope_type": "default"}
}

func qwen2AsShipped(config map[string]any) {
	config["use_sliding_window"], config["sliding_window"] = false, nil
	config["layer_types"] = []string{"full_attention", "full_attention", "full_attention"}
}

// In a port as it is shipped everything that is wrong is found, and nothing else: in the comparison with transformers, and of
// every entry by itself. Against what the port computes nothing is wrong: what the table describes is all.
func TestShippedPorts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(wildFolder, shippedFolder, "*.safetensors"))
	if err != nil || len(paths) != len(shippedPorts) {
		t.Fatalf("traces: %d, %v; %d are described", len(paths), err, len(shippedPorts))
	}
	for _, name := range slices.Sorted(maps.Keys(shippedPorts)) {
		port := shippedPorts[name]
		model, dtype, _ := strings.Cut(name, ".")
		local := open(t, filepath.Join(wildFolder, shippedFolder, name+".safetensors"))
		ck, list := ordertest.Embedded(t, model)
		t.Run(name+"/against transformers", func(t *testing.T) {
			ref := testengine.OpenGolden(t, fmt.Sprintf("golden/%s/decode.%s.safetensors", model, dtype))
			r := run(t, local, ref, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: isolator(t, local, ck, list)}})
			if got := divergenceOf(r); got != port.first {
				t.Errorf("the first divergence is %q, want %q", got, port.first)
			}
			for _, key := range r.Roots {
				if !matches(port.wrong, withoutPass(key)) {
					t.Errorf("%s is right, and it is called the origin of a mismatch", key)
				}
			}
			port.hold(t, r)
		})
		if dtype == "float32" { // the searches are those of the comparison
			t.Run(name+"/every entry", func(t *testing.T) { port.hold(t, alone(t, local, ck, list)) })
		}
		t.Run(name+"/nothing else", func(t *testing.T) {
			r := alone(t, local, ck, port.order(t, ck))
			for _, row := range r.Rows {
				if z := row.Isolated; z != nil && !z.Good() {
					t.Errorf("%s, as keras-hub computes it: %s", row.Key(), singles.Charge(z.Certificate))
				}
			}
			if certified := r.Isolation.Certified; certified < 200 {
				t.Errorf("%d entries are no sample of what is to be tested", certified)
			}
		})
	}
}

func matches(pattern *regexp.Regexp, text string) bool {
	return pattern != nil && pattern.MatchString(text)
}

// divergenceOf is the key of the first divergence, empty where there is none.
func divergenceOf(r *compare.Result) string {
	if r.Divergence == nil {
		return ""
	}
	return r.Divergence.Row.Key()
}

// hold fails for entries that are called wrong and are right, and for those that are wrong and are called right.
func (p shippedPort) hold(t *testing.T, r *compare.Result) {
	found := 0
	for _, row := range r.Rows {
		z := row.Isolated
		if z == nil {
			continue
		}
		wrong := matches(p.wrong, row.Name)
		switch {
		case z.Outcome == isolate.Bug && wrong:
			found++
		case !z.Good() && !wrong, z.Good() && wrong && !matches(p.hidden, row.Key()):
			t.Errorf("%s: %s", row.Key(), singles.Charge(z.Certificate))
		case !z.Good() && !matches(p.unsure, row.Name):
			t.Errorf("%s is wrong, and it is only %s", row.Key(), singles.Charge(z.Certificate))
		}
	}
	if found < p.found {
		t.Errorf("%d entries are found wrong, of at least %d", found, p.found)
	}
}

// order returns TENSOR_ORDER of what the port computes.
func (p shippedPort) order(t *testing.T, ck *checkpoint.Checkpoint) *order.List {
	var settings map[string]any
	if err := json.Unmarshal(ck.Config(), &settings); err != nil {
		t.Fatal(err)
	}
	if p.edit != nil {
		p.edit(settings)
	}
	data, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Entries {
		e := &list.Entries[i]
		norm, ok := e.Op.(op.RMSNorm)
		if ok && p.epsQK != 0 && (strings.HasSuffix(e.Name, ".q_norm") || strings.HasSuffix(e.Name, ".k_norm")) {
			norm.Eps = p.epsQK
			e.Op = norm
		}
	}
	return list
}
