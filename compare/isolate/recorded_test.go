package isolate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/recorded"
)

// recordedList is the list of a recorded program of the fixtures.
func recordedList(t testing.TB, path string) *order.List {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := recorded.Read(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	list, err := order.Recorded(p)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return list
}

// outcomes certifies every entry of a trace in transformers' own arithmetic.
func outcomes(t *testing.T, trace *capture.Trace, list *order.List, model string) (of map[string]isolate.Outcome, outside int64) {
	t.Helper()
	ck, _ := ordertest.Embedded(t, model)
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{Arithmetic: isolate.Strict})
	if err != nil {
		t.Fatal(err)
	}
	of = map[string]isolate.Outcome{}
	for _, r := range trace.Records() {
		e, ok := list.Lookup(r.Name)
		if !ok {
			t.Fatalf("%s: the order has no %s", trace.Path(), r.Name)
		}
		if _, argument := e.Op.(op.Given); argument {
			continue
		}
		c, err := i.Certify(context.Background(), r.Name, r.Pass)
		if err != nil {
			t.Fatalf("%s: %v", trace.Path(), err)
		}
		of[capture.Key(r.Pass, r.Name, 0)] = c.Outcome
		outside += c.Outside
	}
	return of, outside
}

// A program that was recorded from transformers gives transformers' own traces: every entry is EXACT or ROUNDING, in prefill and
// in decode steps, in bfloat16 and in float32. Of any trace of the same lengths it says what the hand-written order says: with a
// mistake planted in transformers, the same entries are wrong, and no others.
func TestRecordedProgramsSayWhatTheOrdersSay(t *testing.T) {
	programs, err := filepath.Glob("../../fixtures/programs/*.program.json")
	if err != nil || len(programs) == 0 {
		t.Fatal("no programs", err)
	}
	healthy, faulty := 0, 0
	for _, path := range programs {
		name := strings.TrimSuffix(filepath.Base(path), ".program.json")
		model, dtype, _ := strings.Cut(name, ".")
		list := recordedList(t, path)
		_, written := ordertest.Embedded(t, model)
		traces, err := filepath.Glob(fmt.Sprintf("../../fixtures/bench/*.%s.transformers.safetensors", dtype))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(traces, fmt.Sprintf("../../fixtures/golden/%s/decode.%s.safetensors", model, dtype)) {
			trace := testengine.Open(t, file)
			if !sameRun(trace, list, model) {
				continue
			}
			got, outside := outcomes(t, trace, list, model)
			want, _ := outcomes(t, trace, written, model)
			bugs := 0
			for key, o := range want {
				if g := got[key]; (g == isolate.Bug) != (o == isolate.Bug) || g == "" {
					t.Errorf("%s: %s is %s by the program, and %s by the order", file, key, g, o)
				}
				if o == isolate.Bug {
					bugs++
				}
			}
			if len(got) < 200 {
				t.Errorf("%s: %d entries", file, len(got))
			}
			if strings.Contains(file, "healthy") || strings.Contains(file, "golden") {
				if healthy++; outside > 0 || bugs > 0 {
					t.Errorf("%s: %d elements are outside", file, outside)
				}
				continue
			}
			if faulty++; bugs == 0 {
				t.Errorf("%s: no entry is wrong", file)
			}
		}
	}
	if healthy < 5 || faulty < 5 {
		t.Errorf("%d healthy traces and %d with a mistake: nothing was shown", healthy, faulty)
	}
}

// sameRun reports whether a trace is of a checkpoint, and of passes as long as a program's.
func sameRun(trace *capture.Trace, list *order.List, model string) bool {
	if filepath.Base(trace.Manifest().Model) != model {
		return false
	}
	passes, err := trace.IDs()
	if err != nil {
		return false
	}
	at := list.Index(order.InputIDs)
	for k, ids := range passes {
		if e := list.At(order.Node{Entry: at, Pass: k}); !slices.Equal(e.Shape, []order.Dim{1, order.Dim(len(ids))}) {
			return false
		}
	}
	return !list.In(order.Node{Entry: at, Pass: len(passes)})
}
