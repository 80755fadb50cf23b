// Package diagnose names what is wrong with an operation: it looks for the one mistake with which the operation's program gives every element of
// every entry that is unexplained. It has many files: one for each mechanism of mistakes, and one for each part of the catalogue.
//
// In the order in which data flow:
//
//  1. An [Entry] is a captured tensor with the program of its operation, and a [Judge] that holds values to the tensor. The entries of a search
//     are those of one role that no arithmetic of the engine explains.
//  2. Package naming prepares the entries and calls [Find]. Find goes through the stages of generators (catalogue_stages.go) by their reach: what the tensor itself shows, the formula of the
//     operation, what the operation reads, what is no part of it, fewer bits, parts, solved numbers and two edits at once, and last numbers of each layer (solve_layers.go) and what a description of the
//     difference proposes with all its numbers filled in (fitted.go). A generator yields each [Mistake] that the entries may
//     have, as data: a wrong window comes from windows in masks.go, in the stage of the formula, and before it where a large entry is wrong in few tokens. An edit of steps has no kind
//     while it is searched for; it gets a kind when it is named (words.go). [Model.Apply] makes the edit of a mistake in the program of any entry, by the catalogue's row of its kind.
//  3. Each hypothesis is evaluated on a few tokens of every entry, where it may leave an eighth of what is unexplained, since orders of summation may give the rest; then on all tokens of
//     all entries. A hypothesis that gives every element is a match if the right operation misses enough of them: 8 in 2 rows, 4 if the entry is a mask, and one more for each number
//     that was solved. A hypothesis that shows less is no name, and is said to come nearest.
//  4. A search ends after the first stage with a match, where its work is spent ([Finding.Stopped]), or after the last stage. Later stages are not asked: only matches of one stage can
//     leave a finding undecided. Matches with equal values are one name and its aliases, in the order of survivor.compare (rule.go): what needs no solved number before what needs some
//     and before a relation; then the most plausible class, where a kind is at most as plausible as the kinds in its [Row.After]; weak kinds last in a class. Several numbers in one
//     place are one name with [Mistake.Others] if they are nearly equal or reach down to 0, and a step left out if any larger number gives the same. Other matches with different
//     values leave the finding undecided.
//  5. A [Finding] is the outcome: the mistake with its sentence, proof, place and page. Without a name it is what was tried, what came nearest, and a [Description] of the difference.
//
// The catalogue (catalogue*.go) has a [Row] for each [Kind] of mistakes, with its sentence, its pages in docs/mistakes.md, its class and how it is applied. No other file of the
// package has a sentence, and nothing reads one: what is compared, stored and counted is the mistake or its [Mistake.Key].
//
// [Usuals] are the usual mistakes of docs/mistakes.md. Each row of their table (catalogue_usual*.go) gives the mistake of an operation,
// with its numbers from the operation's own program. [Model.Healthy] makes them in what is right, each only in the operations of its
// roles, by the functions that make what a search finds: so it is known which of them a run would have shown.
//
// A [Relation] is a statement about the port's own tensor, such as rows of zeros. It predicts no other entry, so that it is no mistake.
package diagnose
