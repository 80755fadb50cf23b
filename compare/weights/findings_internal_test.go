package weights

import (
	"fmt"
	"testing"
)

// What is UNIDENTIFIED alike in many layers is one finding, though the numbers of each tensor are its own.
func TestLargeErrorsOfManyLayersAreOneFinding(t *testing.T) {
	var rows []Row
	for layer := range 32 {
		row := Row{Name: fmt.Sprintf("model.layers.%d.mlp.up_proj.weight", layer), Relative: float64(layer)}
		row.wrong(Unidentified, LargeErrors, "the errors of %d groups are larger than usual, the first in row %d", 900+layer, layer)
		other := Row{Name: fmt.Sprintf("model.layers.%d.mlp.down_proj.weight", layer)}
		other.wrong(Unidentified, LargeErrors, "its root mean square error is %s times that of rounding", number(3.1+float64(layer)/100))
		wrong := Row{Name: fmt.Sprintf("model.layers.%d.mlp.gate_proj.weight", layer)}
		wrong.wrong(Mistake, ShiftedRows, "row %d is the original's row %d", layer, layer+1)
		rows = append(rows, row, other, wrong)
	}
	alike := map[Class]int{}
	for _, f := range findings(rows) {
		alike[f.Class]++
		if f.Class == Unidentified && len(f.Also) != 31 {
			t.Errorf("%s stands for %d others", f.Tensor, len(f.Also))
		}
	}
	if alike[Unidentified] != 2 || alike[Mistake] != 32 {
		t.Errorf("findings: %v; want 2 that are UNIDENTIFIED, and each of 32 mistakes", alike)
	}
}
