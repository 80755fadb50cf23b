package arithmetic_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// plantedRun is a trace of the bug bench: what the test reads of runs.json.
type plantedRun struct {
	Name       string
	Checkpoint string
	DType      string
	Engine     string
	Impossible string
	Faults     []plantedFault
}

type plantedFault struct {
	Name, Mistake            string
	Rounding, Hidden, Benign string
	Guilty                   []struct {
		Pass int
		Name string
	}
}

// faults is the name of the mistakes of a run. Runs of other dtypes and engines have the same mistakes, and are not independent.
func (r *plantedRun) faults() string {
	var names []string
	for _, f := range r.Faults {
		names = append(names, f.Name)
	}
	return strings.Join(names, "+")
}

// excused reports whether the definition of a fault says that roundings give the same, or that nothing shows.
func (r *plantedRun) excused() bool {
	return slices.ContainsFunc(r.Faults, func(f plantedFault) bool { return f.Rounding+f.Hidden+f.Benign != "" })
}

// touched returns the entries that mistakes make wrong: guilty entries, and entries computed from a guilty entry that was not captured.
func (r *plantedRun) touched(i *isolate.Isolator) map[order.Node]bool {
	guilty, all := map[order.Node]bool{}, map[order.Node]bool{}
	for _, f := range r.Faults {
		for _, g := range f.Guilty {
			guilty[order.Node{Entry: i.List().Index(g.Name), Pass: g.Pass}] = true
		}
	}
	forms := i.CapturedForms()
	for _, name := range forms.Names {
		for _, n := range forms.Nodes[name] {
			cut, err := i.List().Cut(i.Has, n)
			all[n] = guilty[n] || err == nil && slices.ContainsFunc(cut.Steps, func(s order.Node) bool { return guilty[s] })
		}
	}
	return all
}

// plantedRuns are the runs of a folder that fixtures/bench.py has written, and the models that they are of.
type plantedRuns struct {
	dir     string
	runs    []*plantedRun // with mistakes
	healthy []*plantedRun // without
	models  map[string]model
}

type model struct {
	ck   *checkpoint.Checkpoint
	list *order.List
}

func readPlanted(t *testing.T, dir string) *plantedRuns {
	t.Helper()
	var made struct{ Runs []*plantedRun }
	if err := json.Unmarshal([]byte(pagetest.Text(t, filepath.Join(dir, "runs.json"))), &made); err != nil {
		t.Fatal(err)
	}
	p := &plantedRuns{dir: dir, models: map[string]model{}}
	for _, r := range made.Runs {
		switch {
		case r.Impossible != "":
			continue
		case len(r.Faults) == 0:
			p.healthy = append(p.healthy, r)
		default:
			p.runs = append(p.runs, r)
		}
		if _, ok := p.models[r.Checkpoint]; !ok {
			ck, list := ordertest.Embedded(t, r.Checkpoint)
			p.models[r.Checkpoint] = model{ck, list}
		}
	}
	return p
}

func (p *plantedRuns) path(r *plantedRun) string { return filepath.Join(p.dir, r.Name+".safetensors") }

// look is what one trace is asked. isolator makes an isolator of the trace.
type look func(r *plantedRun, isolator func(isolate.Options) (*compare.Isolator, error)) error

// each asks every trace of some runs.
func (p *plantedRuns) each(t *testing.T, runs []*plantedRun, ask look) {
	t.Helper()
	var wait sync.WaitGroup
	next := make(chan *plantedRun)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for r := range next {
				if err := p.ask(r, ask); err != nil {
					t.Errorf("%s: %v", r.Name, err)
				}
			}
		})
	}
	for _, r := range runs {
		next <- r
	}
	close(next)
	wait.Wait()
}

func (p *plantedRuns) ask(r *plantedRun, ask look) error {
	trace, err := capture.Open(p.path(r))
	if err != nil {
		return err
	}
	defer trace.Close()
	of := p.models[r.Checkpoint]
	return ask(r, func(o isolate.Options) (*compare.Isolator, error) {
		return compare.NewIsolator(trace, of.list, reference.Weights(of.ck, cmp.Or(o.DType, trace.Manifest().DType)), o)
	})
}

// drawnRuns are n runs, drawn by a fixed seed, or all.
func drawnRuns(runs []*plantedRun, n int) []*plantedRun {
	some := slices.Clone(runs)
	rng := rand.New(rand.NewPCG(ratesSeed, 0))
	rng.Shuffle(len(some), func(a, b int) { some[a], some[b] = some[b], some[a] })
	return some[:min(n, len(some))]
}

const ratesSeed = 1

// differentFaults counts the mistakes of some runs.
func differentFaults(runs []*plantedRun) int {
	names := map[string]bool{}
	for _, r := range runs {
		names[r.faults()] = true
	}
	return len(names)
}

// What docs/results/certificate.md tells of: the traces with mistakes, and how many of them were drawn for the majority.
const (
	ratesMeasured    = 4376
	majorityMeasured = 1000
)

// page says what was measured, and compares it with the docs if it was measured on as much.
func (p *plantedRuns) page(t *testing.T, name string, whole bool, text string) {
	t.Helper()
	t.Log(text)
	if !whole {
		return
	}
	docs := pagetest.Section(t, certificatePage, pagetest.Text(t, certificatePage), "rates: "+name, text)
	if pagetest.Update() {
		pagetest.Write(t, certificatePage, docs)
	}
}

// benchVariable names a folder that fixtures/bench.py has written.
const benchVariable = "TRACEDIFF_BENCH"

// TestRatesOfThresholds measures how often thresholds decide wrongly where their null hypothesis is true: in traces of the bug bench, which have planted
// mistakes, the weights of the original, and nothing that was rounded on writing. docs/results/certificate.md has the rates of the whole bench.
func TestRatesOfThresholds(t *testing.T) {
	dir, set := os.LookupEnv(benchVariable)
	if !set {
		t.Skipf("needs %s: the folder that python fixtures/bench.py makes", benchVariable)
	}
	p := readPlanted(t, dir)
	t.Run("codes", p.ratesOfCodes)
	t.Run("everywhere", p.ratesOfCodesEverywhere)
	t.Run("wider", p.ratesOfWider)
	t.Run("majority", p.ratesOfMajority)
}
