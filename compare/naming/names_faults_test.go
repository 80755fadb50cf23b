package naming_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/internal/plantedtest"
	"github.com/tracediff/tracediff/internal/testengine"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// faultNames has the mistakes that the faults of fixtures/plant.py are named by, a line for each role of guilty entries: each was held to the
// fault by reading. A line has the key of the mistake, its place, its proof and its page, and no sentence: see diagnose.Mistake.
const faultNames = "testdata/fault-names.txt"

// placesOf are the layers and passes that have a mistake.
func placesOf(found *diagnose.Finding) string {
	if found.Where == "" {
		return "all"
	}
	return found.Where
}

// TestFaultsInTransformersAreNamed holds the names of faults in transformers to those that were read: what has another one, or one in
// place of none, has to be read again.
func TestFaultsInTransformersAreNamed(t *testing.T) {
	dir := plantedtest.Folder(t)
	models := plantedtest.Models{}
	var lines []string
	named, all := 0, 0
	for _, f := range plantedtest.Read(t, dir) {
		if f.Hidden != "" || f.Rounding != "" {
			continue
		}
		m := models.Open(t, f.Checkpoint)
		trace := testengine.Open(t, filepath.Join(dir, f.File))
		i, err := compare.NewIsolator(trace, m.List, reference.Weights(m.Checkpoint, trace.Manifest().DType), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var roles []string
		for _, e := range f.Guilty {
			role := order.NameOf(e.Name).Role()
			if slices.Contains(roles, role) {
				continue
			}
			roles = append(roles, role)
			start := time.Now()
			found, err := i.Name(t.Context(), e.Name)
			if err != nil {
				t.Fatal(err)
			}
			all++
			text := "unnamed"
			switch {
			case found.Named():
				named++
				text = fmt.Sprintf("%s, in %s, %d of %d elements in %d entries; see %s", found.Key(), placesOf(found), found.Shown, found.Elements, found.Entries, found.Page)
			case found.Explains():
				text = found.Text()
			case found != nil && found.Stopped:
				text += ", stopped"
			case found != nil && found.Description != nil:
				text += ": " + found.Description.String()
			}
			lines = append(lines, fmt.Sprintf("%s/%s %s: %s", f.Name, f.DType, role, text))
			t.Logf("%s (%v)", lines[len(lines)-1], time.Since(start).Round(time.Millisecond))
		}
	}
	t.Logf("%d of %d roles are named", named, all)
	text := strings.Join(lines, "\n") + "\n"
	if pagetest.Update() {
		pagetest.Write(t, faultNames, text)
		return
	}
	want := pagetest.Text(t, faultNames)
	if diff := cmp.Diff(want, withCountsOf(text, want)); diff != "" {
		t.Errorf("names (-read +now):\n%s", diff)
	}
}

// shownOf is how many elements of how many show a name.
var shownOf = regexp.MustCompile(`(\d+) of (\d+) elements in`)

// mostOtherCount is by how many elements a count was another on another processor, where transformers' functions have other last bits.
const mostOtherCount = 2

// withCountsOf is a list of names with the counts of another list, where all else of a line is the same and the counts are nearly so.
func withCountsOf(text, other string) string {
	lines, others := strings.Split(text, "\n"), strings.Split(other, "\n")
	for k := range min(len(lines), len(others)) {
		a, b := shownOf.FindStringSubmatch(lines[k]), shownOf.FindStringSubmatch(others[k])
		if a == nil || b == nil || a[2] != b[2] || shownOf.ReplaceAllString(lines[k], "") != shownOf.ReplaceAllString(others[k], "") {
			continue
		}
		n, _ := strconv.Atoi(a[1])
		m, _ := strconv.Atoi(b[1])
		if max(n-m, m-n) <= mostOtherCount {
			lines[k] = others[k]
		}
	}
	return strings.Join(lines, "\n")
}

// A count that is off by two elements is that of another processor. A count that is off by three, and another name, are not.
func TestCountsOfAnotherProcessor(t *testing.T) {
	const want = "a: k(x=1), in all, 1609 of 1728 elements in 9 entries\n"
	for text, same := range map[string]bool{
		want: true, "a: k(x=1), in all, 1607 of 1728 elements in 9 entries\n": true,
		"a: k(x=1), in all, 1606 of 1728 elements in 9 entries\n": false, "a: k(x=2), in all, 1607 of 1728 elements in 9 entries\n": false, "a: k(x=1), in all, 1607 of 1720 elements in 9 entries\n": false,
	} {
		if got := withCountsOf(text, want) == want; got != same {
			t.Errorf("%q is the same: %t", text, got)
		}
	}
}
