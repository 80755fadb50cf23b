package diagnose

// maskRows are mistakes in masks, softmaxes and routers.
var maskRows = []Row{}
