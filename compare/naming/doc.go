// Package naming names the mistakes in a trace's entries with a BUG. It prepares isolated entries for the search of
// package diagnose, which works on programs and values instead of traces. Package arithmetic asks it for the mistakes
// of a form.
//
// The pipeline of the entries of one role, in the order of [Names.Of]:
//
//  1. Quantised weights make every product wrong, without a mistake in any product: if most products look quantised,
//     the finding says so, and no search is made.
//  2. A mistake found earlier for the arithmetic of a form is also the mistake of the role.
//  3. Suspects. The entries with elements unexplained by the arithmetics of their forms are prepared in this
//     arithmetic, or in a few arithmetics if it is unknown.
//  4. Cuts. The search looks between an entry and its captured ancestors; then without captured masks and rotary
//     tables, which follow from positions; without the caches of earlier passes; and from captured products only. All
//     of these searches share one budget.
//     If there is no name, the entries of further roles that may have the same mistake are searched with these.
//  5. Dumps. If the entries have no name, they read a tensor that the trace has wrong, and they are right with the right
//     values of this tensor, then the dump does not hold what was read.
//  6. A name found in a few tokens of large entries is checked in all tokens. An entry is wrong only in the dump if step 5
//     holds for every entry that reads it.
package naming
