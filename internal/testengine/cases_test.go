package testengine

import "testing"

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
