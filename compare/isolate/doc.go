// Package isolate computes an entry of a trace again, from the trace's own captured ancestors and the checkpoint, and says by error bounds whether correct
// arithmetic can have made it. It knows transformers' arithmetic; an [Engine] knows the arithmetic of the trace's own engine.
//
// The pipeline of one entry, in the order of [Isolator.Certify]:
//
//  1. Cut. The entry is computed from the captured entries nearest to it. [Tensors] are what was captured, [order.Plan] is the cut, and a [Misfit] is a captured
//     tensor that the order does not know as it is: nothing is computed from it.
//  2. Region. A large entry is computed some rows at a time, a trace of the last row has that row alone, and a search looks at the few rows and columns in which
//     most is left. All of these are parts of one computation, with the same bits. Attention has no rows of its own: a few of its queries are computed from
//     all keys.
//  3. Value. A [Trial] evaluates the formula of the cut in an [Arithmetic]: a choice of rounding and of formula at each site. The value has error bounds; the
//     hull has the bounds of every choice of roundings.
//  4. Judgement. An element of the trace is consistent where its bounds hold it. A [Judgement] says so of each; what is not consistent is left.
//  5. Orders of summation. What is left may be the sum in an order that an engine uses: it is computed again in these, see [Replay].
//  6. Engine. What is still left is asked of the engine: a known kernel, the arithmetic of the entry's form, or a mistake. A [FormKey] is what entries have in
//     common whose programs are the same but for numbers.
//  7. Certificate. A [Certificate] is EXACT, ROUNDING, UNIDENTIFIED, BUG or UNVERIFIED, with the sums over all elements: how far bounds reach, and the smallest error of scale
//     that would have been seen.
//
// Beside that a reference is certified, see [Certified]: an operation may accuse a port where it has reproduced every entry of its form in transformers' traces. A
// confirmer says which constants an order gives. A [Memory] keeps the certificates of entries that are right from one run to the next.
//
// An [Evidence] is an entry with the elements that transformers' arithmetic leaves: what the packages above look for explanations of.
package isolate
