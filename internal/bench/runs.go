package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/recorded"
)

// made is what fixtures/bench.py has written: runs.json.
type made struct {
	Seconds  int    `json:"seconds"`
	Producer string `json:"producer"`
	Frozen   string `json:"frozen"` // the commits at which the edits were frozen for halves 3 to 6, a space between; without that of a half that was left out
	Runs     []run  `json:"runs"`
}

// run is one trace: of a fault, of two, or of none.
type run struct {
	Name       string  `json:"name"`
	Half       int     `json:"half"` // 0 without a fault
	Checkpoint string  `json:"checkpoint"`
	Program    string  `json:"program"` // the file below the folder of runs that has the recorded program; "" for a checkpoint of fixtures
	DType      string  `json:"dtype"`
	Engine     string  `json:"engine"`
	Reference  string  `json:"reference"`  // the healthy run of transformers
	Healthy    string  `json:"healthy"`    // and that of the same engine
	Impossible string  `json:"impossible"` // why two faults are not to be had at once
	Faults     []fault `json:"faults"`
}

// fault is a mistake as fixtures/faults/fault.py describes it.
type fault struct {
	Name     string             `json:"name"`
	Mistake  string             `json:"mistake"`
	What     string             `json:"what"`
	Right    string             `json:"right"` // what a name has to say to be right, one of several things with ";" between
	Guilty   []entry            `json:"guilty"`
	Rounding string             `json:"rounding"`
	Hidden   string             `json:"hidden"`
	Number   map[string]float64 `json:"number"`
	Benign   string             `json:"benign"`
}

type entry struct {
	Pass int    `json:"pass"`
	Name string `json:"name"`
}

// strictEngine is the name of transformers' own arithmetic.
const strictEngine = "transformers"

func (r run) strict() bool { return r.Engine == strictEngine }

// excused says why a run need not show its faults: some rounding gives the same, or nothing does.
func (r run) excused() string {
	for _, f := range r.Faults {
		if f.Hidden == "" && f.Rounding == "" {
			return ""
		}
	}
	if len(r.Faults) == 0 {
		return ""
	}
	return r.Faults[0].Hidden + r.Faults[0].Rounding
}

func (r run) benign() bool {
	return len(r.Faults) > 0 && !slices.ContainsFunc(r.Faults, func(f fault) bool { return f.Benign == "" })
}

func readRuns(dir string) (m made, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "runs.json"))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%s: runs.json: %w", dir, err)
	}
	m.Runs = slices.DeleteFunc(m.Runs, func(r run) bool { return r.Impossible != "" })
	return m, nil
}

// subject is a model that runs are of.
type subject struct {
	ck   *checkpoint.Checkpoint
	list *order.List
}

// subject is the key of what a run is of.
func (r run) subject() string { return r.Checkpoint + r.Program }

// openRecorded opens a checkpoint whose order was recorded. Both lie below the folder of the runs.
func openRecorded(dir string, r run) (s subject, err error) {
	file, err := os.Open(filepath.Join(dir, r.Program))
	if err != nil {
		return s, err
	}
	defer file.Close()
	p, err := recorded.Read(file)
	if err != nil {
		return s, err
	}
	if s.list, err = order.Recorded(p); err != nil {
		return s, err
	}
	model := filepath.Join(dir, r.Checkpoint, "model")
	s.ck, err = checkpoint.OpenFS(model, os.DirFS(model))
	return s, err
}

func openSubject(name string) (s subject, err error) {
	sub, err := fs.Sub(ondisk.Files(), name)
	if err != nil {
		return s, err
	}
	if s.ck, err = checkpoint.OpenFS(name, sub); err != nil {
		return s, err
	}
	config, err := order.ReadConfig(s.ck.Config())
	if err != nil {
		return s, err
	}
	s.list, err = order.New(config)
	return s, err
}

// levels are the parts of a trace that are read: all entries, or only the results of modules. Recorded models are read in full.
var levels = []int{3, 2}

func (r run) levels() []int {
	if r.Program != "" {
		return levels[:1]
	}
	return levels
}

