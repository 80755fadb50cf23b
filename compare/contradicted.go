package compare

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
)

// Contradiction reports a result whose counts are not those of its rows: one that was changed or put together by hand. nil for every
// result that a comparison has made.
func (r *Result) Contradiction() error {
	compared, tested, failing, bugs := map[string]bool{}, 0, 0, 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Tested && row.Allowed == "" {
			tested++
		}
		if row.Isolated != nil && row.Isolated.Outcome == isolate.Bug {
			bugs++
		}
		compared[capture.Key(row.Pass, row.Name, 0)] = true
		if row.Verdict == Mismatch && !row.Derived && row.Allowed == "" && row.Excused == "" && !row.has(Expected) {
			failing++
		}
	}
	certified := 0
	if r.Isolation != nil {
		certified = r.Isolation.Bugs
	}
	for _, in := range r.Inputs {
		if bothSay := len(in.Local) > 0 && len(in.Reference) > 0; bothSay && (!in.Match || !slices.Equal(in.Local, in.Reference)) && r.Mismatches == 0 {
			return fmt.Errorf("the token ids of pass %d differ, and no mismatch is counted", in.Pass)
		}
	}
	for _, c := range []struct {
		what       string
		says, rows int
	}{
		{"mismatches", r.Mismatches, failing},
		{"compared entries", r.Coverage.Compared + r.Coverage.Derived, len(compared)},
		{"tested entries", r.Coverage.Tested, tested},
		{"bugs", certified, bugs},
	} {
		if c.says != c.rows {
			return fmt.Errorf("it counts %d %s, and its rows have %d", c.says, c.what, c.rows)
		}
	}
	return nil
}
