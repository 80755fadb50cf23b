package job

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The local side is fed the passes of the reference, and decodes only what is left of what was asked for.
func TestReplay(t *testing.T) {
	for _, test := range []struct {
		further, replayed int
		lengths           []int
	}{
		{0, 1, []int{3}},
		{2, 1, []int{3, 1, 1}}, // the reference is of the prompt alone
		{2, 2, []int{3, 1, 1}},
		{2, 3, []int{3, 1, 1}},
		{2, 4, []int{3, 1, 1, 1}}, // the reference went on
	} {
		in := Input{Passes: [][]int{{2, 513, 88}}, Further: test.further}
		passes := [][]int{{2, 513, 88}}
		for n := range test.replayed - 1 {
			passes = append(passes, []int{n})
		}
		in.Replay(passes)
		if diff := cmp.Diff(test.lengths, in.Lengths()); diff != "" {
			t.Errorf("%d further, %d replayed: want -, got +\n%s", test.further, test.replayed, diff)
		}
	}
}

// Every line of another program has its prefix, also one that is redrawn and one that comes in pieces. What a terminal would act on is escaped.
func TestPrefixed(t *testing.T) {
	var out bytes.Buffer
	p := &Prefixed{To: &out, Prefix: "local | "}
	for _, text := range []string{"one\ntw", "o\n 10 %\r 20 %\r", "\x1b[2Jend"} {
		fmt.Fprint(p, text)
	}
	p.End()
	p.End()
	want := "local | one\nlocal | two\nlocal |  10 %\rlocal |  20 %\rlocal | \\x1b[2Jend\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}
