// Package compare decides whether two traces of one model agree, and where they first do not.
//
// [Run] walks the entries of an order, pass by pass, pairs the tensors of both traces by name and gives each pair a
// verdict, into one [Result]: pure data, of which a report is a rendering. It knows no model and starts none.
//
// The package is opinionated.
//   - First means first in execution. Without an order and without a trace that promises to be in execution order it
//     refuses to compare, since the order of names in a file means nothing.
//   - It fails closed. What is missing, cut short, NaN, or merely never compared is not a success; only a comparison in
//     which everything in scope was compared and matches has exit code 0, and every one says how much that was.
//   - Relative L2 decides: of the tensor, of its worst token, of its worst channel and of the worst index of every other
//     axis. Element-wise limits fail every healthy port in bfloat16, correlation passes a doubled tensor, and one norm
//     over all hides a wrong token behind a massive activation. The other metrics are shown and decide nothing.
//   - Integers, booleans and masks have no tolerance.
//
// The limits are of errors accumulated from the input on: a person's own, multiples of the noise floor that the walk measures
// for the prompt, or a table by dtype. They tell a bug from noise only roughly, since noise that a long model amplifies can
// pass a limit, and a bug smaller than the noise stays below it. What tells them apart is the certificate of an [Isolator].
package compare
