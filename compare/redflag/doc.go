// Package redflag looks at one trace for values that are nearly always wrong, with any reference: probabilities that
// do not sum to 1, keys that no rotation has turned, a cache that reads zero, gradients that are missing.
//
// The package is opinionated. A flag is raised only where a healthy model has a wide margin, so that it can fail a build:
// no golden trace of transformers raises one, and docs/inside.md has, for each kind, the limit and what the goldens have.
// What is merely unusual is no flag. The other way round a trace without flags is not a right one: a wrong theta or a
// window one too wide raises none. For that there is a reference, and package compare.
//
// What a tensor is follows from its name, by the vocabulary of TENSOR_ORDER and a few other usual words (see [Kinds] and
// docs/inside.md), so any safetensors file with such names can be checked. Where a trace says its configuration the order
// says more: what an entry is computed from, and so where a fault began, and which dtype it is to have.
//
// Each check is a function of the trace as it was read, in one table with what it looks at and which kinds it raises.
//
// Everything is read in strips, once for the numbers and again by the checks that compare tensors with each other. Memory
// grows with the header, and with the longest row that is looked at, which is bounded.
package redflag
