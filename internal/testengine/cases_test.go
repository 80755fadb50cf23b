package testengine

import (
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order/ordertest"
)

// A family that is added has cases of its own, and changes no other case.
func TestAFurtherFamilyChangesNoCase(t *testing.T) {
	families := slices.Concat(ordertest.Gemma, ordertest.Plain)[:settled]
	more := append(slices.Clone(families), "another", "a third")
	met := map[string]bool{}
	for n := range 20 * settled * len(Names) {
		met[familyOf(n, families)] = true
		if got, want := familyOf(n, more), familyOf(n, families); got != want {
			t.Fatalf("case %d is %s with more families, and was %s", n, got, want)
		}
	}
	if len(met) != settled {
		t.Errorf("%d families have cases", len(met))
	}
	for n, want := range map[int]string{later: "another", later + 11: "another", 2 * later: "a third"} {
		if got := familyOf(n, more); got != want {
			t.Errorf("case %d is %s", n, got)
		}
	}
}

// Each engine meets each family, with and without a common factor of their numbers.
func TestEachEngineMeetsEachFamily(t *testing.T) {
	for _, families := range []int{7, 8, 9, 12} {
		const engines = 12
		met := map[[2]int]bool{}
		for n := range engines * families {
			met[[2]int{n % engines, meeting(n, engines, families)}] = true
		}
		if len(met) != engines*families {
			t.Errorf("%d engines and %d families: %d pairs", engines, families, len(met))
		}
	}
}
