package diagnose

import "testing"

// A number of the code and the same number in float32 are one for people.
func TestNumbersThatPrintAlikeAreOne(t *testing.T) {
	v := 0.001
	var f Finding
	f.What, f.Value = "epsilon is 0.001", &v
	if f.values(v, []float64{float64(float32(v))}); f.What != "epsilon is 0.001" || f.Value == nil {
		t.Errorf("%q, %v", f.What, f.Value)
	}
	if f.values(v, []float64{float64(float32(v)), 0.002}); f.What != "epsilon is 0.001 (or 0.002)" || f.Value != nil {
		t.Errorf("%q, %v", f.What, f.Value)
	}
}
