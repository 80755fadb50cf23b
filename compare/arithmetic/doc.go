// Package arithmetic infers the arithmetic of a trace's engine: its rounding points, its functions, and its order of
// addition. It knows no mistakes: for elements without an explaining arithmetic it asks [Mistakes].
//
// A form is all entries with programs equal except for numbers. An engine has one arithmetic for a form, so a form is
// decided as a whole. The steps of [Forms.Verdict]; [Form.Decide] has all between the choice of entries and step 7:
//
//  1. Evidence. Entries of the form, spread over the trace and enough to decide, each with the elements unexplained
//     by transformers' arithmetic. A usual mistake of a number, or of a mask in few tokens, is looked for first: some
//     choice of roundings may give as much.
//  2. Kernels. Known fused kernels are tried before general choices at each step, also with float32 before the kernel.
//  3. Panel. Candidates are tried on a panel of few entries and few rows first; the panel ranks the candidates.
//  4. Presets. A preset makes one choice for all sites of a program: float32 everywhere inside, every step rounded,
//     tables made another way.
//  5. Search. The proofs of smaller forms, combined with each preset; float32 between any two steps; and a descent
//     with one changed site at a time.
//  6. Proof. An arithmetic that explains all entries needs enough elements unexplained by transformers' arithmetic,
//     see [Thresholds]. An arithmetic that explains most entries belongs to the form, and the other entries are
//     suspect or have a second arithmetic. Entries that no choice of roundings gives are wrong in any arithmetic, so
//     both are looked for without these entries, too.
//  7. Verdict. If the form's own entries are too little evidence, the passes of the other kind, both kinds together,
//     and the habits proven by other forms decide.
//
// An engine may also read an operand before rounding, see [Verdict].Reread, or have computed in more digits than it stored,
// see [Forms.Rounded].
//
// Forms ask each other: a form asks smaller forms for their proofs, and the passes of one token ask the prompt's
// passes. A stage and a place order the questions, and [memo.OrderError] is the error of a question out of order. Each
// question is answered once, and an interrupted question is asked again.
package arithmetic
