// Package floors has no code: its test holds the structure of the project to its plan.
package floors_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors from the lowest to the highest. A package may import those of its own floor and of lower ones.
var floors = []string{
	"hooks", "internal", "order/program", "order/program/edit", "order/program/rewrite", "order/op", "order", "capture", "capture/mapping", "capture/foreign", "capture/gemma", "capture/reference", "internal/testengine", "internal/plantedtest",
	"compare/measure", "compare/weights/awq", "compare/weights", "compare/gate", "compare/baseline", "compare/keyorder", "compare/isolate", "compare/arithmetic", "compare/chain", "compare/diagnose", "compare/naming", "compare/detectable", "compare/sides", "compare/suitable", "compare/plan", "compare", "internal/singles", "compare/picture", "compare/report", "internal/settings", "internal/advice", "internal/gatefile", "internal/tracefolder", "internal/origin", "internal/ci", "internal/portweights", "internal/proven", "internal/session/orders", "internal/session/job", "internal/session/noise", "internal/session/choice", "internal/session", "internal/bench", "internal/reports", "cmd",
}

// leaves import nothing of the project, and stand beside the floors.
var leaves = []string{"docs", "fixtures", "hooks/python"}

const module = "github.com/tracediff/tracediff"

func floor(pkg string) int {
	best, length := -1, 0
	for i, f := range floors {
		if (pkg == f || strings.HasPrefix(pkg, f+"/")) && len(f) > length {
			best, length = i, len(f)
		}
	}
	return best
}

func isLeaf(pkg string) bool {
	for _, l := range leaves {
		if pkg == l || strings.HasPrefix(pkg, l+"/") {
			return true
		}
	}
	return false
}

// apart reports an import by which one of two programs that have to be independent would use the arithmetic of the other.
// The order, which both read, has the walk's operations as descriptions.
func apart(pkg, imported string) bool {
	local, walk := []string{"capture/gemma", "internal/kernel"}, []string{"capture/reference", "order", "order/op", "order/program", "order/program/edit", "order/program/rewrite"}
	return slices.Contains(local, pkg) && (imported == "order/op" || imported == "capture/reference") ||
		slices.Contains(walk, pkg) && slices.Contains(local, imported)
}

// forTests are packages that no program has in it: only tests import them, and each other.
var forTests = []string{"internal/testengine", "internal/fuzztest", "internal/pagetest", "internal/singles", "internal/plantedtest", "compare/report/reporttest", "order/ordertest", "order/program/programtest", "internal/checkpoint/checkpointtest"}

// independent reports an import by which the engine of tests would compute with what it is there to test.
func independent(pkg, imported string) bool {
	return pkg != "internal/testengine" || !strings.HasPrefix(imported, "order/program") && !strings.HasPrefix(imported+"/", "compare/")
}

func TestImportsPointDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], module+"/")
		packages++
		if floor(pkg) < 0 && !isLeaf(pkg) {
			t.Errorf("%s stands on no floor: the top-level folders are those of the plan", pkg)
		}
		for _, imported := range words[1:] {
			rel, ours := strings.CutPrefix(imported, module+"/")
			switch {
			case pkg == "hooks" && strings.Contains(strings.Split(imported, "/")[0], "."):
				t.Errorf("hooks imports %s: the lowest floor has the standard library alone", imported)
			case !ours:
			case isLeaf(pkg):
				t.Errorf("%s imports %s: it is to be embedded and imports nothing", pkg, rel)
			case !isLeaf(rel) && floor(rel) > floor(pkg):
				t.Errorf("%s imports %s, which is above it", pkg, rel)
			case slices.Contains(forTests, rel) && !slices.Contains(forTests, pkg):
				t.Errorf("%s imports %s, which is for tests alone", pkg, rel)
			case !independent(pkg, rel):
				t.Errorf("%s imports %s: the engine of tests shares no arithmetic with what it tests", pkg, rel)
			case apart(pkg, rel):
				t.Errorf("%s imports %s: the built-in model and the walk check each other and share no arithmetic", pkg, rel)
			case (pkg == "compare" || strings.HasPrefix(pkg, "compare/")) && strings.HasPrefix(rel, "capture/"):
				t.Errorf("compare imports %s: it knows no model and no runner", rel)
			}
		}
	}
	if packages < 10 {
		t.Errorf("go list names %d packages", packages)
	}
}
