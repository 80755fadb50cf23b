// Command bench measures tracediff on bugs that were planted, and writes the page of the result.
//
//	go run ./internal/bench [-python PYTHON] OUT
//	go run ./internal/bench -again OUT
//	go run ./internal/bench -goldens [-sample | -write] [-again] OUT
//
// OUT is a folder outside of the tree. Where it holds no runs.json, fixtures/bench.py makes the runs there with the interpreter,
// which has the packages of hooks/python/requirements.txt. The page is docs/results/bench.md. A new name of a bug is added to
// internal/bench/names.txt as "unread", and a person replaces "unread" with a verdict on the name. With -again the page is written from
// the earlier findings and the verdicts of names.txt.
//
// With -goldens no page is written. The findings of all runs are compared with the goldens, the earlier findings:
// internal/bench/testdata/goldens.txt.gz. This takes 80 minutes of two cores. -sample takes a sample of the runs, three minutes: a
// seed draws them, and every class of edits and every status is among them.
//
// A line of the goldens is what is found of one role of entries in a run at a level. These have to stay: where the fault is located, and the
// status, class, step, place, numbers and proof of its name. The exit status is 1 if one of them changes, if a line goes or comes, if the
// searches try more than 1.05 times of before, or if more of them end at their budget. Other words for the same mistake are listed and
// are no error. Times are printed, and are those of the machine. OUT keeps what was found: -again compares it without a second look, and
// looks at the runs that an interrupt has left.
//
// With -write the goldens are written anew after the comparison is printed. If a mistake has the class, step and numbers of before and other
// words, the verdict on the old words goes to the new ones, and names.txt gets a line for them.
//
// Tests hold other lists of what is found. .ci/goldens runs these tests, and then compares all runs.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

const pagePath = "docs/results/bench.md"

func main() {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	python := flags.String("python", "python3", "the `INTERPRETER` that has torch and transformers")
	workers := flags.Int("workers", runtime.NumCPU(), "how many runs are looked at at a time")
	again := flags.Bool("again", false, "take what was found before")
	compare := flags.Bool("goldens", false, "compare what is found with the goldens, and write no page")
	sample := flags.Bool("sample", false, "with -goldens: runs that a seed draws")
	write := flags.Bool("write", false, "with -goldens: write them anew")
	_ = flags.Parse(os.Args[1:]) // ExitOnError: Parse ends the program
	if flags.NArg() != 1 || (*sample || *write) && !*compare || *sample && *write {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/bench [-python PYTHON] [-goldens [-sample | -write]] [-again] OUT")
		os.Exit(2)
	}
	s := source{dir: flags.Arg(0), workers: *workers, again: *again}
	err := s.make(*python)
	switch {
	case err != nil:
	case *compare:
		err = s.compareGoldens(os.Stdout, *sample, *write)
	default:
		err = s.measure()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// source is a folder of runs, and how they are looked at.
type source struct {
	dir     string
	workers int
	again   bool // what was found before is taken
}

// make makes the runs if the folder has no list of them.
func (s source) make(python string) error {
	if _, err := os.Stat("fixtures/bench.py"); err != nil {
		return errors.New("it runs in the root of the repository")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "runs.json")); errors.Is(err, fs.ErrNotExist) {
		cmd := exec.Command(python, "fixtures/bench.py", s.dir)
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("fixtures/bench.py: %w", err)
		}
	}
	return nil
}

// measure writes the page of what is found of all runs.
func (s source) measure() error {
	m, err := readRuns(s.dir)
	if err != nil {
		return err
	}
	read, err := parseReadings(readNames)
	if err != nil {
		return err
	}
	found, err := s.finds("found.json", m)
	if err != nil {
		return err
	}
	results := found.Results
	judged(results, read)
	if err := addNames(results, toRead(results)); err != nil {
		return err
	}
	text, err := render(found.About, results)
	if err != nil {
		return err
	}
	return os.WriteFile(pagePath, text, 0o666)
}

// addNames adds names to the list of names.
func addNames(results []result, names []reading) error {
	return os.WriteFile(filepath.Join("internal/bench", namesFile), []byte(listing(readNames, names)), 0o666)
}

// found is what a measurement has shown, and when: a file in the folder of the runs.
type found struct {
	About   about    `json:"about"`
	Results []result `json:"results"`
}

// atOnce is how many runs are looked at between two times that what was found is written.
const atOnce = 50

// finds looks at runs and keeps the findings in a file. With earlier findings it looks only at runs outside the file: the rest of an
// interrupted measurement.
func (s source) finds(name string, m made) (f found, err error) {
	path := filepath.Join(s.dir, name)
	if s.again {
		if err := f.read(path, m); err != nil {
			return f, err
		}
	}
	left := f.left(m.Runs)
	if len(left) == 0 {
		return f, nil
	}
	b, err := newBench(s.dir, m)
	if err != nil {
		return f, err
	}
	before, start := f.About, time.Now()
	if f.About, err = aboutNow(m); err != nil {
		return f, err
	}
	if s.again && f.About.Commit != before.Commit {
		return f, fmt.Errorf("%s: %d runs are left, by commit %s, and this is %s", path, len(left), before.Commit, f.About.Commit)
	}
	for part := range slices.Chunk(left, atOnce) {
		results, err := b.results(context.Background(), part, s.workers)
		if err != nil {
			return f, err
		}
		f.Results = append(f.Results, results...)
		f.About.Looking = (before.Looking + time.Since(start)).Round(time.Second)
		f.sort(m.Runs)
		if err := f.write(path); err != nil {
			return f, err
		}
		fmt.Fprintf(os.Stderr, "  %d of %d runs are left\n", len(f.left(m.Runs)), len(m.Runs))
	}
	return f, nil
}

// left are the runs that have no result yet.
func (f *found) left(runs []run) []run {
	have := map[string]bool{}
	for i := range f.Results {
		have[f.Results[i].Run] = true
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return have[r.Name] })
}

// sort puts results in the order of their runs.
func (f *found) sort(runs []run) {
	at := map[string]int{}
	for k, r := range runs {
		at[r.Name] = k
	}
	slices.SortStableFunc(f.Results, func(a, b result) int { return cmp.Compare(at[a.Run], at[b.Run]) })
}

// write replaces a file at once: an interrupt leaves the old one.
func (f *found) write(path string) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", data, 0o666); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

func (f *found) read(path string, m made) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	runs := map[string]run{}
	for _, r := range m.Runs {
		runs[r.Name] = r
	}
	for i := range f.Results {
		r, ok := runs[f.Results[i].Run]
		if !ok {
			return fmt.Errorf("%s: no run %q", path, f.Results[i].Run)
		}
		f.Results[i].run = r
	}
	return nil
}
