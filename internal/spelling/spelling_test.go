package spelling_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// several are the spellings that an engine has for more than one role, and why.
var several = map[string]string{
	"llama.cpp embd":          "the embedding, and the rows of its table where they are not scaled",
	"llama.cpp result_output": "the logits, and what the head returns where they have no cap",
	"Meta output":             "the same",
	"GGUF blk.{L}.ffn_norm":   "the norm before the MLP, which transformers calls post_attention_layernorm in families with two norms",
	"GGUF blk.{L}.ffn_up":     "up, or gate and up in one where a family has them so",
}

// A spelling leads to one role within its engine, as a weight and as an activation, or it is known why not.
func TestSpellingsAreOfOneRole(t *testing.T) {
	found := map[string]bool{}
	for _, kind := range []spelling.Kind{spelling.Weight, spelling.Activation} {
		roles := map[string]string{}
		for _, r := range spelling.Table() {
			for _, s := range r.Spelled {
				if s.Of&kind == 0 {
					continue
				}
				key := string(s.Engine) + " " + s.Text
				if other, twice := roles[key]; twice {
					if found[key] = true; several[key] == "" || other == r.Role {
						t.Errorf("%q is of %s and of %s", key, other, r.Role)
					}
				}
				roles[key] = r.Role
			}
		}
	}
	for key := range several {
		if !found[key] {
			t.Errorf("%q is of one role, and the list says of several", key)
		}
	}
}

// A role has one row. Where it is in a layer its spellings say in which, and no number stands before the layer's, by which a name is looked up.
func TestTableIsWellFormed(t *testing.T) {
	const hole = "{L}"
	word := regexp.MustCompile(`^[a-z_]+$`)
	seen := map[string]bool{}
	for _, r := range spelling.Table() {
		if seen[r.Role] {
			t.Errorf("%s has two rows", r.Role)
		}
		seen[r.Role] = true
		inLayer := order.NameOf(r.Role).Label() == hole
		if strings.Contains(r.Role, hole) != inLayer {
			t.Errorf("%s: {L} is not where the order has the layer", r.Role)
		}
		for _, s := range r.Spelled {
			front, _, numbered := strings.Cut(s.Text, hole)
			switch {
			case s.Of == 0 || s.Of > spelling.Weight|spelling.Activation:
				t.Errorf("%s: %q is of nothing", r.Role, s.Text)
			case s.Engine == spelling.Words:
				if !word.MatchString(s.Text) {
					t.Errorf("%s: %q is no word", r.Role, s.Text)
				}
			case numbered != inLayer:
				t.Errorf("%s: %q does not have its layer", r.Role, s.Text)
			case numbered && strings.ContainsAny(front, "0123456789"):
				t.Errorf("%s: %q has a number before that of the layer", r.Role, s.Text)
			}
		}
	}
}

// Every weight of every family has a row, with its name in GGUF.
func TestWeightsOfFamiliesHaveRows(t *testing.T) {
	weights := map[string]bool{}
	for _, r := range spelling.Table() {
		if slices.ContainsFunc(r.Spelled, func(s spelling.Spelling) bool { return s.Engine == spelling.GGUF && s.Of&spelling.Weight != 0 }) {
			weights[r.Role] = true
		}
	}
	number := regexp.MustCompile(`\.[0-9]+$`)
	for _, family := range slices.Concat(ordertest.Gemma, ordertest.Plain) {
		for seed := range 4 {
			for _, w := range ordertest.Draw(t, family, seed).List.Weights() {
				name := order.NameOf(strings.TrimSuffix(strings.TrimSuffix(w.Name, ".weight"), ".bias"))
				role := name.String()
				if name.Within() {
					role = order.NameIn("{L}", name.Module()).String()
				}
				role = number.ReplaceAllString(role, "") // GGUF has a stack of streams as one tensor
				if !weights[role] {
					t.Errorf("%s: %s has no row", family, role)
				}
			}
		}
	}
}

func TestRoles(t *testing.T) {
	for name, want := range map[string][]string{
		"token_embd":        {"embed_tokens"},
		"output_norm":       {"norm", "final_layernorm"},
		"blk.12.attn_q":     {"layers.12.self_attn.q_proj"},
		"blk.0.attn_output": {"layers.0.self_attn.o_proj", "layers.0.self_attn.dense"},
		"blk.3.ffn_up":      {"layers.3.mlp.up_proj", "layers.3.mlp.gate_up_proj", "layers.3.mlp.fc1"},
		"blk.3.ffn_norm":    {"layers.3.pre_feedforward_layernorm", "layers.3.post_attention_layernorm"},
		"blk.{L}.attn_q":    nil,
		"blk.attn_q":        nil,
		"blk.3":             nil,
		"attn_norm-3":       nil, // of llama.cpp's graph
		"":                  nil,
	} {
		if got := spelling.Roles(spelling.GGUF, spelling.Weight, name); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if got := spelling.Roles(spelling.LlamaCpp, spelling.Activation, "Qcur-7#0"); !slices.Equal(got, []string{"layers.7.self_attn.q_proj"}) {
		t.Errorf("Qcur-7#0 is %q", got)
	}
}

func TestEndings(t *testing.T) {
	if got := spelling.Endings(spelling.Weight, spelling.GGUF, "layers.{L}.self_attn.q_proj"); !slices.Equal(got, []string{"q_proj", "attn_q"}) {
		t.Errorf("the queries' projection ends in %q", got)
	}
	if got := spelling.Endings(spelling.Activation, spelling.Words, "a.role.without.row"); !slices.Equal(got, []string{"row"}) {
		t.Errorf("a role without a row ends in %q", got)
	}
}

func TestLayer(t *testing.T) {
	for name, want := range map[string]string{
		"blk.3.attn_q": "blk.*.attn_q", "model.layers.12.mlp": "model.layers.*.mlp", "transformer.h.0.attn": "transformer.h.*.attn",
		"blocks.1.layers.2.x": "blocks.*.layers.2.x", "layers.3": "", "mylayers.3.x": "", "layers.x.y": "", "layers.1234567890.x": "", "logits": "",
	} {
		number, from, to := spelling.Layer(name)
		got := ""
		if number >= 0 {
			got = name[:from] + "*" + name[to:]
		}
		if got != want || number >= 0 && strconv.Itoa(number) != name[from:to] {
			t.Errorf("%q is in layer %d, %q, want %q", name, number, got, want)
		}
	}
}

func TestMeanings(t *testing.T) {
	for word, want := range map[string][]string{"Wq": {"q"}, "qkv": {"q", "k", "v"}, "qn": {"q", "norm"}, "ln2": nil, "blk": nil} {
		if got := spelling.Meanings(word); !slices.Equal(got, want) {
			t.Errorf("%s means %q, want %q", word, got, want)
		}
	}
}

func TestInFront(t *testing.T) {
	for name, want := range map[string]string{
		"model.language_model.layers.0": "layers.0", "_orig_mod.module.model.norm": "norm", "modelx.norm": "modelx.norm", "norm": "norm",
		"transformer.norm": "transformer.norm",
	} {
		if got := spelling.InFront(spelling.Weight).ReplaceAllString(name, ""); got != want {
			t.Errorf("%s is %s without its front, want %s", name, got, want)
		}
	}
}
