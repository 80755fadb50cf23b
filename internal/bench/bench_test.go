package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare/diagnose"
)

var update = flag.Bool("update", false, "write what is measured in place of what is expected")

// seenIn looks at all runs of a folder.
func seenIn(t *testing.T, dir string) []result {
	t.Helper()
	m, err := readRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseReadings(readNames)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	results, err := b.results(t.Context(), m.Runs, runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	judged(results, read)
	return results
}

// kept are the results of the runs that are kept in fixtures/bench. They are looked at once.
func kept(t *testing.T) []result {
	t.Helper()
	keptOnce.Do(func() {
		keptResults = seenIn(t, "../../fixtures/bench")
	})
	if len(keptResults) == 0 {
		t.Fatal("another test has failed to look at the runs")
	}
	return keptResults
}

var (
	keptOnce    sync.Once
	keptResults []result
)

// sound holds results to what no measurement may show: a healthy entry that is accused, a fault that is not found, a wrong name, or
// one that nobody has read.
func sound(t *testing.T, results []result) {
	t.Helper()
	faults, controls := 0, 0
	for i := range results {
		r := &results[i]
		at := fmt.Sprintf("%s at level %d", r.Name, r.Level)
		for _, key := range r.Accused {
			t.Errorf("%s: %s is a mismatch, and it is right", at, key)
		}
		if len(r.Faults) == 0 {
			controls++
			if len(r.Names) > 0 {
				t.Errorf("%s: a name, and nothing was planted", at)
			}
			continue
		}
		faults++
		if !r.Located && !r.Invisible && !r.isProven() && !r.benign() && r.excused() == "" {
			t.Errorf("%s: not located", at)
		}
		for _, n := range r.Names {
			if n.verdict == wrong || n.verdict == unread {
				t.Errorf("%s: %s is %s: %s; its line of names.txt: right | %s | %s", at, n.Role, n.verdict, n.Finding.Text(), pairName(r.Faults), n.Finding.Key())
			}
		}
	}
	if faults < 20 || controls < 4 {
		t.Errorf("%d runs with faults and %d without are no sample", faults, controls)
	}
}

// TestSample holds the bench to a few runs of it that are kept in fixtures/bench: what is found of each, and by which name.
func TestSample(t *testing.T) {
	results := kept(t)
	sound(t, results)
	var out strings.Builder
	for i := range results {
		r := &results[i]
		fmt.Fprintf(&out, "%s level %d: %s\n", r.Name, r.Level, r.outcome())
		for _, n := range r.Names {
			if isName(n.Finding) {
				fmt.Fprintf(&out, "  %s: %s: %s\n", n.Role, n.verdict, n.Finding.Text())
			} else {
				fmt.Fprintf(&out, "  %s: unnamed\n", n.Role)
			}
			if n.asked() && isName(n.Other) {
				fmt.Fprintf(&out, "    without %s: %s: %s\n", n.Finding.Class, n.otherVerdict, n.Other.Text())
			}
		}
	}
	golden(t, "testdata/sample.txt", out.String())
}

// Of a change that cancels there is nothing to locate: where the comparison with transformers has no mismatch, the run is silent. One
// that has a mismatch, and a fault that does not cancel, are not.
func TestOutcomeOfChangesThatCancel(t *testing.T) {
	for _, c := range []struct {
		benign string
		silent bool
		want   string
	}{
		{"attention sees differences of positions alone", true, "silent"},
		{"attention sees differences of positions alone", false, "**not located**"},
		{"", true, "**not located**"},
	} {
		r := result{run: run{Faults: []fault{{Name: "shifted", Benign: c.benign}}}, Silent: c.silent}
		if got := r.outcome(); got != c.want {
			t.Errorf("benign %q, silent %t: %s, want %s", c.benign, c.silent, got, c.want)
		}
	}
}

func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

// runsVariable names a folder that fixtures/bench.py has written.
const runsVariable = "TRACEDIFF_BENCH"

// TestDrawnRuns holds the bench to runs that were made now.
func TestDrawnRuns(t *testing.T) {
	dir, set := os.LookupEnv(runsVariable)
	if !set {
		t.Skipf("needs %s: the folder that python fixtures/bench.py makes", runsVariable)
	}
	results := seenIn(t, dir)
	sound(t, results)
	for i := range results {
		r := &results[i]
		for _, n := range r.Names {
			if n.asked() && (n.otherVerdict == wrong || n.otherVerdict == unread) {
				t.Logf("%s at level %d: %s, where the class of its name is not tried, is said to be: %s", r.Name, r.Level, n.Role, n.Other.Text())
			}
		}
	}
	t.Log(goalTable(results))
}

// Whatever has a name in the bench was read.
func TestNamesAreRead(t *testing.T) {
	all, err := parseReadings(readNames)
	if err != nil {
		t.Fatal(err)
	}
	faults, seen := plantedFaults(t, true), map[string]bool{}
	for name, list := range all {
		for _, of := range strings.Split(name, "+") {
			if !faults[of] {
				t.Errorf("%s has names of %s, which is no fault", namesFile, of)
			}
		}
		for _, r := range list {
			_, rest, _ := strings.Cut(r.String(), " | ")
			if r.verdict == unread || seen[rest] {
				t.Errorf("%s: nobody has read, or twice there is: %s", namesFile, r)
			}
			seen[rest] = true
		}
	}
	if len(all) < 100 {
		t.Errorf("%d faults have names", len(all))
	}
}

// definition is a fault in a module of fixtures/faults: its heading in docs/mistakes.md, its half, and the function under its decorator.
var definition = regexp.MustCompile(`(?m)^@fault\(\s*"([^"]*)",(?s:.*?)\bhalf=(\d+)\b(?s:.*?)^def (\w+)\(`)

// frozen is a half in fixtures/faults/halves.py, and the commit at which the edits were frozen for it.
var frozen = regexp.MustCompile(`(?m)^    (\d+): "(\w*)",$`)

// defined are the faults that are defined in fixtures: heading, half and name of each.
func defined(t *testing.T) (faults [][3]string) {
	t.Helper()
	files, err := filepath.Glob("../../fixtures/faults/*.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := definition.FindAllSubmatch(data, -1)
		if len(found) != bytes.Count(data, []byte("\n@fault(")) {
			t.Fatalf("%s: a fault without a heading or a half", file)
		}
		for _, m := range found {
			faults = append(faults, [3]string{string(m[1]), string(m[2]), strings.ReplaceAll(string(m[3]), "_", "-")})
		}
	}
	return faults
}

// plantedFaults are the faults that are defined in fixtures: those of halves 3 to 10 where the edits are frozen, or where all are asked for.
func plantedFaults(t *testing.T, all bool) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../fixtures/faults/halves.py")
	if err != nil {
		t.Fatal(err)
	}
	waiting := map[string]bool{}
	for _, m := range frozen.FindAllSubmatch(data, -1) {
		waiting[string(m[1])] = len(m[2]) == 0
	}
	if len(waiting) < 6 {
		t.Fatalf("fixtures/faults/halves.py has %d lines %s", len(waiting), frozen)
	}
	faults := map[string]bool{}
	for _, f := range defined(t) {
		if all || !waiting[f[1]] {
			faults[f[2]] = true
		}
	}
	return faults
}

