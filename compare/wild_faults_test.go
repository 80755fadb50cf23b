package compare_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/plantedtest"
)

// wildFaultsVariable names the folder that fixtures/wild/faults.py has written.
const wildFaultsVariable = "TRACEDIFF_WILD_FAULTS"

// A mistake in an engine that rounds elsewhere is found at its entries, and nowhere else; the engine without it has none.
func TestFaultsInWildEnginesAreLocated(t *testing.T) {
	dir, set := os.LookupEnv(wildFaultsVariable)
	if !set {
		t.Skipf("needs %s: the folder that python fixtures/wild/faults.py makes", wildFaultsVariable)
	}
	faults, models := plantedtest.Read(t, dir), plantedtest.Models{}
	located, shown, healthy := 0, 0, map[string]bool{}
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			m := models.Open(t, f.Checkpoint)
			if !healthy[f.Reference] {
				healthy[f.Reference] = true
				engine, trace, _ := strings.Cut(strings.TrimSuffix(f.Reference, ".safetensors"), ".")
				for _, key := range isolatedBugs(t, filepath.Join(dir, f.Reference), m) {
					if name := withoutPass(key); wildDifference(engine+"/"+trace, name) < 0 {
						t.Errorf("%s: %s is BUG, and nothing was planted", f.Reference, key)
					}
				}
			}
			bugs := isolatedBugs(t, filepath.Join(dir, f.File), m)
			at := slices.IndexFunc(bugs, func(key string) bool { return slices.Contains(f.GuiltyKeys(), key) })
			if f.Hidden == "" {
				shown++
				if at >= 0 {
					located++
				} else {
					t.Errorf("not found at any of its %d entries, the first is %s", len(f.Guilty), f.GuiltyKeys()[0])
				}
			}
			engine, trace, _ := strings.Cut(strings.TrimSuffix(f.Reference, ".safetensors"), ".")
			for _, key := range bugs {
				if !slices.Contains(f.GuiltyKeys(), key) && wildDifference(engine+"/"+trace, withoutPass(key)) < 0 {
					t.Errorf("%s is BUG, and it is right", key)
				}
			}
		})
	}
	t.Logf("%d faults, %d that show, %d located", len(faults), shown, located)
	if shown < 200 {
		t.Errorf("%d faults are too few", shown)
	}
}

// isolatedBugs are the entries of a trace that are called wrong on their own inputs.
func isolatedBugs(t *testing.T, path string, m plantedtest.Model) (keys []string) {
	t.Helper()
	local := open(t, path)
	i, err := compare.NewIsolator(local, m.List, reference.Weights(m.Checkpoint, local.Manifest().DType), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, local, nil, compare.Options{Order: m.List, All: true, Certification: compare.Certification{Isolator: i}})
	for _, row := range r.Rows {
		if z := row.Isolated; z != nil && !z.Good() {
			keys = append(keys, capture.Key(row.Pass, row.Name, 0))
		}
	}
	return keys
}

// withoutPass returns the name of a key.
func withoutPass(key string) string {
	return key[strings.LastIndexByte(key, '/')+1:]
}
