package arithmetic_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/singles"
	"github.com/tracediff/tracediff/internal/testengine"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// What llama.cpp rotates in trained models, cut out by fixtures/wild/llamacpp/angles/cut.py, has the tables of a running product, and no bug. Held to
// another theta, or to another scaling, it has one.
func TestTablesOfLlamaCpp(t *testing.T) {
	rope := func(c *order.Config, change func(r *order.Rope)) {
		for layers, r := range c.Rope {
			change(&r)
			c.Rope[layers] = r
		}
	}
	for _, model := range []struct {
		name    string
		entries []string
		wrong   map[string]func(c *order.Config)
	}{
		{"llamacpp.smollm2", []string{"layers.1.self_attn.q_rope", "layers.2.self_attn.k_rope"}, map[string]func(c *order.Config){
			"theta off by 1e-4": func(c *order.Config) { rope(c, func(r *order.Rope) { r.Theta *= 1.0001 }) },
			"theta 10000":       func(c *order.Config) { rope(c, func(r *order.Rope) { r.Theta = 1e4 }) },
		}},
		{"llamacpp.gemma3", []string{"layers.1.self_attn.q_rope", "layers.5.self_attn.q_rope", "layers.5.self_attn.k_rope"}, map[string]func(c *order.Config){
			"theta off by 1e-4": func(c *order.Config) { rope(c, func(r *order.Rope) { r.Theta *= 1.0001 }) },
			"thetas exchanged": func(c *order.Config) {
				c.Rope[order.Full], c.Rope[order.Sliding] = c.Rope[order.Sliding], c.Rope[order.Full]
			},
			"scaled": func(c *order.Config) { rope(c, func(r *order.Rope) { r.Type, r.Factor = "linear", 8 }) },
		}},
	} {
		certs := func(change func(c *order.Config)) (all []*isolate.Certificate) {
			trace, list := cutTrace(t, model.name, change)
			i, err := compare.NewIsolator(trace, list, func(order.Weight) (program.Rows, error) { return nil, errors.New("no weights are there") }, isolate.Options{DType: hooks.F32})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range model.entries {
				z, err := i.Certify(context.Background(), name, 0)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, z)
			}
			return all
		}
		running := false
		for k, z := range certs(nil) {
			if z.Outcome != isolate.Rounding && z.Outcome != isolate.Exact {
				t.Errorf("%s: %s is %s: %s", model.name, model.entries[k], z.Outcome, singles.Charge(z))
			}
			running = running || strings.Contains(z.Arithmetic, "running product")
		}
		if !running {
			t.Errorf("%s: no entry has tables of a running product", model.name)
		}
		for what, change := range model.wrong {
			if !slices.ContainsFunc(certs(change), func(z *isolate.Certificate) bool { return z.Outcome == isolate.Bug }) {
				t.Errorf("%s: %s: nothing is accused", model.name, what)
			}
		}
	}
}

// cutTrace is a trace of fixtures/wild/llamacpp/angles with the order of its configuration, which may be changed.
func cutTrace(t *testing.T, name string, change func(c *order.Config)) (*capture.Trace, *order.List) {
	t.Helper()
	path := filepath.Join(ondisk.Dir(), "wild", "llamacpp", "angles", name)
	text, err := os.ReadFile(path + ".json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	trace := testengine.Open(t, path+".safetensors")
	var kept []*order.Entry
	for k := range list.Entries {
		e := list.Entries[k]
		_, captured := trace.Lookup(0, e.Name)
		_, given := e.Op.(op.Given)
		switch {
		case given || strings.HasPrefix(e.Name, "rotary") || strings.HasSuffix(e.Name, "_rope") && captured:
		case captured: // what was rotated is taken as it is
			e.Op, e.Inputs, e.Weights = op.Identity{}, nil, nil
		default:
			continue
		}
		kept = append(kept, &e)
	}
	return trace, list.Keep(kept)
}
