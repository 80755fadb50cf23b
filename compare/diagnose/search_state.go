package diagnose

// survivors are hypotheses that give all elements.
type survivors struct {
	found  []survivor
	thin   []survivor // steps taken twice that give everything, and show too few elements
	little []survivor // too few elements rule the right operation out
}

// progress is how far a search is.
type progress struct {
	tried   int // hypotheses, of all searches of the model
	stopped bool
	unended []stage // after a stop: the stage of the stop, and all later stages
}

// approach is the state of the hypotheses that come nearest to the trace.
type approach struct {
	nearest near
	closer  distant  // the hypothesis that comes nearest to the first entry
	close   *closest // nil if not needed
	firsts  firsts
	far     float64 // how far from the trace the last hypothesis was
}

// describing is the state of the description for a search without a name.
type describing struct {
	proposing   bool // mistakes that descriptions propose are tried
	described   bool
	description *Description // nil if nothing simple holds
	drafts      map[*Description]*draft
	differs     *difference // of the last description; nil before, and without results
}

// near is a hypothesis that gives some entries, or nearly gives the entries.
type near struct {
	hypothesis
	entries int
}
