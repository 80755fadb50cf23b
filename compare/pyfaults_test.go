package compare_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/internal/plantedtest"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// isLayout reports whether a fault is a layout: the same model in other numbers, to the last bit of exact arithmetic. A stream that is
// rescaled is none: norms add the same epsilon to it.
func isLayout(f plantedtest.Fault) bool {
	return f.Benign != "" && f.Hidden == "" && !slices.Contains([]string{"stream-rescaled", "scale-in-queries"}, f.Name)
}

// found is what comparing and isolating one faulty run has shown.
type found struct {
	walk   plantedtest.Entry // where the walk stops by accumulated errors; the zero value where it does not
	both   plantedtest.Entry // where it stops when it certifies what it visits
	strict []string          // entries that isolation of the faulty run alone calls wrong, of an engine that rounds as transformers does
	auto   []string          // and of any engine
	layout []string          // entries that isolation calls wrong by themselves and part of a layout
	notes  []string          // of each of strict, the numbers
}

// Every fault in transformers is located: isolation, which sees the faulty run alone, flags the guilty entries and nothing
// else; the walk that certifies stops at the first of them. The walk by accumulated errors alone stops there too where the
// error is beyond its limit, and never before. Where a run cannot show a fault, nothing else is flagged.
func TestFaultsInTransformersAreLocated(t *testing.T) {
	dir := plantedtest.Folder(t)
	faults := plantedtest.Read(t, dir)
	models := plantedtest.Models{}
	results := make([]found, len(faults))
	for i, f := range faults {
		t.Run(f.Name+"/"+f.DType, func(t *testing.T) {
			m := models.Open(t, f.Checkpoint)
			results[i] = locate(t, dir, f, m)
			judgeFault(t, f, results[i], m.List)
		})
	}
	healthy := map[string]bool{}
	for _, f := range faults {
		if !healthy[f.Reference] {
			healthy[f.Reference] = true
			nothingWrong(t, filepath.Join(dir, f.Reference), models[f.Checkpoint])
		}
	}
	docs := pagetest.Text(t, faultDocs)
	for i, table := range faultTables(faults, results) {
		docs = pagetest.Section(t, faultDocs, docs, faultSections[i], "\n"+table)
	}
	if pagetest.Update() {
		pagetest.Write(t, faultDocs, docs)
	}
	enoughFaults(t, faults)
}

