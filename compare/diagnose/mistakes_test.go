package diagnose_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/internal/plantedtest"
)

const mistakesPage = "../../docs/mistakes.md"

var (
	notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
	inBackticks = regexp.MustCompile("`([^`]+)`")
	pageLink    = regexp.MustCompile(`\]\(#([^)]*)\)`)
)

// anchorOf is what a heading becomes in a link.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// mistakeEntry is a mistake of the page: the lists of its items, in which a line that is indented goes on with the one before it.
type mistakeEntry struct {
	anchor string
	items  map[string]string // by what is set in bold
}

// mistakesOn returns the mistakes of the page, and the anchors of all its headings.
func mistakesOn(page string) (entries []mistakeEntry, anchors []string) {
	var item string
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		heading := strings.TrimLeft(line, "#")
		switch {
		case heading != line:
			anchors = append(anchors, anchorOf(strings.TrimSpace(heading)))
			item = ""
			if strings.HasPrefix(line, "### ") {
				entries = append(entries, mistakeEntry{anchors[len(anchors)-1], map[string]string{}})
			}
		case strings.HasPrefix(line, "- **") && len(entries) > 0:
			var text string
			item, text, _ = strings.Cut(strings.TrimPrefix(line, "- **"), "**: ")
			entries[len(entries)-1].items[item] = text
		case strings.HasPrefix(line, "  ") && item != "":
			entries[len(entries)-1].items[item] += " " + strings.TrimSpace(line)
		}
	}
	return entries, anchors
}

// The page of the usual mistakes holds what it says: its headings, to which the program and the faults point, are there once and are
// linked rightly; each mistake is complete; the faults under it are those that name it; a field is one of a checkpoint here, or is
// listed as another family's. With -update the lists of faults are written.
func TestTheUsualMistakesAreThere(t *testing.T) {
	page := pagetest.Text(t, mistakesPage)
	entries, anchors := mistakesOn(page)
	if len(entries) < 60 {
		t.Errorf("%d mistakes", len(entries))
	}
	for i, anchor := range anchors {
		if slices.Contains(anchors[:i], anchor) {
			t.Errorf("two headings have the anchor %q", anchor)
		}
	}
	for _, m := range pageLink.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(anchors, m[1]) {
			t.Errorf("no heading has the anchor %q", m[1])
		}
	}
	faults := plantedtest.Headings(t)
	for _, e := range entries {
		for _, item := range []string{"Numbers", "Cause", "Fix"} {
			if e.items[item] == "" {
				t.Errorf("%s lacks %s", e.anchor, item)
			}
		}
		want := faults[e.anchor]
		delete(faults, e.anchor)
		switch {
		case len(want) == 0 && e.items["Not planted"] != "" && e.items["Planted"] == "":
		case len(want) == 0 || e.items["Planted"] == "":
			t.Errorf("%s: planted are %q, and the page has %q", e.anchor, want, e.items["Planted"])
		case e.items["Planted"] != quoted(want):
			if pagetest.Update() {
				page = strings.Replace(page, plantedLine(e.items["Planted"]), plantedLine(quoted(want)), 1)
				continue
			}
			t.Errorf("%s: planted are\n%s\nand the page has\n%s", e.anchor, quoted(want), e.items["Planted"])
		}
	}
	for anchor, names := range faults {
		t.Errorf("the page has no heading %q, that of %q", anchor, names)
	}
	if pagetest.Update() {
		pagetest.Write(t, mistakesPage, page)
	}
	checkFields(t, page, entries)
}

func quoted(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

func plantedLine(list string) string { return "- **Planted**: " + list + "\n" }

// checkFields holds the fields of the page to the configurations of the fixtures, and to its own list of other families'.
func checkFields(t *testing.T, page string, entries []mistakeEntry) {
	t.Helper()
	known, others := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob("../../fixtures/*/config.json")
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var config any
		if err := json.Unmarshal([]byte(pagetest.Text(t, file)), &config); err != nil {
			t.Fatal(file, err)
		}
		addFields(known, config)
	}
	_, table, _ := strings.Cut(page, "\n## Fields of other families\n")
	for line := range strings.Lines(table) {
		if m := inBackticks.FindStringSubmatch(line); m != nil {
			others[m[1]] = false
			if known[m[1]] {
				t.Errorf("%s is a field of a checkpoint here, and is listed as another family's", m[1])
			}
		}
	}
	for _, e := range entries {
		own, foreign, _ := strings.Cut(e.items["Fields"], "of other families ")
		foreign = strings.TrimPrefix(foreign, "and older files ")
		for _, m := range inBackticks.FindAllStringSubmatch(own, -1) {
			if !known[m[1]] {
				t.Errorf("%s: no checkpoint has the field %s", e.anchor, m[1])
			}
		}
		for _, m := range inBackticks.FindAllStringSubmatch(foreign, -1) {
			if _, listed := others[m[1]]; !listed {
				t.Errorf("%s: %s is not in the list of other families' fields", e.anchor, m[1])
			}
			others[m[1]] = true
		}
	}
	for field, used := range others {
		if !used {
			t.Errorf("%s is listed, and no mistake has it", field)
		}
	}
}

// addFields adds the names of all fields of a JSON value.
func addFields(names map[string]bool, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			names[name] = true
			addFields(names, inner)
		}
	case []any:
		for _, inner := range v {
			addFields(names, inner)
		}
	}
}
