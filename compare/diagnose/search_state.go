package diagnose

// survivors are hypotheses that give all elements.
type survivors struct {
	found  []survivor
	thin   []survivor // steps taken twice that give everything, and show too little by themselves
	little []survivor // too few elements rule the right operation out
}

// progress is how far a search is.
type progress struct {
	tried   int // hypotheses, of all searches of the model
	stopped bool
	unended []stage // of a search that stopped: the stage of the stop, and all later stages
}

// approach is what came nearest to the trace.
type approach struct {
	nearest near
	closer  distant  // the hypothesis that comes nearest to the first entry
	close   *closest // nil: nobody asks for them
	far     float64  // how far from the trace the last hypothesis was
}

// describing is the description of what a search has no name for.
type describing struct {
	proposing   bool // mistakes that descriptions propose are tried
	described   bool
	description *Description // nil where nothing simple holds
	drafts      map[*Description]*draft
}

// near is a hypothesis that gives some entries, or nearly.
type near struct {
	hypothesis
	entries int
}
