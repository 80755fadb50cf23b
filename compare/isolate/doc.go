// Package isolate recomputes an entry of a trace from the trace's own captured ancestors and the checkpoint, and
// decides by error bounds whether correct arithmetic can have made the entry. The package knows transformers'
// arithmetic; an [Engine] knows the arithmetic of the trace's own engine.
//
// Entries with programs equal except for numbers are a form, named by a [FormKey]. A site is a step at which engines
// may round or compute in different ways. An element is explained by an arithmetic that can give it.
//
// The pipeline of one entry, in the order of [Isolator.Certify]:
//
//  1. Cut. The entry is computed from its nearest captured ancestors. [Tensors] are the captured tensors, and
//     [order.Plan] is the cut. A [Misfit] is a captured tensor unlike the order's entry; no entry is computed from it.
//  2. Region. A large entry is computed some rows at a time, a trace of the last row has only this row, and a search
//     looks at the few rows and columns with the most unexplained elements. Each region is a part of one computation,
//     with the same bits. Attention has no independent rows: a few of its queries are computed from all keys.
//  3. Value. A [Trial] evaluates the formula of the cut in an [Arithmetic]: a choice of rounding and of formula at
//     each site. The value has error bounds; the hull has the bounds of every choice of roundings.
//  4. Judgement. An element of the trace is consistent if it lies within its bounds. A [Judgement] covers every
//     element; the inconsistent elements are left for the next steps.
//  5. Orders of summation. The elements left may be sums in an engine's order: they are recomputed in the usual
//     orders, see [Replay].
//  6. Engine. The [Engine] explains further elements: by the arithmetic of the entry's form, or a mistake. If it knows a
//     fused kernel of the form, steps 3 to 5 try the kernel first, and then transformers' arithmetic.
//  7. Certificate. A [Certificate] is EXACT, ROUNDING, UNIDENTIFIED, BUG or UNVERIFIED, with sums over all elements:
//     the reach of the bounds, and the smallest detectable error of scale. Package chain makes a BUG that cancels
//     further on a LAYOUT.
//
// The package has three further parts. [Certified] comes from a reference: an operation may produce a BUG if it has
// reproduced every entry of its form in transformers' traces. [NewConfirmer] recognises the constants of an order. A
// [Memory] keeps the certificates of right entries between runs.
//
// An [Evidence] is an entry with the elements unexplained by transformers' arithmetic, the input of the searches in
// packages arithmetic and naming.
package isolate
