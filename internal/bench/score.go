package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/internal/cores"
	"github.com/tracediff/tracediff/order"
)

// named is a search's result for the entries of a role.
type named struct {
	Role    string            `json:"role"`
	At      string            `json:"at,omitempty"`      // the key of the first entry of the role that does not match
	Wrong   int               `json:"wrong,omitempty"`   // how many entries of the role do not match
	Finding *diagnose.Finding `json:"finding,omitempty"` // nil where it has no name
	Effort  diagnose.Effort   `json:"effort"`
	// Other is the finding without the class of the name; nil for nothing. Asked reports that it was searched for.
	Other       *diagnose.Finding `json:"other,omitempty"`
	Asked       bool              `json:"asked,omitempty"`
	OtherEffort diagnose.Effort   `json:"other_effort,omitzero"`

	verdict, otherVerdict verdict // "" without a name
	number                bool    // the number of the fault is in the name
}

// asked reports whether another name was looked for in place of the right one.
func (n *named) asked() bool { return n.Asked && n.verdict == right }

// result is what looking at a run at a level has shown.
type result struct {
	run `json:"-"`

	Run       string   `json:"run"`
	Level     int      `json:"level"`
	Located   bool     `json:"located,omitempty"`
	At        string   `json:"at,omitempty"`        // the key of the first entry that does not match
	ByLimits  bool     `json:"by_limits,omitempty"` // only the comparison with transformers shows it
	Invisible bool     `json:"invisible,omitempty"` // no bit of the trace differs from that of the healthy engine
	Proofs    []proof  `json:"proofs,omitempty"`    // of a fault that is not located: why this run cannot show it
	Accused   []string `json:"accused,omitempty"`   // keys of entries that do not match, and in which no fault shows
	Names     []named  `json:"names,omitempty"`

	Took time.Duration `json:"took,omitempty"` // from the first trace that was opened to the last search

	// For runs with right logits: no mismatch against transformers' run; every bit is transformers'; and the number of passes with a different
	// most likely token, within the noise.
	Silent   bool `json:"silent,omitempty"`
	Strictly bool `json:"strictly,omitempty"`
	Ties     int  `json:"ties,omitempty"`
}

// judged gives each name the verdict of the read names.
func judged(results []result, read readings) {
	for i := range results {
		r := &results[i]
		for k := range r.Names {
			n := &r.Names[k]
			if isName(n.Finding) {
				n.verdict = read.judge(r.Faults, n.Finding)
				n.number = slices.ContainsFunc(r.Faults, func(f fault) bool { return recovered(f, n.Finding) })
			}
			if n.Asked && isName(n.Other) {
				n.otherVerdict = read.judge(r.Faults, n.Other)
			}
		}
	}
}

// isNamed reports whether a fault has its name, and no wrong name.
func (r *result) isNamed() bool {
	return r.any(right) && !r.any(wrong)
}

// isProven reports whether the proofs of a run show why its visible fault cannot be located.
func (r *result) isProven() bool {
	return !r.Located && !r.Invisible && r.excused() == "" && len(r.Proofs) > 0
}

func (r *result) any(v verdict) bool {
	return slices.ContainsFunc(r.Names, func(n named) bool { return n.verdict == v })
}

// recovered reports whether a name has the fault's number.
func (r *result) recovered() bool {
	return slices.ContainsFunc(r.Names, func(n named) bool { return n.number })
}

// bench looks at runs.
type bench struct {
	dir      string
	subjects map[string]subject
}

func newBench(dir string, m made) (*bench, error) {
	b := &bench{dir: dir, subjects: map[string]subject{}}
	for _, r := range m.Runs {
		if _, ok := b.subjects[r.subject()]; ok {
			continue
		}
		s, err := openSubject(r.Checkpoint)
		if r.Program != "" {
			s, err = openRecorded(dir, r)
		}
		if err != nil {
			return nil, err
		}
		b.subjects[r.subject()] = s
	}
	return b, nil
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name+".safetensors") }

// results looks at every run at every level, workers at a time. They are in the order of the runs, whatever the number of workers.
func (b *bench) results(ctx context.Context, runs []run, workers int) ([]result, error) {
	type task struct {
		run   run
		level int
	}
	var tasks []task
	for _, r := range runs {
		for _, level := range r.levels() {
			tasks = append(tasks, task{r, level})
		}
	}
	out := make([]result, len(tasks))
	errs := make([]error, len(out))
	cores.By(workers, len(out), func() func(int) {
		return func(k int) {
			start := time.Now()
			out[k], errs[k] = b.result(ctx, tasks[k].run, tasks[k].level)
			out[k].Took = time.Since(start)
		}
	})
	for k, err := range errs {
		if err != nil {
			return nil, &runError{tasks[k].run.Name, err}
		}
	}
	return out, nil
}

