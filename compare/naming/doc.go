// Package naming says what is wrong with the entries of a trace that are a BUG. It prepares isolated entries for the search of package diagnose, which knows programs
// and values and no traces, and it is what the arithmetic of a form asks for mistakes.
//
// The pipeline of the entries of one role, in the order of [Names.Of]:
//
//  1. Quantised weights make every product wrong, by no mistake of a product: where most products look so, that is said and nothing is searched.
//  2. A mistake that the arithmetic of a form has found already is that of the role.
//  3. Suspects. The entries that the arithmetics of their forms leave something of are prepared in that arithmetic, or in a few where it is not known.
//  4. Cuts. The mistake is looked for between an entry and what was captured; then without masks and rotary tables, which follow from positions; without the caches of
//     earlier passes; and from products alone. All of these searches share one budget.
//  5. A name is that of all tokens: it was found by a few tokens of large entries, and is asked of all.
package naming
