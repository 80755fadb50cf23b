// Command skips reads the events of `go test -json`, prints what `go test` prints, and fails when tests were skipped that
// may not be.
//
//	go test -json ./... | go run ./internal/skips -allow .ci/skips
//	go test -json -run '^TestWide$' ./capture/reference | go run ./internal/skips TestWide
//
// A test that is not named in the list may not be skipped; without a list none may. Tests that are named as arguments have
// to have passed. A run without a test fails.
//
// The list has a test a line, the reason as the test gives it, and comments after #:
//
//	compare TestLive: needs TRACEDIFF_PYTHON: an interpreter
//	? cmd/tracediff TestScripts/fish: needs fish: it reads the script
//
// A test of the list that did not run or was not skipped fails too, so that the list stays true. A line that begins with ?
// is of a test that is skipped on some machines only: it has to be there, skipped or passed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	flags := flag.NewFlagSet("skips", flag.ExitOnError)
	list := flags.String("allow", "", "the `FILE` with the skips that are allowed")
	verbose := flags.Bool("v", false, "print what passing tests print, too")
	_ = flags.Parse(os.Args[1:]) // ExitOnError: Parse ends the program
	var allowed []allowance
	if *list != "" {
		text, err := os.ReadFile(*list)
		if err == nil {
			allowed, err = parse(string(text))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "skips: %s: %v\n", *list, err)
			os.Exit(2)
		}
	}
	r := run{verbose: *verbose, out: os.Stdout, tests: map[test]*result{}}
	err := r.read(os.Stdin)
	wrong := r.judge(allowed, flags.Args())
	if err != nil {
		wrong = append(wrong, fmt.Sprintf("reading the events of go test -json: %v", err))
	}
	for _, w := range wrong {
		fmt.Println("skips:", w)
	}
	if len(wrong) > 0 {
		fmt.Println("FAIL")
		os.Exit(1)
	}
}

const module = "github.com/tracediff/tracediff/"

// test is a test of a package, the module's path left out.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// allowance is a line of the list.
type allowance struct {
	test
	reason string
	maybe  bool // it is skipped on some machines only
}

// parse reads the list.
func parse(text string) ([]allowance, error) {
	var all []allowance
	for n, line := range slices.All(strings.Split(text, "\n")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rest, maybe := strings.CutPrefix(line, "? ")
		where, reason, ok := strings.Cut(rest, ": ")
		pkg, name, both := strings.Cut(where, " ")
		if !ok || !both || !strings.HasPrefix(reason, "needs ") {
			return nil, fmt.Errorf("line %d: %q is not PACKAGE TEST: needs WHAT: WHY", n+1, line)
		}
		a := allowance{test{pkg, name}, reason, maybe}
		if slices.ContainsFunc(all, func(b allowance) bool { return a.test == b.test }) {
			return nil, fmt.Errorf("line %d: %s is listed twice", n+1, a.test)
		}
		all = append(all, a)
	}
	return all, nil
}

// event is a line of `go test -json`.
type event struct{ Action, Package, ImportPath, Test, Output string }

// result is a test's outcome: pass, fail, skip, or "" while the test runs.
type result struct {
	outcome string
	output  strings.Builder
}

// run is what go test has done.
type run struct {
	verbose bool
	out     io.Writer
	tests   map[test]*result
	order   []test // as they began
	failed  []string
}

// read takes the events, and prints the output of go test without -json. A line that is not an event is printed unchanged.
func (r *run) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil || e.Action == "":
			fmt.Fprint(r.out, line)
		default:
			r.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *run) take(e event) {
	pkg := strings.TrimPrefix(e.Package, module)
	if e.Test == "" {
		switch e.Action {
		case "build-output", "output":
			if e.Output != "PASS\n" {
				fmt.Fprint(r.out, e.Output)
			}
		case "fail", "build-fail":
			r.failed = append(r.failed, pkg+strings.TrimPrefix(e.ImportPath, module))
			r.unfinished(pkg)
		}
		return
	}
	t := test{pkg, e.Test}
	res := r.tests[t]
	if res == nil {
		res = &result{}
		r.tests[t], r.order = res, append(r.order, t)
	}
	switch e.Action {
	case "output":
		res.output.WriteString(e.Output)
		if res.outcome == "pass" || res.outcome == "skip" { // a panic counts as output of the test that ended last
			r.show(e.Output)
		}
	case "pass", "fail", "skip":
		res.outcome = e.Action
		if e.Action == "fail" || r.verbose {
			r.print(res)
		}
	}
}

// unfinished prints of the tests of a package that ended without them, by a panic or out of time.
func (r *run) unfinished(pkg string) {
	for _, t := range r.order {
		if res := r.tests[t]; t.pkg == pkg && res.outcome == "" {
			res.outcome = "fail"
			r.print(res)
		}
	}
}

// print leaves out the lines that say when a test began and paused.
func (r *run) print(res *result) {
	for line := range strings.Lines(res.output.String()) {
		r.show(line)
	}
}

func (r *run) show(line string) {
	if !strings.HasPrefix(line, "=== ") {
		fmt.Fprint(r.out, line)
	}
}

// judge returns a run's problems: failures, skips that are not allowed, listed tests that were not skipped, and wanted tests that did not
// pass.
func (r *run) judge(allowed []allowance, wanted []string) []string {
	var wrong []string
	for _, pkg := range r.failed {
		wrong = append(wrong, pkg+" failed")
	}
	if len(r.tests) == 0 {
		wrong = append(wrong, "no test has run")
	}
	skipped := 0
	for _, t := range r.order {
		res := r.tests[t]
		at := slices.IndexFunc(allowed, func(a allowance) bool { return a.test == t })
		switch {
		case res.outcome == "":
			wrong = append(wrong, fmt.Sprintf("%s did not end", t))
		case res.outcome != "skip":
		case at < 0:
			wrong = append(wrong, fmt.Sprintf("%s was skipped, which is not allowed:\n%s", t, strings.TrimSpace(res.output.String())))
		case !strings.Contains(res.output.String(), allowed[at].reason):
			wrong = append(wrong, fmt.Sprintf("%s was skipped for another reason than %q:\n%s", t, allowed[at].reason, strings.TrimSpace(res.output.String())))
		default:
			skipped++
		}
	}
	for _, a := range allowed {
		switch res := r.tests[a.test]; {
		case res == nil:
			wrong = append(wrong, fmt.Sprintf("%s is listed and did not run: take it off the list, or bring the test back", a.test))
		case res.outcome != "skip" && !a.maybe:
			wrong = append(wrong, fmt.Sprintf("%s is listed and was not skipped: take it off the list", a.test))
		}
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(r.order, func(t test) bool { return t.name == name && r.tests[t].outcome == "pass" }) {
			wrong = append(wrong, fmt.Sprintf("%s has to pass here, and did not", name))
		}
	}
	if len(wrong) == 0 {
		fmt.Fprintf(r.out, "%d tests, %d skipped as the list allows\n", len(r.tests), skipped)
	}
	return wrong
}
