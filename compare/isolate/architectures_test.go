package isolate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/recorded"
	"github.com/tracediff/tracediff/order/recorded/lengths"
)

// run is what isolation says of a trace by a program, in transformers' own arithmetic.
type run struct {
	entries, steps    int // with names, and without
	exact, rounding   int
	elements, unequal int64
	outside           int64
	wrong, open       []string          // entries that are BUG, and those with elements of which nothing is known
	unverified        map[string]int    // entries that need an operation without a formula, by why
	outcomes          map[string]string // by key
	lifted            int               // entries that are a known operation
	unlifted          []string          // the steps of those that are none
}

// certified certifies every entry of a trace. Folder is one that fixtures/recorded.py makes.
func certified(folder, program, trace string, level int) (*run, error) {
	data, err := os.ReadFile(filepath.Join(folder, program+".program.json"))
	if err != nil {
		return nil, err
	}
	p, err := recorded.Read(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	t, err := capture.Open(trace)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	passes, err := t.IDs()
	if err != nil {
		return nil, err
	}
	var tokens []int
	for _, ids := range passes {
		tokens = append(tokens, len(ids))
	}
	if p, err = lengths.For(p, tokens); err != nil {
		return nil, err
	}
	list, err := order.Recorded(p)
	if err != nil {
		return nil, err
	}
	if level > 0 {
		if t, err = upTo(t, list, level); err != nil {
			return nil, err
		}
		defer t.Close()
	}
	model := filepath.Join(folder, "model")
	ck, err := checkpoint.OpenFS(model, os.DirFS(model))
	if err != nil {
		return nil, err
	}
	i, err := isolate.New(t, list, reference.Weights(ck, t.Manifest().DType), isolate.Options{Arithmetic: isolate.Strict})
	if err != nil {
		return nil, err
	}
	r := &run{unverified: map[string]int{}, outcomes: map[string]string{}}
	for n := range list.Entries {
		if list.Entries[n].Level == recorded.Unnamed {
			r.steps++
		}
	}
	for _, record := range t.Records() {
		if err := r.add(i, list, record); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *run) add(i *isolate.Isolator, list *order.List, record capture.Record) error {
	e, ok := list.Lookup(record.Name)
	if !ok {
		return fmt.Errorf("the program has no %s", record.Name)
	}
	if _, argument := e.Op.(op.Given); argument {
		return nil
	}
	r.entries++
	if _, ok := i.Lift(record.Name, record.Pass); ok {
		r.lifted++
	} else {
		r.unlifted = append(r.unlifted, stepsOf(list, order.Node{Entry: list.Index(record.Name), Pass: record.Pass}))
	}
	key := capture.Key(record.Pass, record.Name, 0)
	c, err := i.Certify(context.Background(), record.Name, record.Pass)
	var bare *order.BareError
	switch {
	case errors.As(err, &bare) && bare.Why != "":
		r.unverified[bare.Why]++
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	}
	r.outcomes[key] = string(c.Outcome)
	r.elements, r.unequal, r.outside = r.elements+c.Elements, r.unequal+c.Unequal, r.outside+c.Outside
	if c.Unbounded > 0 {
		r.open = append(r.open, fmt.Sprintf("%s: %d of %d elements, %s", key, c.Unbounded, c.Elements, c.Form))
	}
	switch {
	case c.Outcome == isolate.Exact:
		r.exact++
	case c.Good():
		r.rounding++
	case c.Outcome == isolate.Unidentified && c.Unbounded > 0: // it is among what is open
	default:
		r.wrong = append(r.wrong, key)
	}
	return nil
}

// upTo is a trace as a capture of a level has it.
func upTo(t *capture.Trace, list *order.List, level int) (*capture.Trace, error) {
	dir, err := os.MkdirTemp("", "level")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // what is open stays
	path := filepath.Join(dir, "level.safetensors")
	m := t.Manifest()
	m.Scope.Level = level
	w, err := capture.Create(path, m, 1<<16)
	if err != nil {
		return nil, err
	}
	for _, record := range t.Records() {
		if e, ok := list.Lookup(record.Name); !ok || e.Level > level {
			continue
		}
		x, err := t.Read(record)
		if err != nil {
			return nil, err
		}
		if err := w.Observe(hooks.Event{Pass: record.Pass, Name: record.Name, Tensor: x}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return capture.Open(path)
}

// A program gives the trace of the run that recorded it, whatever was captured: with a router that chooses experts, and with a state
// that a convolution and a scan hand on. No entry is wrong or unknown, in prefill and in decode steps.
func TestRecordedModels(t *testing.T) {
	programs, err := filepath.Glob("../../fixtures/programs/*/bfloat16.program.json")
	if err != nil || len(programs) < 2 {
		t.Fatal("no models", err)
	}
	for _, program := range programs {
		folder := filepath.Dir(program)
		for _, dtype := range []string{"bfloat16", "float32"} {
			entries := 0
			for level := 3; level >= 1; level-- {
				r, err := certified(folder, dtype, filepath.Join(folder, dtype+".safetensors"), level)
				if err != nil {
					t.Fatalf("%s: %v", folder, err)
				}
				// Without the choice of a router there is nothing to say of a token with two experts of one score, which layer 1 has.
				open := slices.DeleteFunc(r.open, func(what string) bool {
					return level < 3 && filepath.Base(folder) == "mixtral-tiny" && strings.Contains(what, "layers.1.")
				})
				if len(r.wrong)+len(r.unverified)+len(open) > 0 || r.outside > 0 {
					t.Errorf("%s, %s, level %d: wrong %v, unknown %v and %v", folder, dtype, level, r.wrong, r.unverified, open)
				}
				if r.entries < 10 || r.entries == entries {
					t.Errorf("%s, %s, level %d: %d entries", folder, dtype, level, r.entries)
				}
				entries = r.entries
			}
		}
	}
}

// Two experts of one score: whichever a port takes is right, and what follows goes on with it. The worst expert in place of the second
// is wrong in the choice, and what follows is right again. Without the choice the same is seen in what was computed with it.
func TestChoicesOfARouter(t *testing.T) {
	const folder = "../../fixtures/programs/mixtral-tiny"
	file := func(name string) string { return filepath.Join(folder, "bfloat16"+name+".safetensors") }
	healthy, err := certified(folder, "bfloat16", file(""), 0)
	if err != nil {
		t.Fatal(err)
	}
	tie, err := certified(folder, "bfloat16", file(".tie"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(tie.wrong) > 0 || tie.outside > 0 {
		t.Errorf("with the other one of two experts that are alike these are wrong: %v", tie.wrong)
	}
	ties := 0 // each of the two runs has one of two, so one of them another than the first
	for key, o := range tie.outcomes {
		if strings.HasSuffix(key, "layers.1.mlp.gate.2") && o != healthy.outcomes[key] {
			ties++
		}
	}
	if ties == 0 {
		t.Errorf("no choice was another, and nothing was shown: %v and %v", healthy.outcomes, tie.outcomes)
	}
	wrong, err := certified(folder, "bfloat16", file(".wrong"), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"layers.0.mlp.gate.2", "layers.1.mlp.gate.2", "pass1/layers.0.mlp.gate.2", "pass1/layers.1.mlp.gate.2",
		"pass2/layers.0.mlp.gate.2", "pass2/layers.1.mlp.gate.2",
	}
	if slices.Sort(wrong.wrong); !slices.Equal(wrong.wrong, want) {
		t.Errorf("with the worst expert for the second these are wrong: %v, want %v", wrong.wrong, want)
	}
	for level, last := range map[int]string{2: "layers.0.mlp.experts", 1: "layers.0.out"} {
		tie, err := certified(folder, "bfloat16", file(".tie"), level)
		if err != nil {
			t.Fatal(err)
		}
		if len(tie.wrong) > 0 {
			t.Errorf("level %d: the other one of two experts is wrong in %v", level, tie.wrong)
		}
		if o := tie.outcomes["layers.1.out"]; level == 1 && o != string(isolate.Unidentified) {
			t.Errorf("nothing bounds what either of two experts gives, and it is %s", o)
		}
		wrong, err := certified(folder, "bfloat16", file(".wrong"), level)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(wrong.wrong, last) || !slices.Contains(wrong.wrong, "pass1/"+last) {
			t.Errorf("level %d: the worst expert is seen in %v, not in %s", level, wrong.wrong, last)
		}
	}
}