func locate(t *testing.T, dir string, f plantedtest.Fault, m plantedtest.Model) found {
	t.Helper()
	faulty, healthy := open(t, filepath.Join(dir, f.File)), open(t, filepath.Join(dir, f.Reference))
	isolator := func(a isolate.Engines) *compare.Isolator {
		i, err := compare.NewIsolator(faulty, m.List, reference.Weights(m.Checkpoint, faulty.Manifest().DType), isolate.Options{Arithmetic: a})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	auto := isolator(isolate.Auto)
	var out found
	out.walk = stop(run(t, faulty, healthy, compare.Options{Order: m.List}))
	out.both = stop(run(t, faulty, healthy, compare.Options{Order: m.List, Certification: compare.Certification{Isolator: auto}}))
	out.auto, _, out.layout = wrongAlone(t, faulty, m.List, auto)
	out.strict, out.notes, _ = wrongAlone(t, faulty, m.List, isolator(isolate.Strict))
	return out
}

// wrongAlone isolates a whole trace by itself and returns the keys of what is wrong, in words how, and of what is
// wrong in a layout.
func wrongAlone(t *testing.T, trace *capture.Trace, list *order.List, i *compare.Isolator) (keys, notes, layout []string) {
	t.Helper()
	r := run(t, trace, nil, compare.Options{Order: list, Certification: compare.Certification{Isolator: i}, All: true})
	if r.Isolation.Certified == 0 {
		t.Error("no entry is certified")
	}
	for _, row := range r.Rows {
		if row.NotIsolated != "" && row.Isolated == nil && row.Facts.Content != compare.NotFinite { // nothing follows from NaN
			t.Errorf("%s is not isolated: %s", row.Key(), row.NotIsolated)
		}
		if row.Verdict == compare.Mismatch {
			keys = append(keys, row.Key())
			notes = append(notes, row.Key()+": "+row.Detail)
		}
		if row.Isolated != nil && row.Isolated.Outcome == isolate.OtherLayout {
			layout = append(layout, row.Key())
		}
	}
	return keys, notes, layout
}

// nothingWrong isolates a healthy run.
func nothingWrong(t *testing.T, path string, m plantedtest.Model) {
	t.Helper()
	trace := open(t, path)
	i, err := compare.NewIsolator(trace, m.List, reference.Weights(m.Checkpoint, trace.Manifest().DType), isolate.Options{Arithmetic: isolate.Strict})
	if err != nil {
		t.Fatal(err)
	}
	if keys, notes, _ := wrongAlone(t, trace, m.List, i); len(keys) > 0 {
		t.Errorf("%s is healthy:\n%s", path, strings.Join(notes, "\n"))
	}
}

// stop is where a walk stops.
func stop(r *compare.Result) plantedtest.Entry {
	if r.Divergence == nil {
		return plantedtest.Entry{}
	}
	return plantedtest.Entry{Pass: r.Divergence.Row.Pass, Name: r.Divergence.Row.Name}
}

func judgeFault(t *testing.T, f plantedtest.Fault, got found, list *order.List) {
	t.Helper()
	guilty := f.GuiltyKeys()
	if f.Hidden != "" {
		for _, key := range slices.Concat(got.strict, got.auto, stops(got.walk, got.both)) {
			if !slices.Contains(guilty, key) {
				t.Errorf("%s is flagged; it is healthy", key)
			}
		}
		return
	}
	if isLayout(f) {
		if diff := cmp.Diff(guilty, got.layout); diff != "" || len(got.strict)+len(got.auto) > 0 || got.both != (plantedtest.Entry{}) {
			t.Errorf("it is no mistake, and flagged: %v, %v; the walk that certifies stops at %q; layout (-want +got):\n%s", got.strict, got.auto, got.both.Key(), diff)
		}
		return
	}
	if diff := cmp.Diff(guilty, got.strict); diff != "" {
		t.Errorf("isolation in strict arithmetic (-want +got):\n%s%s", diff, strings.Join(got.notes, "\n"))
	}
	if got.walk != (plantedtest.Entry{}) && before(list, got.walk, f.Guilty[0]) {
		t.Errorf("the walk stops at %s, before %s", got.walk.Key(), guilty[0])
	}
	if f.Rounding != "" { // no error beyond what some engine's rounding gives: nothing else may be accused in its place
		accused := slices.Clone(got.auto)
		if got.both != got.walk { // what is UNIDENTIFIED is left to the limits, behind it too
			accused = append(accused, stops(got.both)...)
		}
		for _, key := range accused {
			if !slices.Contains(guilty, key) {
				t.Errorf("%s is flagged; it is healthy", key)
			}
		}
		return
	}
	if diff := cmp.Diff(guilty, got.auto); diff != "" {
		t.Errorf("isolation (-want +got):\n%s", diff)
	}
	if got.both != f.Guilty[0] {
		t.Errorf("the walk that certifies stops at %q, want %s", got.both.Key(), guilty[0])
	}
}

// stops are the keys of where walks stop.
func stops(at ...plantedtest.Entry) (keys []string) {
	for _, e := range at {
		if e != (plantedtest.Entry{}) {
			keys = append(keys, e.Key())
		}
	}
	return keys
}

// before reports whether a comes first in a run.
func before(list *order.List, a, b plantedtest.Entry) bool {
	return a.Pass < b.Pass || a.Pass == b.Pass && list.Index(a.Name) < list.Index(b.Name)
}

const faultDocs = "../docs/results/faults.md"

// faultSections are the tables of docs/results/faults.md: of faults that any engine's run shows, of those that some engine's rounding could
// explain, of those that a run cannot show, and of layouts, which are no mistakes.
var faultSections = []string{"located", "like rounding", "hidden", "layouts"}

// faultTables are these tables, a line for each fault.
func faultTables(faults []plantedtest.Fault, results []found) (tables []string) {
	lines := make([][]string, len(faultSections))
	for i := 0; i < len(faults); {
		f, cells, table := faults[i], map[string][2]string{}, 0
		for ; i < len(faults) && faults[i].Name == f.Name; i++ {
			cells[faults[i].DType] = [2]string{whereOf(faults[i], results[i].walk), shareOf(faults[i], results[i])}
			switch {
			case faults[i].Hidden != "":
				table, f.Hidden = 2, ": "+faults[i].Hidden
			case faults[i].Rounding != "":
				table, f.Hidden = 1, ": "+faults[i].Rounding
			case isLayout(f):
				table = 3
			}
		}
		line := fmt.Sprintf("| %s | %s | %s | %s |", f.Name, f.Checkpoint, f.Op, f.Guilty[0].Key())
		for _, dtype := range []string{"float32", "bfloat16"} {
			line += fmt.Sprintf(" %s | %s |", cells[dtype][0], cells[dtype][1])
		}
		lines[table] = append(lines[table], line+" "+strings.TrimSuffix(f.What, ".")+f.Hidden+" |")
	}
	for _, table := range lines {
		tables = append(tables, faultHead+strings.Join(table, "\n")+"\n")
	}
	return tables
}

const faultHead = "| fault | checkpoint | op | first guilty entry | walk, float32 | isolation | walk, bfloat16 | isolation | what |\n|---|---|---|---|---|---|---|---|---|\n"

// TestFaultsInTransformersAreListed holds the tables of docs/results/faults.md to the faults that are defined, and to what they are for: every fault has its line, and where
// it can be seen isolation flags all of its guilty entries, in many places and kinds of operation.
func TestFaultsInTransformersAreListed(t *testing.T) {
	docs := pagetest.Text(t, faultDocs)
	listed, entries, ops := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, name := range faultSections {
		_, section, _ := strings.Cut(docs, "<!-- "+name+" -->\n")
		section, _, ok := strings.Cut(section, "<!-- end of "+name+" -->")
		if !ok || !strings.Contains(section, faultHead) {
			t.Fatalf("%s has no table of those that are %s", faultDocs, name)
		}
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(line, "| \n"), " | ")
			if len(cells) < 8 || cells[0] == "fault" {
				continue
			}
			listed[cells[0]] = true
			if i > 0 {
				continue
			}
			entries[cells[1]+cells[3]], ops[cells[2]] = true, true
			for _, share := range []string{cells[5], cells[7]} {
				var flagged, guilty int
				if share == "" && cells[5] != cells[7] { // a mistake in the other dtype alone
					continue
				}
				if _, err := fmt.Sscanf(share, "%d of %d", &flagged, &guilty); err != nil || flagged != guilty || strings.Contains(share, "strict") {
					t.Errorf("%s is listed as located, and isolation flags %q", cells[0], share)
				}
			}
		}
	}
	for _, names := range plantedtest.Headings(t) {
		for _, name := range names {
			if !listed[name] {
				t.Errorf("%s does not list %s", faultDocs, name)
			}
			delete(listed, name)
		}
	}
	for name := range listed {
		t.Errorf("%s lists %s, which is no fault", faultDocs, name)
	}
	if len(entries) < 25 || len(ops) < 12 {
		t.Errorf("%d first entries in %d kinds of operation are listed as located", len(entries), len(ops))
	}
}

