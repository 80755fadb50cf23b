//go:build !amd64

package quant

// vectorErrors takes no element: there is one way to add them here.
func (s *errorSums) vectorErrors(_ []int16, _ []float64, _, _, _ float64, _ func(i int)) int {
	return 0
}
