package compare_test

// slip are mistakes inside a formula.
type slip struct {
	fewer       int     // a mean divides by so many less
	lost        float64 // of the 1 that is added to a coefficient
	ahead       float64 // a query sees so many keys after it, fewer where negative
	interleaved bool    // pairs of the rotation lie side by side
	tiled       bool    // query head h reads key head h mod their number
	unmerged    bool    // heads are not put beside each other
}

func (s slip) offset() float64 { return 1 - s.lost }

// damage is a mistake at some entries.
type damage struct {
	mistake *mistake
	at      map[string]bool
}

// mistake is one that ports make.
type mistake struct {
	name    string
	compute func(c calc) []float64
}
