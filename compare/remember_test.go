package compare_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/notebook"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// What was found in a trace to be right is not computed again where all of it is the same to the bit: no weight is read, and the report has the
// same bytes. What else the results depend on, and is another one, is computed.
func TestWhatIsTheSameIsNotComputedAgain(t *testing.T) {
	for _, golden := range []string{"gemma3n-tiny/decode.bfloat16", "gemma3n-tiny/decode.float32", "llama-tiny/decode.bfloat16"} {
		t.Run(golden, func(t *testing.T) {
			p := remembering{t: t, of: "model", memory: &kept{found: map[isolate.Key][]byte{}}}
			p.ck, p.list = ordertest.Embedded(t, filepath.Dir(golden))
			trace := testengine.OpenGolden(t, "golden/"+golden+".safetensors")
			first := p.report(trace, reference.Weights(p.ck, trace.Manifest().DType))
			if got := p.report(trace, unread); got != first {
				t.Errorf("the second report is\n%.2000s\nwant\n%.2000s", got, first)
			}
			for name, change := range map[string]func(*remembering){
				"another model":        func(p *remembering) { p.of = "another" },
				"no model":             func(p *remembering) { p.of = "" },
				"another arithmetic":   func(p *remembering) { p.o.Arithmetic = isolate.Strict },
				"rigorous bounds":      func(p *remembering) { p.o.Rigorous = true },
				"what may accuse, too": func(p *remembering) { p.o.Thorough = true },
				"the port's weights":   func(p *remembering) { p.o.Own = true },
			} {
				other := p
				change(&other)
				if _, err := other.run(trace, unread); !errors.Is(err, errUnread) {
					t.Errorf("%s: no weight is read, but the error is %v", name, err)
				}
			}
		})
	}
}

// A trace with another element in one tensor has the report that it has where nothing is remembered: whatever the tensor is, what was found of the
// healthy trace hides nothing. What is wrong is not remembered.
func TestWhatIsRememberedHidesNothing(t *testing.T) {
	p := remembering{t: t, of: "model", memory: &kept{found: map[isolate.Key][]byte{}}}
	p.ck, p.list = ordertest.Embedded(t, "gemma3n-tiny")
	healthy := testengine.OpenGolden(t, "golden/gemma3n-tiny/decode.bfloat16.safetensors")
	weights := reference.Weights(p.ck, hooks.BF16)
	p.report(healthy, weights)
	rng := rand.New(rand.NewPCG(5, 6))
	var keys []string
	for _, r := range healthy.Records() {
		if p.list.Index(r.Name) >= 0 && r.DType.Float() {
			keys = append(keys, r.Key)
		}
	}
	bugs := 0
	for range 6 {
		key := keys[rng.IntN(len(keys))]
		wrong := testengine.Tampered(t, healthy, func(at string, r capture.Record, data []float64) ([]float64, hooks.DType) {
			if at != key {
				return nil, 0
			}
			k := rng.IntN(len(data))
			data[k] = 2*data[k] + 1
			return data, r.DType
		})
		bare := p
		bare.memory = nil
		want := bare.report(wrong, weights)
		for _, when := range []string{"after the healthy run", "after its own"} {
			if got := p.report(wrong, weights); got != want {
				t.Errorf("%s, with another element in %s the report is\n%.2000s\nwant\n%.2000s", when, key, got, want)
			}
		}
		var r struct {
			Isolation struct {
				Bugs int `json:"bugs"`
			} `json:"isolation"`
		}
		if err := json.Unmarshal([]byte(want), &r); err != nil {
			t.Fatal(err)
		}
		bugs += r.Isolation.Bugs
	}
	if bugs < 4 {
		t.Errorf("%d entries are wrong in all: too few to show anything", bugs)
	}
}

// What was found is kept in a file: a file that is damaged is nothing found.
func TestNotebook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	p := remembering{t: t, of: "model"}
	p.ck, p.list = ordertest.Embedded(t, "llama-tiny")
	trace := testengine.OpenGolden(t, "golden/llama-tiny/decode.bfloat16.safetensors")
	open := func() *notebook.Store {
		s := notebook.Open(dir, "model")
		p.memory = inFile{s}
		return s
	}
	s := open()
	want := p.report(trace, reference.Weights(p.ck, hooks.BF16))
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if got := p.report(trace, unread); got != want || s.Found() == 0 {
		t.Errorf("%d results are found, and the report is\n%.2000s\nwant\n%.2000s", s.Found(), got, want)
	}
}

var errUnread = errors.New("a weight is read")

// unread has no weights.
func unread(order.Weight) (program.Rows, error) { return nil, errUnread }

// remembering compares traces with themselves by isolators that remember.
type remembering struct {
	t      *testing.T
	of     string
	memory isolate.Memory
	o      isolate.Options
	list   *order.List
	ck     *checkpoint.Checkpoint
}

func (p *remembering) run(trace *capture.Trace, weights func(order.Weight) (program.Rows, error)) (*compare.Result, error) {
	p.t.Helper()
	o := p.o
	o.Memory, o.Of = p.memory, p.of
	i, err := compare.NewIsolator(trace, p.list, weights, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return compare.Traces(p.t.Context(), trace, trace, compare.Options{Order: p.list, All: true, Certification: compare.Certification{Isolator: i, Sight: true}})
}

// report is the result as JSON.
func (p *remembering) report(trace *capture.Trace, weights func(order.Weight) (program.Rows, error)) string {
	p.t.Helper()
	r, err := p.run(trace, weights)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// kept is a memory as JSON.
type kept struct {
	mu    sync.Mutex
	found map[isolate.Key][]byte
}

func (m *kept) Load(k isolate.Key, into any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.found[k] != nil && json.Unmarshal(m.found[k], into) == nil
}

func (m *kept) Keep(k isolate.Key, found any) {
	text, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found[k] = text
}

type inFile struct{ *notebook.Store }

func (m inFile) Load(k isolate.Key, into any) bool { return m.Store.Load(k, into) }
func (m inFile) Keep(k isolate.Key, found any)     { m.Store.Keep(k, found) }
