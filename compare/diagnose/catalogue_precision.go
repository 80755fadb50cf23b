package diagnose

// precisionRows are mistakes in the types that are computed in or stored.
var precisionRows = []Row{}
