// Package diagnose names what is wrong with an operation: it looks for the one mistake with which the operation's program gives every element of
// every entry that is unexplained.
//
// In the order in which data flow:
//
//  1. An [Entry] is a captured tensor with the program of its operation, and a [Judge] that holds values to the tensor. The entries of a search
//     are those of one [Role] that no arithmetic of the engine explains.
//  2. [Find] goes through the stages of generators (catalogue_stages.go) by their reach: what the tensor itself shows, the formula of the operation, what it reads, what is no part of it, fewer bits,
//     parts. A generator yields each [Mistake] that the entries may have, as data: a wrong window comes from windows in masks.go.
//     [Model.Apply] makes the edit of a mistake in the program of any entry, by the function in the catalogue's row of its kind.
//  3. Each hypothesis is evaluated on a few tokens of the first entry, then on all entries. One that gives every element is a match if the right
//     operation misses enough elements: 8, and one more for each number that was solved.
//  4. The first stage with a match is the last. Within a reach the order of stages is that of their cost, and another order finds the same names: [Study] draws one. Matches with equal
//     values are one name with aliases: mistakes without solved numbers come first, then the most plausible class, then what [Row.After] says (rule.go). Matches with different values leave the
//     finding undecided.
//  5. A [Finding] is the outcome: the mistake with its sentence, proof, place and page. Without a name it is what was tried, what came nearest, and a [Description] of the difference.
//
// The catalogue (catalogue*.go) has a [Row] for each [Kind] of mistakes, with its sentence, its pages in docs/mistakes.md, its class and how it is applied. No other file of the
// package has a sentence, and nothing reads one: what is compared, stored and counted is the mistake or its [Mistake.Key].
//
// [Usuals] are the usual mistakes of docs/mistakes.md. Each row of their table (catalogue_usual*.go) gives the mistake of an operation, with its numbers from the operation's own program. [Model.Healthy]
// makes them in what is right, each in the operations of its roles alone, by the functions that make what a search finds: so it is known which of them a run would have shown.
//
// A [Relation] is a statement about the port's own tensor, such as rows of zeros. It predicts no other entry, so that it is no mistake.
package diagnose
