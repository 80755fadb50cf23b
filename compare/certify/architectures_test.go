package certify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/recorded"
)

// row is what isolation says of one recorded run.
type row struct {
	name, dtype                           string
	steps, named                          int
	exact, rounding, wrong, unverified    int
	elements, unequal, outside, boundless int64
	why                                   map[string]int
	bad                                   []string
}

// certifyRun certifies every entry of the trace of a recorded run, in transformers' own arithmetic, on the trace's own inputs.
func certifyRun(folder, dtype string) (*row, error) {
	r := &row{name: filepath.Base(folder), dtype: dtype, why: map[string]int{}}
	data, err := os.ReadFile(filepath.Join(folder, dtype+".program.json"))
	if err != nil {
		return r, err
	}
	p, err := recorded.Read(bytes.NewReader(data))
	if err != nil {
		return r, err
	}
	list, err := order.Recorded(p)
	if err != nil {
		return r, err
	}
	trace, err := capture.Open(filepath.Join(folder, dtype+".safetensors"))
	if err != nil {
		return r, err
	}
	defer trace.Close()
	ck, err := checkpoint.OpenFS(folder, weightsAlone{os.DirFS(folder)})
	if err != nil {
		return r, err
	}
	i, err := certify.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), certify.IsolateOptions{Arithmetic: certify.Strict})
	if err != nil {
		return r, err
	}
	for n := range list.Entries {
		if list.Entries[n].Level == recorded.Unnamed {
			r.steps++
		}
	}
	for _, record := range trace.Records() {
		e, ok := list.Lookup(record.Name)
		if !ok {
			return r, fmt.Errorf("the program has no %s", record.Name)
		}
		if _, argument := e.Op.(op.Given); argument {
			continue
		}
		r.named++
		c, err := i.Certify(context.Background(), record.Name, record.Pass)
		key := capture.Key(record.Pass, record.Name, 0)
		var bare *order.BareError
		switch {
		case errors.As(err, &bare):
			r.unverified++
			r.why[bare.Why]++
			continue
		case err != nil:
			r.wrong++
			r.bad = append(r.bad, key+": "+err.Error())
			continue
		}
		r.elements, r.unequal, r.outside, r.boundless = r.elements+c.Elements, r.unequal+c.Unequal, r.outside+c.Outside, r.boundless+c.Unbounded
		if c.Unbounded > 0 {
			r.bad = append(r.bad, fmt.Sprintf("%s: nothing is known of %d of %d elements, %s", key, c.Unbounded, c.Elements, c.Form))
		}
		switch {
		case c.Outcome == certify.Exact:
			r.exact++
		case c.Good():
			r.rounding++
		default:
			r.wrong++
			r.bad = append(r.bad, fmt.Sprintf("%s: %s, %d of %d outside, worst %.3g, %s", key, c.Outcome, c.Outside, c.Elements, c.Worst, c.Form))
		}
	}
	return r, nil
}

// weightsAlone is a checkpoint's folder without the traces that lie in it.
type weightsAlone struct{ fs.FS }

// ReadDir leaves out what is no weight.
func (w weightsAlone) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "bfloat16.") || strings.HasPrefix(e.Name(), "float32.")
	}), err
}

// TestArchitectures prints what isolation says of recorded runs: of each folder of $TRACEDIFF_ARCHITECTURES, as
// fixtures/architectures.py --keep writes them. Where none is named it says nothing.
func TestArchitectures(t *testing.T) {
	dir := os.Getenv("TRACEDIFF_ARCHITECTURES")
	if dir == "" {
		t.Skip("TRACEDIFF_ARCHITECTURES names no folder of recorded runs")
	}
	only := os.Getenv("TRACEDIFF_ONLY")
	folders, err := filepath.Glob(filepath.Join(dir, "*", "done"))
	if err != nil {
		t.Fatal(err)
	}
	for _, done := range folders {
		folder := filepath.Dir(done)
		if only != "" && !slices.Contains(strings.Split(only, ","), filepath.Base(folder)) {
			continue
		}
		for _, dtype := range []string{"bfloat16", "float32"} {
			r, err := certifyRun(folder, dtype)
			if err != nil {
				t.Errorf("%s %s: %v", r.name, dtype, err)
				fmt.Printf("| %s | %s | %v\n", r.name, dtype, err)
				continue
			}
			fmt.Printf("| %s | %s | %d | %d | %d | %d | %d | %d | %.2g | %d | %d | %v |\n", r.name, dtype, r.named, r.steps, r.exact, r.rounding, r.wrong, r.unverified,
				float64(r.unequal)/float64(max(r.elements, 1)), r.outside, r.boundless, r.why)
			for _, k := range slices.Sorted(maps.Keys(r.why)) {
				_ = k
			}
			for i, b := range r.bad {
				if i < 6 {
					fmt.Println("    ", b)
				}
			}
		}
	}
}
