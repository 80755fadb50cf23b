package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Every form of an operation that a described configuration has, published ones among them, has reproduced a golden of its
// family, so that it may accuse: none of them would leave its user with UNVERIFIED. The exceptions are named.
func TestFormsOfAllConfigurationsAreCertified(t *testing.T) {
	data, err := os.ReadFile("../../order/testdata/configs.jsonl")
	must(t, err)
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	lists := 0
	uncertified := map[string]bool{}
	for lines.Scan() {
		var c struct {
			Config json.RawMessage `json:"config"`
		}
		must(t, json.Unmarshal(lines.Bytes(), &c))
		config, err := order.ReadConfig(c.Config)
		if err != nil {
			continue // those that are refused are tested elsewhere
		}
		list, err := order.New(config)
		must(t, err)
		lists++
		for _, dtype := range []hooks.DType{hooks.BF16, hooks.F32} {
			may, err := certified(context.Background(), list, dtype)
			must(t, err)
			for i := range list.Entries {
				o := list.Entries[i].Op
				if _, argument := o.(op.Argument); !argument && !may[op.Form(o)] {
					uncertified[config.ModelType+" "+dtype.String()+" "+op.Form(o)] = true
				}
			}
		}
	}
	if lists < 25 {
		t.Fatalf("%d configurations", lists)
	}
	for form := range uncertified {
		t.Errorf("no golden certifies %s", form)
	}
}
