package compare_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/testengine"
)

// liveReferences runs transformers on the models of n cases, in one process, and returns the traces; nil without
// TRACEDIFF_PYTHON.
func liveReferences(t *testing.T, n int) []string {
	t.Helper()
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		return nil
	}
	root := t.TempDir()
	var traces []string
	var runs [][]string
	for k := range n {
		c := testengine.CaseOf(t, k)
		dir := filepath.Join(root, fmt.Sprint(k))
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		checkpointtest.Write(t, dir, c.Config, c.Weights, 1)
		list, err := json.Marshal(c.List)
		if err != nil {
			t.Fatal(err)
		}
		file, trace := filepath.Join(dir, "order.json"), filepath.Join(dir, "trace.safetensors")
		pagetest.Write(t, file, string(list))
		traces = append(traces, trace)
		runs = append(runs, []string{"--model", dir, "--order", file, "--dtype", c.DType.String(), "--tokens", reference.FormatTokens(c.Passes), "--out", trace})
	}
	runTransformers(t, interpreter, root, runs)
	return traces
}
