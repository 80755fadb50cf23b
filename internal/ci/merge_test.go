package ci_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/internal/ci"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// drawRun is a run that matches, does not, or could not be compared.
func drawRun(t *rapid.T, name string) report.Run {
	result := &compare.Result{Coverage: compare.Coverage{Compared: 1, Tested: 1}, Rows: []compare.Row{{Name: "x", Verdict: compare.Match, Tested: true}}}
	switch rapid.IntRange(0, 5).Draw(t, "outcome") {
	case 0:
		return report.Run{Name: name, Exit: 2, Error: "no reference", Hint: "make one"}
	case 1:
		result.Mismatches, result.Rows[0].Verdict = 1, compare.Mismatch
	default:
		s := &detectable.Sight{Known: 6, Seen: []string{}}
		for i := range s.Known {
			mistake := fmt.Sprintf("mistake %d", i)
			switch rapid.IntRange(0, 2).Draw(t, mistake) {
			case 0:
				s.Seen = append(s.Seen, mistake)
			case 1:
				s.Unseen = append(s.Unseen, detectable.Unseen{Name: mistake, ShownBy: name})
			default:
				s.Skipped = append(s.Skipped, mistake)
			}
		}
		result.Sight = s
	}
	return report.Run{Name: name, Exit: result.ExitCode(), Result: result}
}

// A gate that was divided and merged is the gate that was not, whatever its prompts found, however many shards there are and in
// which order their reports come. Without one of them, or with one twice, there is no report.
func TestMergedIsTheWhole(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		var runs []report.Run
		for i := range rapid.IntRange(1, 9).Draw(t, "prompts") {
			names = append(names, fmt.Sprintf("p%d", i))
			runs = append(runs, drawRun(t, names[i]))
		}
		of := rapid.IntRange(1, len(names)).Draw(t, "shards")
		var paths []string
		for index := range of {
			s := &report.Shard{Index: index, Of: of, Prompts: names, Settings: map[string]string{"--all": "false"}}
			var own []report.Run
			for i, r := range runs {
				if i%of == index {
					own = append(own, r)
				}
			}
			d := report.NewDocument("v1", own...)
			d.Shard = s
			paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.json", index)))
			save(t, paths[index], d)
		}
		paths = rapid.Permutation(paths).Draw(t, "order")
		merged, _, err := ci.Merge(paths)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := text(t, report.NewDocument("v1", runs...)), text(t, merged); got != want {
			t.Errorf("merged:\n%s\nas a whole:\n%s", got, want)
		}
		lost := rapid.IntRange(0, of-1).Draw(t, "lost")
		number := strings.TrimSuffix(filepath.Base(paths[lost]), ".json")
		rest := append(append([]string{}, paths[:lost]...), paths[lost+1:]...)
		if len(rest) > 0 {
			if _, _, err := ci.Merge(rest); err == nil || err.Error() != fmt.Sprintf("shard %s/%d is missing", number, of) {
				t.Errorf("without shard %s: %v", number, err)
			}
		}
		if _, _, err := ci.Merge(append(paths, paths[lost])); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("shard %s/%d was given twice: ", number, of)) {
			t.Errorf("with shard %s twice: %v", number, err)
		}
	})
}

func text(t *rapid.T, d *report.Document) string {
	var b bytes.Buffer
	if err := report.JSON(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func save(t *rapid.T, path string, d *report.Document) {
	if err := os.WriteFile(path, []byte(text(t, d)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Shards of different checkpoints at one path, though nothing in the settings differs, are no shards of one gate.
func TestMergeOfOtherWeights(t *testing.T) {
	dir := t.TempDir()
	run := func(name, weights string) report.Run {
		r := &compare.Result{Coverage: compare.Coverage{Compared: 1, Tested: 1}, Rows: []compare.Row{{Name: "x", Verdict: compare.Match, Tested: true}}}
		r.Local.Weights = weights
		return report.Run{Name: name, Result: r}
	}
	merge := func(a, b string) error {
		var paths []string
		for i, weights := range []string{a, b} {
			d := report.NewDocument("v1", run(fmt.Sprint(i), weights))
			d.Shard = &report.Shard{Index: i, Of: 2, Prompts: []string{"0", "1"}, Settings: map[string]string{}}
			paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.json", i)))
			var b bytes.Buffer
			if err := report.JSON(&b, d); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(paths[i], b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := ci.Merge(paths)
		return err
	}
	if err := merge("sha256:a", "sha256:b"); err == nil || !strings.HasPrefix(err.Error(), "the digest of the weights of your port differs: sha256:a for prompt \"0\"") {
		t.Errorf("other weights: %v", err)
	}
	for _, b := range []string{"sha256:a", "unknown", ""} { // what is not known does not differ
		if err := merge("sha256:a", b); err != nil {
			t.Errorf("%q: %v", b, err)
		}
	}
}