// at opens what a level has of a trace: at level 2 a copy in dir of its entries. The caller closes it.
func (s subject) at(level int, path, dir string) (*capture.Trace, error) {
	all, err := capture.Open(path)
	if err != nil || level == 3 {
		return all, err
	}
	defer all.Close()
	m, passes := all.Manifest(), []int{}
	ids, err := all.IDs()
	if err != nil {
		return nil, err
	}
	for _, pass := range ids {
		passes = append(passes, len(pass))
	}
	m.Scope.Level, m.Entries = level, nil
	derived := m.Derived
	m.Derived = nil
	for _, e := range m.Scope.Select(s.list) {
		m.Entries = append(m.Entries, e.Name)
		if slices.Contains(derived, e.Name) {
			m.Derived = append(m.Derived, e.Name)
		}
	}
	out := filepath.Join(dir, "level.safetensors")
	w, err := capture.Create(out, m, capture.Reserve(s.list, m.Scope, passes))
	if err != nil {
		return nil, err
	}
	for _, rec := range all.Records() {
		if !slices.Contains(m.Entries, rec.Name) {
			continue
		}
		t, err := all.Read(rec)
		if err != nil {
			return nil, err
		}
		if err := w.Observe(hooks.Event{Name: rec.Name, Pass: rec.Pass, Tensor: t}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return capture.Open(out)
}

// sight is what looking at one trace has shown.
type sight struct {
	isolator *compare.Isolator
	wrong    []compare.Row // rows that do not match
	findings map[string]*diagnose.Finding
	efforts  map[string]diagnose.Effort // by role
	ties     int                        // rows whose most likely token differs by less than it may
}

// look isolates a trace, or compares it with a right trace.
func (s subject) look(ctx context.Context, t, ref *capture.Trace) (*sight, error) {
	v := &sight{findings: map[string]*diagnose.Finding{}, efforts: map[string]diagnose.Effort{}}
	var mu sync.Mutex // forms are searched concurrently
	looked := func(e diagnose.Effort) {
		mu.Lock()
		defer mu.Unlock()
		v.efforts[e.Role] = both(v.efforts[e.Role], e)
	}
	isolator := func(t *capture.Trace) (*compare.Isolator, error) {
		i, err := compare.NewIsolator(t, s.list, reference.Weights(s.ck, t.Manifest().DType), isolate.Options{PortWeights: isolate.PortWeights{Spare: reference.SpareVectors(s.ck, s.list)}})
		if err == nil {
			i.Names.Study = diagnose.Study{Looked: looked}
		}
		return i, err
	}
	o := compare.Options{Order: s.list, All: true, Workers: 1}
	var err error
	if o.Isolator, err = isolator(t); err != nil {
		return nil, err
	}
	v.isolator = o.Isolator
	compared := func() (*compare.Result, error) { return compare.Alone(ctx, t, o) }
	if ref != nil {
		compared = func() (*compare.Result, error) { return compare.Traces(ctx, t, ref, o) }
		if o.ReferenceIsolator, err = isolator(ref); err != nil {
			return nil, err
		}
		if o.Noise, err = s.floor(ctx, ref); err != nil {
			return nil, err
		}
	}
	r, err := compared()
	if err != nil {
		return nil, err
	}
	for _, row := range r.Rows {
		if slices.ContainsFunc(row.Notes, func(n compare.Note) bool { return n.Kind == compare.Tie }) {
			v.ties++
		}
		if row.Verdict != compare.Mismatch || row.Derived { // what a capturing side recomputed is shown, and gates nothing
			continue
		}
		v.wrong = append(v.wrong, row)
		role := order.NameOf(row.Name).Role()
		if _, seen := v.findings[role]; !seen || v.findings[role] == nil && row.Isolated != nil {
			v.findings[role] = nil
			if row.Isolated != nil {
				v.findings[role] = row.Isolated.Finding
			}
		}
	}
	return v, nil
}

// both is the effort of two searches of a role.
func both(a, b diagnose.Effort) diagnose.Effort {
	return diagnose.Effort{Role: b.Role, Tried: a.Tried + b.Tried, Stopped: a.Stopped || b.Stopped, Took: a.Took + b.Took}
}

// floor is the noise floor of a trace's prompt: the walk with every rounding point against the walk with none.
func (s subject) floor(ctx context.Context, t *capture.Trace) (*gate.NoiseFloor, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	passes, err := t.IDs()
	if err != nil {
		return nil, err
	}
	var walks [2]*capture.Trace
	for k, exact := range []bool{false, true} {
		path := filepath.Join(dir, fmt.Sprintf("%t.safetensors", exact))
		job := reference.Job{
			Checkpoint: s.ck, List: s.list, DType: t.Manifest().DType, Exact: exact, Passes: passes, Path: path,
			Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
		}
		if _, err := reference.Walk(ctx, job); err != nil {
			return nil, err
		}
		if walks[k], err = capture.Open(path); err != nil {
			return nil, err
		}
		defer walks[k].Close()
	}
	r, err := compare.Traces(ctx, walks[0], walks[1], compare.Options{Order: s.list, All: true, Workers: 1})
	if err != nil {
		return nil, err
	}
	return compare.NewNoiseFloor(r)
}

// without is the name of a role when a class of edits is not tried, and what the search took.
func (s subject) without(ctx context.Context, t *capture.Trace, name, class string) (f *diagnose.Finding, effort diagnose.Effort, err error) {
	var mu sync.Mutex // forms are searched concurrently
	looked := func(e diagnose.Effort) {
		mu.Lock()
		defer mu.Unlock()
		effort = both(effort, e)
	}
	study := diagnose.Study{Without: class, Looked: looked}
	i, err := compare.NewIsolator(t, s.list, reference.Weights(s.ck, t.Manifest().DType), isolate.Options{PortWeights: isolate.PortWeights{Spare: reference.SpareVectors(s.ck, s.list)}})
	if err != nil {
		return nil, effort, err
	}
	i.Names.Study = study
	f, err = i.Name(ctx, name)
	return f, effort, err
}

// allowed are the keys of entries in which faults show: guilty entries, and entries computed from a guilty entry that was not captured. A
// recomputed entry says nothing.
func (s subject) allowed(t *capture.Trace, faults []fault) map[string]bool {
	guilty := map[entry]bool{}
	for _, f := range faults {
		for _, e := range f.Guilty {
			guilty[e] = true
		}
	}
	derived := t.Manifest().Derived
	has := func(n order.Node) bool {
		name := s.list.Entries[n.Entry].Name
		_, ok := t.Lookup(n.Pass, name)
		return ok && !slices.Contains(derived, name)
	}
	out := map[string]bool{}
	for _, rec := range t.Records() {
		at := s.list.Index(rec.Name)
		if at < 0 {
			continue
		}
		if guilty[entry{rec.Pass, rec.Name}] {
			out[capture.Key(rec.Pass, rec.Name, 0)] = true
			continue
		}
		cut, err := s.list.Cut(has, order.Node{Entry: at, Pass: rec.Pass})
		if err != nil {
			continue // it cannot be isolated either
		}
		if slices.ContainsFunc(cut.Steps, func(n order.Node) bool { return guilty[entry{n.Pass, s.list.Entries[n.Entry].Name}] }) {
			out[capture.Key(rec.Pass, rec.Name, 0)] = true
		}
	}
	return out
}

// same reports whether two traces have the same bits, but for what their sides recomputed.
func same(a, b *capture.Trace) (bool, error) {
	derived := a.Manifest().Derived
	for _, rec := range a.Records() {
		if slices.Contains(derived, rec.Name) {
			continue
		}
		other, ok := b.Lookup(rec.Pass, rec.Name)
		if !ok || other.DType != rec.DType || !slices.Equal(other.Shape, rec.Shape) {
			return false, nil
		}
		x, err := a.Read(rec)
		if err != nil {
			return false, err
		}
		y, err := b.Read(other)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(x.Data, y.Data) {
			return false, nil
		}
	}
	return true, nil
}

// near reports whether two numbers are the same to three digits.
func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-3*math.Abs(b) }
