package permute_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/internal/permute"
)

func TestAllAreListedInOrder(t *testing.T) {
	want := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	if d := cmp.Diff(want, slices.Collect(permute.All(3))); d != "" {
		t.Error(d)
	}
	if got := slices.Collect(permute.All(0)); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for order := range permute.All(4) {
		if !slices.IsSorted(order) {
			t.Errorf("first: %v", order)
		}
		break
	}
}
