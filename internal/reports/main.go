// Command reports compares the reports of two versions of tracediff, field by field: run the command before and after a change that must
// leave the reports unchanged.
//
//	go run ./internal/reports -out BEFORE [-bench OUT] [-models DIR]                  # at the commit before
//	go run ./internal/reports -out AFTER -against BEFORE [-bench OUT] [-models DIR]   # after each step
//
// Run the command in the root of the repository. The command builds tracediff and certifies each trace of fixtures without a reference; the
// command compares traces of other engines with transformers too, and two pairs of runs as A and B. A folder gets the JSON report, the exit status and the output of each
// comparison. With -against the command lists the fields that differ between reports of the same name, and a difference makes the exit
// status 1. BEFORE may have additional reports.
//
// -bench adds a sample of the runs of the bug bench that internal/bench made in OUT, spread over halves 1 to 5, dtypes and engines; -models
// adds the recorded architectures with planted bugs that fixtures/recorded_faults.py made in DIR. -cores sets the cores of each comparison:
// a report that is written on one core and read against one of two cores holds results to any number of cores. -shuffled builds a program that
// asks for the forms of a trace in an order drawn with a seed, before the walk asks: a report must not depend on the order.
//
//	go run ./internal/reports -render BEFORE -out TEXTS                   # at the commit before a change of the reports themselves
//	go run ./internal/reports -render BEFORE -out NEW -against TEXTS      # after each step
//
// -render compares no traces: the command writes each JSON report in a folder in every other format. With -against the command lists the
// files with different bytes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracediff/tracediff/internal/cores"
)

func main() {
	flags := flag.NewFlagSet("reports", flag.ExitOnError)
	var r runner
	var bench, models, against, from string
	sample := 60
	flags.StringVar(&r.out, "out", "", "the `FOLDER` that reports are written into")
	flags.StringVar(&against, "against", "", "a `FOLDER` of reports to compare with")
	flags.StringVar(&from, "render", "", "a `FOLDER` of JSON reports to write in every other format, in place of comparisons")
	flags.StringVar(&bench, "bench", "", "the `FOLDER` of the runs of the bug bench")
	flags.IntVar(&sample, "sample", sample, "how many `RUNS` of the bench")
	flags.StringVar(&models, "models", "", "the `FOLDER` of recorded architectures")
	flags.StringVar(&r.program, "program", "", "a `FILE` to run instead of building the program")
	flags.IntVar(&r.cores, "cores", 2, "the `CORES` of a comparison")
	flags.Uint64Var(&r.seed, "shuffled", 0, "the `SEED` of the order in which the forms of a trace are asked for; 0 for the order of the walk")
	_ = flags.Parse(os.Args[1:]) // ExitOnError: Parse ends the program
	if r.out == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/reports -out FOLDER [-against FOLDER] [-bench OUT] [-models DIR] [-cores N] [-shuffled SEED]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &r, from, against, func() ([]reportCase, error) { return allCases(bench, sample, models) }); err != nil {
		fmt.Fprintln(os.Stderr, "reports:", err)
		os.Exit(1)
	}
}

// run writes reports into the folder of r: new reports of the cases in list, or the reports in folder from in other formats. If against is
// not empty, run compares the reports with the reports in folder against.
func run(ctx context.Context, r *runner, from, against string, list func() ([]reportCase, error)) error {
	if from != "" {
		if err := render(from, r.out); err != nil || against == "" {
			return err
		}
		return compareFiles(os.Stdout, against, r.out)
	}
	cases, err := list()
	if err != nil {
		return err
	}
	if err := r.run(ctx, cases); err != nil || against == "" {
		return err
	}
	return compareFolders(os.Stdout, against, r.out, cases)
}

// outcome is a comparison's output and exit status.
type outcome struct {
	Args   []string        `json:"args"`
	Exit   int             `json:"exit"`
	Output []string        `json:"output"` // by line
	JSON   json.RawMessage `json:"json"`
}

// runner runs comparisons.
type runner struct {
	program, out string
	cores        int
	seed         uint64 // of the order in which forms are asked for; 0 for the order of the walk
}

// run writes the report of each case.
func (r *runner) run(ctx context.Context, cases []reportCase) error {
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	room, err := os.MkdirTemp("", "reports")
	if err != nil {
		return err
	}
	defer os.RemoveAll(room)
	if r.program == "" {
		r.program = filepath.Join(room, "tracediff")
		build := []string{"build", "-o", r.program}
		if r.seed > 0 {
			build = append(build, "-tags", "shuffled")
		}
		if out, err := exec.CommandContext(ctx, "go", append(build, "./cmd/tracediff")...).CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	start := time.Now()
	errs := make([]error, len(cases))
	cores.By(max(1, 2/r.cores), len(cases), func() func(int) {
		return func(k int) { errs[k] = r.one(ctx, cases[k], filepath.Join(room, fmt.Sprint(k))) }
	})
	fmt.Fprintf(os.Stderr, "%d reports in %s, %d cores each\n", len(cases), time.Since(start).Round(time.Second), r.cores)
	return errors.Join(errs...)
}

// one writes the report of a case. Each comparison has its own cache folder, so that it remembers no other comparison.
func (r *runner) one(ctx context.Context, c reportCase, room string) error {
	if err := os.MkdirAll(room, 0o777); err != nil {
		return err
	}
	defer os.RemoveAll(room)
	path := filepath.Join(room, "report.json")
	cmd := exec.CommandContext(ctx, r.program, c.command(path)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(room, "cache"), "NO_COLOR=1", fmt.Sprintf("GOMAXPROCS=%d", r.cores), fmt.Sprintf("TRACEDIFF_SHUFFLED=%d", r.seed))
	var printed, failed bytes.Buffer // standard error has progress, which depends on time
	cmd.Stdout, cmd.Stderr = &printed, &failed
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		return errors.Join(err, ctx.Err())
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if text == nil { // it was not compared
		text = []byte("null")
		if printed.Len() == 0 {
			printed = failed
		}
	}
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(printed.String(), room, "ROOM"), "\n"), "\n")
	data, err := json.MarshalIndent(outcome{c.args, cmd.ProcessState.ExitCode(), lines, text}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, c.name+".json"), data, 0o666)
}
