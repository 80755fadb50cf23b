package ci

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/detectable"
)

// A cover shows all that any of the prompts shows, and without any one of its prompts less.
func TestCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*candidate
		for n := range rapid.IntRange(1, 8).Draw(t, "prompts") {
			c := &candidate{passes: [][]int{make([]int, 1+rapid.IntRange(0, 9).Draw(t, "tokens"))}, sight: &detectable.Sight{}}
			for m := range 12 {
				if name := fmt.Sprint(m); rapid.IntRange(0, 2).Draw(t, "seen") == 0 {
					c.sight.Seen = append(c.sight.Seen, name)
				} else {
					c.sight.Unseen = append(c.sight.Unseen, detectable.Unseen{Name: name, ShownBy: fmt.Sprint(n)})
				}
			}
			all = append(all, c)
		}
		chosen := cover(all)
		if got, want := len(united(chosen).Seen), len(united(all).Seen); got != want || len(chosen) == 0 {
			t.Fatalf("%d prompts show %d, all show %d", len(chosen), got, want)
		}
		for i := range chosen {
			if rest := slices.Delete(slices.Clone(chosen), i, i+1); len(rest) > 0 && len(united(rest).Seen) == len(united(all).Seen) {
				t.Fatalf("prompt %d of %d adds nothing", i, len(chosen))
			}
		}
	})
}
