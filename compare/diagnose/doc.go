// Package diagnose names what is wrong with an operation: it looks for the one mistake with which the operation's program gives every element of
// every entry that is unexplained.
//
// In the order in which data flow:
//
//  1. An [Entry] is a captured tensor with the program of its operation, and a [Judge] that holds values to the tensor. The entries of a search
//     are those of one [Role] that no arithmetic of the engine explains.
//  2. [Find] makes hypotheses, the cheapest first. A hypothesis is an edit of a program with a [Mistake]: the mistake as data.
//  3. Each hypothesis is evaluated on a few tokens of the first entry, then on all entries. One that gives every element is a match if the right
//     operation misses enough elements: 8, and one more for each number that was solved.
//  4. Matches with equal values are one name with aliases. Matches with different values leave the finding undecided.
//  5. A [Finding] is the outcome: the mistake with its sentence, proof, place and page, or what was tried and what came nearest.
//
// The catalogue (catalogue*.go) has a [Row] for each [Kind] of mistakes, with its sentence and its pages in docs/mistakes.md. No other file of the
// package has a sentence, and nothing reads one: what is compared, stored and counted is the mistake or its [Mistake.Key].
//
// A [Relation] is a statement about the port's own tensor, such as rows of zeros. It predicts no other entry, so that it is no mistake.
package diagnose
