package diagnose

// readRows are mistakes in tensors that are read in place of others.
var readRows = []Row{}
