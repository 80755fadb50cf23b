// Package detectable says which of the usual mistakes a run would have shown: as a BUG in one entry at least, whatever the engine's roundings.
//
// The catalogue of usual mistakes is that of package diagnose. [Find] makes each mistake in the run's own numbers:
//
//  1. A healthy entry is computed in the arithmetic that explains it. Of a large entry only some tokens are computed.
//  2. Each mistake that the entry could have is made in its program. The mistake is seen if it gives an element a number that no bounds, no order of
//     summation and no choice of roundings give.
//  3. A mistake can move every element by less than roundings may. It is seen if the entries of a form prove it together.
//  4. For each mistake that was not seen, the [Sight] has what would show it: more tokens, more captured tensors, or float32.
//
// The work is limited. The Sight lists each mistake that was not tried, with the reason.
package detectable
