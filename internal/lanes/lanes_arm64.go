package lanes

// vectors says that the lanes of lanes.go are computed two at a time, which every such processor can. Their sums are the same to the
// bit.
var vectors = true

//go:noescape
func productsNeon(out *[4]lanes, l, r *float64, n int)

//go:noescape
func deviationsNeon(out *[2]lanes, x *float64, n int, from float64)

//go:noescape
func surveyNeon(out *surveyed, x *float64, n int)

//go:noescape
func columnsNeon(diff, ref, l, r *float64, n int)

//go:noescape
func largestNeon(out *[2]float64, l, r *float64, n int)

// productLanes adds up the products of runs of whole rounds of lanes, at least one.
func productLanes(out *[4]lanes, l, r []float64) {
	if vectors {
		productsNeon(out, &l[0], &r[:len(l)][0], len(l))
	} else {
		productLanesGo(out, l, r)
	}
}

// deviationLanes adds up distances and their squares, of whole rounds of lanes, at least one.
func deviationLanes(out *[2]lanes, x []float64, from float64) {
	if vectors {
		deviationsNeon(out, &x[0], len(x), from)
	} else {
		deviationLanesGo(out, x, from)
	}
}

// surveyLanes adds up elements and finds the least and the largest of them, of whole rounds of lanes, at least one.
func surveyLanes(out *surveyed, x []float64) {
	if vectors {
		surveyNeon(out, &x[0], len(x))
	} else {
		surveyLanesGo(out, x)
	}
}

// AddColumns adds (l − r)² and r² of a run to the sums of its columns.
func AddColumns(diff, ref, l, r []float64) {
	n := 0
	if vectors {
		if n = len(r) &^ 3; n > 0 {
			columnsNeon(&diff[:n][0], &ref[:n][0], &l[:n][0], &r[0], n)
		}
	}
	addColumnsGo(diff[n:], ref[n:], l[n:], r[n:])
}

// Largest returns max |l − r|.
func Largest(l, r []float64) float64 {
	n := 0
	var most [2]float64
	if vectors {
		if n = len(l) &^ (Count - 1); n > 0 {
			largestNeon(&most, &l[0], &r[:n][0], n)
		}
	}
	return max(most[0], most[1], largestGo(l[n:], r[n:]))
}
