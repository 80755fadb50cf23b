// Package compare decides whether two traces of one model agree, and finds the first divergence.
//
// [Traces] walks the entries of an order, pass by pass, pairs the tensors of both traces by name and gives each
// pair a verdict, into one [Result]: pure data, rendered by a report. [Alone] does the same for a single trace, and
// [AB] for two traces without a reference. The package knows no model and starts none.
//
// # Principles
//
//   - First means first in execution. Without an order and without a trace declared to be in execution order, the
//     package refuses to compare, since the order of names in a file means nothing.
//   - It fails closed. A missing, truncated, NaN or uncompared tensor is not a success. The exit code is 0 only if
//     everything in scope was compared and matches, and every result says how much was compared.
//   - Relative L2 decides: of the tensor, of its worst token, of its worst channel and of the worst index of every
//     other axis. Element-wise limits fail every healthy port in bfloat16, correlation passes a doubled tensor, and
//     one norm over all elements hides a wrong token next to a massive activation. The other metrics are shown and
//     decide nothing.
//   - Integers, booleans and masks have no tolerance.
//
// The limits apply to the error accumulated since the input. They come from the user, from multiples of the noise
// floor measured by the walk for the prompt, or from a table by dtype. Limits tell a bug from noise only roughly:
// amplified noise of a deep model can exceed a limit, and a small bug stays within it. The certificate of an
// [Isolator] tells a bug from noise.
//
// # The steps
//
// Data flow through the steps of a comparison in the order below. A step adds to the results of earlier steps.
// There is one exception: an entry declared as derived but fired by the engine becomes the engine's own entry once
// the certifier finds it wrong or undecided.
//
// Before the walk:
//
//  1. Package suitable reads the manifests, the token ids and the order, and refuses traces that cannot be compared.
//  2. Package plan reads the manifests, the order and the scopes, and selects the entries, passes and rows of the walk.
//  3. unlimited and expectations check the tolerances and the patterns of the user against the plan.
//
// For each pass and each entry of the plan (walk):
//
//  4. pairing reads two records and makes a pair: axes, common rows, the order of cached keys, shapes.
//  5. measurer reads the numbers of the pair and writes metrics, gate and the first visible difference (shape, NaN,
//     keys, numbers, dtype, limit). nextTokens reads the logits as a choice of the next token. facts keeps the limit and
//     whether the two sides agree, and holds position_ids to the number of token ids.
//  6. certifier asks the chain of the [Isolator], and writes the certificate, the standing, and the name of a bug. The
//     chain reads facts. Where the chain needs the facts of a later entry, steps 4 and 5 of the later entry are done
//     first, once. Then certifier asks whether a constant tensor is the constant of the order.
//  7. settle reads seen, standing, content and policy, including the baseline; [Judge] turns them into the final
//     verdict.
//  8. keep reads the decided row: expected, allow and blame mark it, decided remembers it by key, and the first
//     mismatch becomes the [Divergence], with hinter's hints for the next step. Unless [Options].All is set, the
//     walk ends there.
//
// After the walk:
//
//  9. downstream measures how far the error of the divergence spreads.
//  10. account counts the compared entries, lists the missing and the unknown tensors, and states why the comparison
//     is incomplete; isolationOf sums up the certificates; the baseline reports on its lines. The last sentence
//     names the basis of the outcome.
//  11. certifier says which of the usual mistakes the run would have shown, on request.
//
// Later entries and tensors are certified and measured ahead, on all cores (lookahead, readahead). No verdict
// depends on the progress of this work.
package compare
