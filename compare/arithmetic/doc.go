// Package arithmetic finds out which arithmetic the engine of a trace has: where it rounds, with which functions, and in which order it adds. It knows no
// mistakes: it asks for them through [Mistakes], where no arithmetic explains what is left.
//
// An engine has one arithmetic for all entries of a form, so a form is decided as a whole. The pipeline, in the order of Form.decide:
//
//  1. Evidence. As many entries of a form as decide it, spread over the trace, each with the elements that transformers' arithmetic leaves.
//  2. Kernels. A fused kernel that is known is tried before anything that an engine may do at any step, also with float32 in front of it.
//  3. Panel. Candidates are tried on few entries and few of their rows first: they decide which candidate is nearer.
//  4. Presets. A preset says one thing for all sites of a program: float32 everywhere inside, every step rounded, tables made another way.
//  5. What smaller forms prove, beside each preset; float32 between any two steps; and a descent that changes one site at a time.
//  6. Proof. What explains all entries has to show enough of what transformers' arithmetic does not give, see [Thresholds]. What explains most entries is the form's,
//     and the others are suspect or have a second arithmetic.
//  7. Verdict. What a form's own entries only hint at is looked for in the passes of the other kind, in both together, and in the habits that other forms prove.
//
// An engine may also read an operand before it is rounded, see rereading, or have computed in more digits than were stored, see [Forms.Rounded].
//
// Forms ask each other: a form asks smaller ones what they prove, and the passes of one token ask the prompt's. The order in which they may is that of stage and
// place, and [memo.OrderError] is the error of a question that breaks it. Each question is answered once, and an interrupted one is asked again.
package arithmetic
