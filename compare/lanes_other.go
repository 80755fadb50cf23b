//go:build !amd64

package compare

// vectors says that the lanes are not computed several at a time here.
var vectors = false

func productLanes(out *[4]lanes, l, r []float64)              { productLanesGo(out, l, r) }
func deviationLanes(out *[2]lanes, x []float64, from float64) { deviationLanesGo(out, x, from) }
func surveyLanes(out *surveyed, x []float64)                  { surveyLanesGo(out, x) }
func addColumns(diff, ref, l, r []float64)                    { addColumnsGo(diff, ref, l, r) }
func largest(l, r []float64) float64                          { return largestGo(l, r) }
