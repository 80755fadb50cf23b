package gemma

import "testing"

// Of equal logits the first is taken, as torch's argmax does.
func TestArgmaxTakesTheFirst(t *testing.T) {
	for want, x := range [][]float32{{3, 1, 3}, {-2, 5, 5, 5}, {0, 1, 7, 2}} {
		if got := argmax(x); got != want {
			t.Errorf("argmax of %v is %d, want %d", x, got, want)
		}
	}
}
