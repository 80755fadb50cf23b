package diagnose

import "testing"

// TestShapesInSentences: a shape keeps its brackets, which are not those of an optional part.
func TestShapesInSentences(t *testing.T) {
	for _, c := range []struct {
		m     Mistake
		words string
	}{
		{
			Mistake{Kind: "elements.blocks", Of: theResult, Axis: "its channels", N: 8, M: 4, K: 2},
			"the result has its channels in another order: its blocks of 8, such as those of heads, are read as [2, 4] with its axes exchanged",
		},
		{
			Mistake{Kind: "elements.by-turns", Of: theResult, Axis: "its channels", N: 6, M: 2},
			"the result has its channels in another order: all read as 6 parts, by turns: [6, 2] with its axes exchanged",
		},
	} {
		if got := c.m.String(); got != c.words {
			t.Errorf("%s, not %s", got, c.words)
		}
	}
}
