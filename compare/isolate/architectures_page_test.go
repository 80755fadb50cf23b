package isolate_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"
)

const (
	modelsPage       = "../../docs/results/models.md"
	isolatedHeading  = "\n## Recorded runs, isolated\n"
	followingHeading = "\n## Faults planted in recorded models\n"
)

// sums are what isolation says of both dtypes of an architecture, or of all architectures.
type sums struct {
	entries, exact, rounding, wrong, unverified, lifted int
	elements, unequal, outside                          int64
}

func (s *sums) add(r *run) {
	for _, n := range r.unverified {
		s.unverified += n
	}
	s.entries, s.exact, s.rounding, s.wrong, s.lifted = s.entries+r.entries, s.exact+r.exact, s.rounding+r.rounding, s.wrong+len(r.wrong), s.lifted+r.lifted
	s.elements, s.unequal, s.outside = s.elements+r.elements, s.unequal+r.unequal, s.outside+r.outside
}

func (s *sums) line(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %.0f %% | %d | %.1f %% | %d |\n", name, s.entries, s.exact, s.rounding, s.wrong, s.unverified,
		100*float64(s.lifted)/float64(max(1, s.entries)), s.elements, 100-100*float64(s.unequal)/float64(max(1, s.elements)), s.outside)
}

// flaw is why not all entries of a run are right; empty where they are.
func (r *run) flaw() string {
	var all sums
	all.add(r)
	switch why := slices.Sorted(maps.Keys(r.unverified)); {
	case len(r.wrong) > 0 || r.outside > 0:
		return "wrong: " + strings.Join(r.wrong, ", ")
	case len(r.open) > 0:
		return "nothing bounds " + first(r.open)
	case 50*all.unverified > r.entries:
		return "UNVERIFIED: " + first(why)
	}
	return ""
}

func first(list []string) string {
	if len(list) > 1 {
		return fmt.Sprintf("%s; and %d more", list[0], len(list)-1)
	}
	return list[0]
}

// TestArchitectures says what isolation finds in recorded runs: in each folder of $TRACEDIFF_ARCHITECTURES, which fixtures/recorded.py
// makes, by the program beside the trace, in transformers' own arithmetic. A run that is not right, of which nothing is known in more than a
// fiftieth of its entries, or that cannot be read is an error, which -update writes to docs/results/models.md with the table.
func TestArchitectures(t *testing.T) {
	dir := os.Getenv("TRACEDIFF_ARCHITECTURES")
	if dir == "" {
		t.Skip("needs TRACEDIFF_ARCHITECTURES: the folder that python fixtures/recorded.py makes")
	}
	folders, err := filepath.Glob(filepath.Join(dir, "*", "done"))
	if err != nil || len(folders) == 0 {
		t.Fatal("no recorded runs in ", dir, err)
	}
	var lines, flaws strings.Builder
	var all sums
	good := 0
	counts, in := map[string]int{}, map[string][]string{}
	for _, done := range folders {
		folder := filepath.Dir(done)
		name := filepath.Base(folder)
		var both sums
		flaw := ""
		for _, dtype := range []string{"bfloat16", "float32"} {
			r, err := certified(folder, dtype, filepath.Join(folder, dtype+".safetensors"), 0)
			why := ""
			if err != nil {
				why = strings.ReplaceAll(err.Error(), folder+string(filepath.Separator), "")
			} else {
				both.add(r)
				all.add(r)
				for _, steps := range r.unlifted {
					if counts[steps]++; !slices.Contains(in[steps], name) {
						in[steps] = append(in[steps], name)
					}
				}
				why = r.flaw()
			}
			if why != "" && flaw == "" {
				flaw = fmt.Sprintf("- %s, %s: %s\n", name, dtype, why)
			}
		}
		lines.WriteString(both.line(name))
		if flaws.WriteString(flaw); flaw == "" {
			good++
		} else if !pagetest.Update() {
			t.Error(flaw)
		}
	}
	text := fmt.Sprintf("%d of %d recorded architectures have every entry EXACT or ROUNDING in both dtypes, no element outside its bound and at most 2 %% "+
		"UNVERIFIED.\n\n| architecture | entries | EXACT | ROUNDING | BUG | UNVERIFIED | known operations | elements | bit-equal | outside |\n|---|---|---|---|---|---|---|---|---|---|\n%s%s",
		good, len(folders), lines.String(), all.line("all"))
	if flaws.Len() > 0 {
		text += "\nThe others:\n\n" + flaws.String()
	}
	fmt.Println(text)
	fmt.Printf("The steps of entries that are no known operation, the most frequent first:\n\n%s", most(counts, in, 80))
	if pagetest.Update() {
		writeIsolated(t, text)
	}
}

func writeIsolated(t *testing.T, text string) {
	page, err := os.ReadFile(modelsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(page), followingHeading)
	if !ok {
		t.Fatal(modelsPage, " has no heading", followingHeading)
	}
	before, _, _ = strings.Cut(before, isolatedHeading)
	text = isolatedHeading + "\nA prompt of nine tokens and two decode steps, in bfloat16 and in float32: each named entry is computed again from the run's own tensors " +
		"by the program of the recording, in transformers' own arithmetic, and held to its bound. *known operations*: entries that are lifted to one. " +
		"`python fixtures/recorded.py --out DIR` makes the runs, and `TRACEDIFF_ARCHITECTURES=DIR go test ./compare/isolate -run TestArchitectures -update` " +
		"writes this section.\n\n" + text
	if err := os.WriteFile(modelsPage, []byte(before+text+followingHeading+after), 0o666); err != nil {
		t.Fatal(err)
	}
}
