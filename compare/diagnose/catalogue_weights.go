package diagnose

// weightRows are mistakes in weights.
var weightRows = []Row{}
