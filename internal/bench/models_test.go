package main

import (
	"fmt"
	"os"
	"testing"
)

// modelsVariable names a folder that fixtures/recorded_faults.py has written.
const modelsVariable = "TRACEDIFF_MODEL_FAULTS"

// TestModels holds faults in architectures that nobody described to what was read of them.
func TestModels(t *testing.T) {
	dir, set := os.LookupEnv(modelsVariable)
	if !set {
		t.Skipf("needs %s: the folder that python fixtures/recorded_faults.py makes", modelsVariable)
	}
	results := seenIn(t, dir)
	for i := range results {
		r := &results[i]
		fmt.Printf("%s: %s\n", r.Name, r.outcome())
		for _, n := range r.Names {
			if isName(n.Finding) {
				fmt.Printf("  %s: %s: %s\n", n.Role, n.verdict, n.Finding.Text())
			} else {
				fmt.Printf("  %s: unnamed %v\n", n.Role, n.Effort)
			}
		}
	}
}
