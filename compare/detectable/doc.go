// Package detectable says which of the usual mistakes a run would have shown: as a BUG in one entry at least, whatever the engine's roundings.
//
// The catalogue of usual mistakes is that of package diagnose. Each is made in the run's own numbers:
//
//  1. A healthy entry is computed in the arithmetic that gives it; of a large entry some tokens are.
//  2. Each mistake that the entry would show is made in its program. A candidate is seen where an element has a number that neither bounds, nor orders of summation,
//     nor any choice of roundings give.
//  3. A mistake that moves elements by no more than roundings may is seen where the entries of a form together prove it.
//  4. Of what was not seen it is said what would show it: more tokens, more captured tensors, or float32.
//
// All of it has a limit of work; what was not tried is listed with the reason.
package detectable