type runError struct {
	run string
	err error
}

func (e *runError) Error() string { return e.run + ": " + e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// result looks at a run: isolated, as an engine's trace, and, if that accuses nothing or nothing is to be accused, against transformers' run.
func (b *bench) result(ctx context.Context, r run, level int) (result, error) {
	out := result{run: r, Run: r.Name, Level: level}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	s := b.subjects[r.subject()]
	open := func(name string) (*capture.Trace, error) {
		sub, err := os.MkdirTemp(dir, "trace")
		if err != nil {
			return nil, err
		}
		return s.at(level, b.path(name), sub)
	}
	local, err := open(r.Name)
	if err != nil {
		return out, err
	}
	defer local.Close()
	healthy, err := open(r.Healthy)
	if err != nil {
		return out, err
	}
	defer healthy.Close()
	if out.Invisible, err = same(local, healthy); err != nil {
		return out, err
	}
	if out.Invisible && len(r.Faults) > 0 {
		return out, nil // it is the healthy run, which is looked at as such
	}
	allowed := s.allowed(local, r.Faults)
	seen, err := s.look(ctx, local, nil)
	if err != nil {
		return out, err
	}
	if err := s.found(ctx, &out, local, seen, allowed); err != nil {
		return out, err
	}
	if len(seen.wrong) > 0 {
		out.At = seen.wrong[0].Key()
		if !r.benign() {
			return out, nil
		}
	}
	alone := seen.isolator
	ref, err := open(r.Reference)
	if err != nil {
		return out, err
	}
	defer ref.Close()
	if seen, err = s.look(ctx, local, ref); err != nil {
		return out, err
	}
	out.Ties = seen.ties
	if out.Strictly, err = same(local, ref); err != nil {
		return out, err
	}
	if out.Silent = len(seen.wrong) == 0; !out.Silent && !out.Located {
		key := seen.wrong[0].Key()
		out.At = key
		out.Located, out.ByLimits = allowed[key], allowed[key]
		if len(r.Faults) == 0 { // after a fault that was not located, entries are past their limits without being wrong
			out.Accused = append(out.Accused, key)
		}
	}
	if len(r.Faults) > 0 && !out.Located && !r.benign() {
		out.Proofs, err = s.proofs(ctx, local, alone, allowed)
	}
	return out, err
}

// found adds what was seen to a result.
func (s subject) found(ctx context.Context, out *result, local *capture.Trace, seen *sight, allowed map[string]bool) error {
	var roles []string
	for _, row := range seen.wrong {
		if !allowed[row.Key()] {
			out.Accused = append(out.Accused, row.Key())
			continue
		}
		out.Located = true
		role := order.NameOf(row.Name).Role()
		if k := slices.Index(roles, role); k >= 0 {
			out.Names[k].Wrong++
			continue
		}
		roles = append(roles, role)
		n := named{Role: role, At: row.Key(), Wrong: 1, Finding: seen.findings[role], Effort: seen.efforts[role]}
		if isName(n.Finding) && len(out.Faults) == 1 && out.Program == "" && out.strict() && out.Level == 3 {
			var err error
			if n.Other, n.OtherEffort, err = s.without(ctx, local, row.Name, n.Finding.Class); err != nil {
				return err
			}
			n.Asked = true
		}
		out.Names = append(out.Names, n)
	}
	return nil
}

// toRead are the names of results that nobody has read.
func toRead(results []result) (all []reading) {
	for _, r := range results {
		for _, n := range r.Names {
			name := pairName(r.Faults)
			if n.verdict == unread {
				all = append(all, reading{verdict: unread, fault: name, key: n.Finding.Key()})
			}
			if n.asked() && n.otherVerdict == unread {
				all = append(all, reading{verdict: unread, fault: name, key: n.Other.Key()})
			}
		}
	}
	return all
}

// took are the efforts of all searches of results.
func took(results []result) (seconds []time.Duration, tried []int, stopped int) {
	for _, r := range results {
		for _, n := range r.Names {
			if n.Effort.Role == "" {
				continue
			}
			seconds, tried = append(seconds, n.Effort.Took), append(tried, n.Effort.Tried)
			if n.Effort.Stopped {
				stopped++
			}
		}
	}
	slices.Sort(seconds)
	slices.Sort(tried)
	return seconds, tried, stopped
}
