package proven

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// formSeeds is the number of configurations of each family that are drawn for their forms.
const formSeeds = 200

// formsOf lists one entry of every form that the orders of a family have: those of random configurations, and of the
// published ones and their variants that transformers resolves.
func formsOf(t *testing.T, family string) *order.List {
	t.Helper()
	seen := map[string]bool{}
	all := &order.List{}
	add := func(list *order.List) {
		all.Config = list.Config
		for _, e := range list.Entries {
			if form := op.Form(e.Op); !seen[form] {
				seen[form] = true
				all.Entries = append(all.Entries, e)
			}
		}
	}
	for seed := range formSeeds {
		add(ordertest.Draw(t, family, seed).List)
	}
	file, err := os.Open("../../order/testdata/configs.jsonl")
	must(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Config json.RawMessage }
		must(t, json.Unmarshal(lines.Bytes(), &line))
		config, err := order.ReadConfig(line.Config)
		must(t, err)
		if config.ModelType == family {
			list, err := order.New(config)
			must(t, err)
			add(list)
		}
	}
	must(t, lines.Err())
	return all
}

// Every form of an operation that an order can have reproduces transformers in the goldens. A form that none of them shows
// accuses nobody and excuses no drift: healthy models that have it would not match.
func TestGoldensCertifyEveryForm(t *testing.T) {
	for _, family := range slices.Concat(ordertest.Gemma, ordertest.Plain) {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			list := formsOf(t, family)
			if len(list.Entries) < 20 {
				t.Errorf("the orders have %d forms: too few", len(list.Entries))
			}
			for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16} {
				good, err := ByGoldens(list, dtype)
				must(t, err)
				for i := range list.Entries {
					o := list.Entries[i].Op
					if _, argument := o.(op.Given); argument {
						continue
					}
					if right, seen := good[op.Form(o)]; !seen {
						t.Errorf("%s: no golden shows %s", dtype, op.Form(o))
					} else if !right {
						t.Errorf("%s: %s does not reproduce a golden", dtype, op.Form(o))
					}
				}
			}
			t.Logf("%d forms", len(list.Entries))
		})
	}
}
