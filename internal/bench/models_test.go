package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// modelsVariable names a folder that fixtures/recorded_faults.py has written.
const modelsVariable = "TRACEDIFF_MODEL_FAULTS"

// modelNames are the names that were read of faults in recorded models, as names.txt has those of others.
//
//go:embed testdata/models.txt
var modelNames string

const (
	modelsPage    = "../../docs/results/models.md"
	modelsHeading = "\n## Faults planted in recorded models\n"
)

// TestModels holds faults in architectures that nobody described to what was read of them: each is located where it is, no entry beside
// it is accused, and no name is wrong, or one that nobody has read. With -update names are added that have to be read, and the table of
// docs/results/models.md is written.
func TestModels(t *testing.T) {
	dir, set := os.LookupEnv(modelsVariable)
	if !set {
		t.Skipf("needs %s: the folder that python fixtures/recorded_faults.py makes", modelsVariable)
	}
	m, err := readRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseReadings(modelNames)
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
	var kinds []string
	for i := range results {
		r := &results[i]
		if !slices.Contains(kinds, r.Checkpoint) {
			kinds = append(kinds, r.Checkpoint)
		}
		for _, key := range r.Accused {
			t.Errorf("%s: %s is a mismatch, and it is right", r.Name, key)
		}
		if len(r.Faults) > 0 && !r.Located && !r.Invisible && r.excused() == "" {
			t.Errorf("%s: not located", r.Name)
		}
		for _, n := range r.Names {
			if n.verdict == wrong || n.verdict == unread {
				t.Errorf("%s: %s is %s: %s", r.Name, n.Role, n.verdict, n.Finding.Text())
			}
		}
	}
	table := modelTable(results, kinds)
	t.Log("\n" + table)
	if !*update {
		return
	}
	if err := os.WriteFile("testdata/models.txt", []byte(listing(modelNames, toRead(results))), 0o666); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(modelsPage)
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ = bytes.Cut(page, []byte(modelsHeading))
	text := modelsHeading + "\nMistakes of ports, planted in transformers by fixtures/recorded_faults*.py, in models whose program was recorded. The columns are those of " +
		"[bench.md](bench.md). `python fixtures/recorded_faults.py DIR` makes the runs, and `TRACEDIFF_MODEL_FAULTS=DIR go test ./internal/bench -run TestModels -update` writes this table.\n\n" + table
	if err := os.WriteFile(modelsPage, append(page, text...), 0o666); err != nil {
		t.Fatal(err)
	}
}

// modelTable has a line for each model and dtype, and one for all.
func modelTable(results []result, kinds []string) string {
	var out strings.Builder
	out.WriteString("| model | dtype | runs | located | named | number recovered | other words | wrong | healthy entries accused | invisible | like rounding |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	line := func(kind, dtype string, keep func(*result) bool) {
		s := of(results, keep)
		fmt.Fprintf(&out, "| %s | %s | %d | %s | %s | %s | %d | %d | %d | %d | %d |\n", kind, dtype, s.runs, share(s.located, s.runs), share(s.named, s.runs),
			share(s.recovered, s.numbers), s.words, s.wrong+s.unread, s.accused, s.invisible, s.excused)
	}
	for _, dtype := range dtypes {
		for _, kind := range kinds {
			line(kind, dtype, func(r *result) bool { return r.Checkpoint == kind && r.DType == dtype })
		}
		line("all", dtype, func(r *result) bool { return r.DType == dtype })
	}
	return out.String()
}