// where says where the walk stops, seen from the first guilty entry.
func whereOf(f plantedtest.Fault, at plantedtest.Entry) string {
	switch at {
	case plantedtest.Entry{}:
		return "–"
	case f.Guilty[0]:
		return "there"
	}
	return at.Key()
}

// share says how many of the guilty entries isolation flags; where the arithmetics differ, that of any engine first.
func shareOf(f plantedtest.Fault, got found) string {
	if isLayout(f) {
		return fmt.Sprintf("%d of %d", len(got.layout), len(f.Guilty))
	}
	text := fmt.Sprintf("%d of %d", len(got.auto), len(f.Guilty))
	if len(got.strict) != len(got.auto) {
		text += fmt.Sprintf(", strict %d", len(got.strict))
	}
	return text
}

// enoughFaults holds the set of faults to what it is for: many places, many kinds of operation, both dtypes, the prompt
// and the steps after it.
func enoughFaults(t *testing.T, faults []plantedtest.Fault) {
	t.Helper()
	entries, ops, dtypes, passes := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[int]bool{}
	for _, f := range faults {
		if f.Hidden == "" {
			entries[f.Checkpoint+" "+f.Guilty[0].Name], ops[f.Op], dtypes[f.DType], passes[f.Guilty[0].Pass] = true, true, true, true
		}
	}
	if len(entries) < 25 || len(ops) < 12 || len(dtypes) < 2 || len(passes) < 2 {
		t.Errorf("%d first entries, %d kinds of operation %v, dtypes %v, passes %v",
			len(entries), len(ops), slices.Sorted(maps.Keys(ops)), dtypes, passes)
	}
}
