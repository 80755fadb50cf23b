package diagnose

// numberRows are mistakes in numbers, activations and what is inserted.
var numberRows = []Row{}
