package functions_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order/program/functions"
)

var update = flag.Bool("update", false, "write the table of docs/results/functions.md")

const page, begin, end = "../../../docs/results/functions.md", "<!-- functions: go test ./order/program/functions -update -->\n", "<!-- end of functions -->\n"

// docs/results/functions.md has the table of errors.
func TestPageHasTheTable(t *testing.T) {
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(have), begin)
	old, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	var b strings.Builder
	b.WriteString("\n| function | arguments | units | measured | stated |\n|---|---|---|---|---|\n")
	for _, e := range functions.Table {
		units := fmt.Sprint(e.Units)
		if e.Absolute {
			units += " of 1"
		}
		if e.Units < 1 || e.Stated == "" {
			t.Errorf("%s, %s: %s units, stated %q: every number has a source", e.Function, e.Range, units, e.Stated)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", e.Function, e.Range, units, e.Measured, e.Stated)
	}
	b.WriteString("\n")
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != b.String() {
		t.Errorf("%s does not have the table of the code: go test ./order/program/functions -update", page)
	}
}
