// Package program has the primitives of which every operation is made, and the one evaluator of them.
//
// A [Program] is a list of named steps. Each step is one primitive on strided views of the results of earlier steps. A step
// that computes is a site: a place where an engine may round its result. What is done at each site is data, a [Choice]; the
// program itself has transformers' own. The evaluator gives the value of a program, how far a correct computation may be
// from it, both for any choices, and the hull of them all.
package program
