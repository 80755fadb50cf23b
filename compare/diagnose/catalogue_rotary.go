package diagnose

// rotaryRows are mistakes in rotary tables and positions.
var rotaryRows = []Row{}
