// Command bench measures tracediff on bugs that were planted, and writes the page of the result.
//
//	go run ./internal/bench [-python PYTHON] OUT
//	go run ./internal/bench -again OUT
//
// OUT is a folder outside of the tree. Where it holds no runs.json, fixtures/bench.py makes the runs there with the interpreter,
// which has the packages of hooks/python/requirements.txt. The page is docs/bench.md. Names of bugs that nobody has read are
// added to internal/bench/names.txt as "unread": whoever runs the bench says of each whether it is right. With -again the page is
// written from what was found before, by the names as they are read now.
package main

import (
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
	"time"
)

const pagePath = "docs/bench.md"

func main() {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	python := flags.String("python", "python3", "the `INTERPRETER` that has torch and transformers")
	workers := flags.Int("workers", runtime.NumCPU(), "how many runs are looked at at a time")
	again := flags.Bool("again", false, "take what was found before")
	_ = flags.Parse(os.Args[1:]) // it exits by itself
	if flags.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/bench [-python PYTHON] OUT")
		os.Exit(2)
	}
	if err := measure(*python, flags.Arg(0), *workers, *again); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(python, dir string, workers int, again bool) error {
	if _, err := os.Stat("fixtures/bench.py"); err != nil {
		return errors.New("it runs in the root of the repository")
	}
	if _, err := os.Stat(filepath.Join(dir, "runs.json")); errors.Is(err, fs.ErrNotExist) {
		cmd := exec.Command(python, "fixtures/bench.py", dir)
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("fixtures/bench.py: %w", err)
		}
	}
	m, err := readRuns(dir)
	if err != nil {
		return err
	}
	read, err := parseReadings(readNames)
	if err != nil {
		return err
	}
	found, err := finds(dir, m, workers, again)
	if err != nil {
		return err
	}
	results := found.Results
	judged(results, read)
	if err := os.WriteFile(filepath.Join("internal/bench", namesFile), []byte(listing(rekeyed(readNames, results), toRead(results))), 0o666); err != nil {
		return err
	}
	text, err := render(found.About, results)
	if err != nil {
		return err
	}
	return os.WriteFile(pagePath, text, 0o666)
}

// found is what a measurement has shown, and when: found.json.
type found struct {
	About   about    `json:"about"`
	Results []result `json:"results"`
}

// finds looks at all runs, or reads what was found when they were looked at before.
func finds(dir string, m made, workers int, again bool) (f found, err error) {
	path := filepath.Join(dir, "found.json")
	if again {
		return f, f.read(path, m)
	}
	b, err := newBench(dir, m)
	if err != nil {
		return f, err
	}
	start := time.Now()
	if f.Results, err = b.results(context.Background(), m.Runs, workers, progress); err != nil {
		return f, err
	}
	if f.About, err = aboutNow(m, time.Since(start)); err != nil {
		return f, err
	}
	data, err := json.Marshal(f)
	if err != nil {
		return f, err
	}
	return f, os.WriteFile(path, data, 0o666)
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

// progress is a line now and then.
func progress(done, all int) {
	if done%100 == 0 || done == all {
		fmt.Fprintf(os.Stderr, "  %d of %d\n", done, all)
	}
}
