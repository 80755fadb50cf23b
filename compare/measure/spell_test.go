package measure

import "testing"

// Indexes of an element are said in the words of their axes where all are known; an axis with one index needs none.
func TestSpell(t *testing.T) {
	named := []AxisError{{Axis: "token", Number: 1}, {Axis: "channel", Number: 2}}
	for _, c := range []struct {
		what string
		axes []AxisError
		at   []int
		want string
	}{
		{"the batch is one sequence", named, []int{0, 4, 10}, "[0 4 10] (token 4, channel 10)"},
		{"one axis has no name", []AxisError{{Axis: "token", Number: 0}, {Axis: "axis 1", Number: 1}}, []int{4, 10}, "[4 10]"},
		{"nothing was measured by axis", nil, []int{3}, "[3]"},
		{"indexes of another shape", named, []int{4}, "[4]"},
	} {
		if got := (&Metrics{Axes: c.axes}).Spell(c.at); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
