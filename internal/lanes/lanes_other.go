//go:build !amd64 && !arm64

package lanes

// vectors says that the lanes are not computed several at a time here.
var vectors = false

func productLanes(out *[4]lanes, l, r []float64)              { productLanesGo(out, l, r) }
func deviationLanes(out *[2]lanes, x []float64, from float64) { deviationLanesGo(out, x, from) }
func surveyLanes(out *surveyed, x []float64)                  { surveyLanesGo(out, x) }

// AddColumns adds (l − r)² and r² of a run to the sums of its columns.
func AddColumns(diff, ref, l, r []float64) { addColumnsGo(diff, ref, l, r) }

// Largest returns max |l − r|.
func Largest(l, r []float64) float64 { return largestGo(l, r) }