// halfRow is a half in the table of fixtures/README.md, with its count of faults.
var halfRow = regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| `)

var pageHeading = regexp.MustCompile(`(?m)^### (.*)$`)

// A fault of the later halves stands under a heading of docs/mistakes.md, or under none.
func TestHeadingsOfFaults(t *testing.T) {
	page, err := os.ReadFile("../../docs/mistakes.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{"": true}
	for _, m := range pageHeading.FindAllSubmatch(page, -1) {
		headings[strings.NewReplacer(" ", "-", "'", "", ",", "").Replace(strings.ToLower(string(m[1])))] = true
	}
	found := 0
	for _, f := range defined(t) {
		if f[1] == "1" {
			continue
		}
		if found++; !headings[f[0]] {
			t.Errorf("%s: docs/mistakes.md has no heading %q", f[2], f[0])
		}
	}
	if found < 480 {
		t.Errorf("%d faults", found)
	}
}

// TestPageHasEveryFault holds docs/results/bench.md to the faults that are defined: a measurement is of all of them.
func TestPageHasEveryFault(t *testing.T) {
	page, err := os.ReadFile("../../" + pagePath)
	if err != nil {
		t.Fatal(err)
	}
	faults := plantedFaults(t, false)
	for name := range faults {
		if !bytes.Contains(page, []byte("\n| "+name+" |")) {
			t.Errorf("%s has no line for %s: it was not measured", pagePath, name)
		}
	}
	if len(faults) < 280 {
		t.Errorf("%d faults", len(faults))
	}
	// The README of the fixtures counts the faults of each half: no fault is left out of the measured halves by chance.
	readme, err := os.ReadFile("../../fixtures/README.md")
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	for _, m := range halfRow.FindAllSubmatch(readme, -1) {
		counted[string(m[1])], err = strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
	}
	measured, all := map[string]int{}, map[string]int{}
	for _, f := range defined(t) {
		if all[f[1]]++; faults[f[2]] {
			measured[f[1]]++
		}
	}
	if !maps.Equal(all, counted) {
		t.Errorf("the halves have %v faults, and fixtures/README.md says %v", all, counted)
	}
	for half, n := range measured {
		if n != all[half] {
			t.Errorf("%d of %d faults of half %s are measured", n, all[half], half)
		}
	}
}

// A name is right if it was read; in other digits if it is the same edit and has the fault's number; of two faults if it is one's.
func TestJudge(t *testing.T) {
	read, err := parseReadings(`
right | eps | number.value(place=rms_norm.eps,of=epsilon,x=1e-05)
wrong | eps | factor.inserted(place=rms_norm,x=1.01)
words | swap | operand.other(place=add,by=b)
right | eps+swap | elements.reversed(place=add)
`)
	if err != nil {
		t.Fatal(err)
	}
	eps := fault{Name: "eps", Number: map[string]float64{"epsilon": 1e-5}}
	swap, other := fault{Name: "swap"}, fault{Name: "other"}
	named := func(m diagnose.Mistake) *diagnose.Finding {
		return &diagnose.Finding{Name: diagnose.Name{What: "words", Mistake: m}}
	}
	x := func(v float64) diagnose.Number { return diagnose.Number{Value: v, Has: true} }
	epsilon := func(place string, v float64) *diagnose.Finding {
		return named(diagnose.Mistake{Kind: "number.value", Place: place, Of: diagnose.Term{Kind: diagnose.Epsilon}, X: x(v)})
	}
	reads := func(name string) *diagnose.Finding {
		return named(diagnose.Mistake{Kind: "operand.other", Place: "add", By: diagnose.Term{Kind: "b", Name: name}})
	}
	factor := named(diagnose.Mistake{Kind: "factor.inserted", Place: "rms_norm", X: x(1.01)})
	for _, c := range []struct {
		name   string
		faults []fault
		f      *diagnose.Finding
		want   verdict
	}{
		{"read", []fault{swap}, reads(""), words},
		{"read as wrong", []fault{eps}, factor, wrong},
		{"the number of the fault", []fault{eps}, epsilon("rms_norm.eps", 1.00001e-5), right},
		{"another number", []fault{eps}, epsilon("rms_norm.eps", 2e-5), unread},
		{"another step", []fault{eps}, epsilon("scale.by", 1e-5), unread},
		{"a step with a longer name", []fault{eps}, epsilon("rms_norm.epsilon", 1e-5), unread},
		{"another kind", []fault{eps}, named(diagnose.Mistake{Kind: "number.rounded", Place: "rms_norm.eps", X: x(1e-5)}), unread},
		{"a kind with a longer name", []fault{eps}, named(diagnose.Mistake{Kind: "number.values", Place: "rms_norm.eps", X: x(1e-5)}), unread},
		{"without a number", []fault{swap}, reads("c"), unread},
		{"of another fault", []fault{other}, reads(""), unread},
		{"of the second of two", []fault{other, eps}, epsilon("rms_norm.eps", 1e-5), right},
		{"read for a pair", []fault{eps, swap}, named(diagnose.Mistake{Kind: "elements.reversed", Place: "add"}), right},
		{"wrong for one alone", []fault{eps, other}, factor, unread},
	} {
		if got := read.judge(c.faults, c.f); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What nobody has read is added once, and what was read stays.
func TestListing(t *testing.T) {
	old := "# read\nright | a | one\n"
	add := []reading{{verdict: unread, fault: "a", key: "one"}, {verdict: unread, fault: "b", key: "two"}, {verdict: unread, fault: "b", key: "two"}}
	want := old + "unread | b | two\n"
	if diff := cmp.Diff(want, listing(old, add)); diff != "" {
		t.Error(diff)
	}
}
