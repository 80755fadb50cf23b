package arithmetic_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
)

// widerThresholds are the thresholds, and looser thresholds that show what each adds.
var widerThresholds = []struct {
	name   string
	change func(*arithmetic.Thresholds)
}{
	{"as they are", func(*arithmetic.Thresholds) {}},
	{"Places 1", func(s *arithmetic.Thresholds) { s.Wider.Places = 1 }},
	{"Rounded 1", func(s *arithmetic.Thresholds) { s.Wider.Rounded = 1 }},
	{"Places 0, Rounded 1, no proof", func(s *arithmetic.Thresholds) {
		s.Wider, s.Proof = arithmetic.WiderThresholds{Rounded: 1}, arithmetic.ProofThresholds{}
	}},
}

// ratesOfWider measures how often a trace with a mistake seems to have been computed in more digits than it was stored in.
// Null hypothesis of WiderThresholds: mistakes, and nothing was rounded on writing. It is true in every trace of the bug bench.
func (p *plantedRuns) ratesOfWider(t *testing.T) {
	var out strings.Builder
	out.WriteString("\n| question | traces | mistakes | mistakes with a wrong witness |")
	for _, of := range widerThresholds {
		fmt.Fprintf(&out, " yes, %s |", of.name)
	}
	out.WriteString("\n|---|---|---|---|" + strings.Repeat("---|", len(widerThresholds)) + "\n")
	for _, q := range []struct{ name, dtype string }{{"computed in double precision", "float32"}, {"rounded on writing", "bfloat16"}} {
		var runs []*plantedRun
		for _, r := range p.runs {
			if r.DType == q.dtype {
				runs = append(runs, r)
			}
		}
		fmt.Fprintf(&out, "| %s (%s) | %d | %d | %d |", q.name, q.dtype, len(runs), differentFaults(runs), differentFaults(p.those(t, runs, wrongWitness)))
		for _, of := range widerThresholds {
			t.Run(q.name+" "+of.name, func(t *testing.T) {
				arithmetic.SetThresholds(t, of.change)
				yes := p.those(t, runs, wider)
				fmt.Fprintf(&out, " %d |", len(yes))
				t.Logf("%d: %s", len(yes), listed(yes))
				if of.name == widerThresholds[0].name && len(yes) > 0 {
					t.Errorf("%d traces seem to be %s", len(yes), q.name)
				}
			})
		}
		out.WriteString("\n")
	}
	p.page(t, "wider", len(p.runs) == ratesMeasured, out.String())
}

// those returns the runs that a question is answered yes for.
func (p *plantedRuns) those(t *testing.T, runs []*plantedRun, ask func(*testing.T, func(isolate.Options) (*compare.Isolator, error)) (bool, error)) (yes []*plantedRun) {
	t.Helper()
	var mu sync.Mutex
	p.each(t, runs, func(r *plantedRun, isolator func(isolate.Options) (*compare.Isolator, error)) error {
		is, err := ask(t, isolator)
		if err != nil || !is {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		yes = append(yes, r)
		return nil
	})
	return yes
}

// wider reports whether a trace seems to have been computed in more digits.
func wider(t *testing.T, isolator func(isolate.Options) (*compare.Isolator, error)) (bool, error) {
	t.Helper()
	i, err := isolator(isolate.Options{})
	if err != nil {
		return false, err
	}
	d := i.Env().DType
	if d == hooks.F32 {
		return i.Forms.ComputedWider(t.Context())
	}
	wide, err := isolator(isolate.Options{DType: hooks.F32, Stored: d})
	if err != nil {
		return false, err
	}
	return i.Forms.Rounded(t.Context(), wide.Isolator)
}

// wrongWitness is [arithmetic.WrongWitness] of a trace.
func wrongWitness(t *testing.T, isolator func(isolate.Options) (*compare.Isolator, error)) (bool, error) {
	t.Helper()
	i, err := isolator(isolate.Options{})
	if err != nil {
		return false, err
	}
	return arithmetic.WrongWitness(t.Context(), i.Isolator)
}
