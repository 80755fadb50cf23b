//go:build !amd64

package floats

// vectors says that numbers are widened one at a time here.
var vectors = false

func firstBF16([]float64, []byte) int { return 0 }
func firstF32([]float64, []byte) int  { return 0 }
