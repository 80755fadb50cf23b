// Package diagnose names what is wrong with an operation. It looks for the one mistake with which the operation's program gives every element of every
// unexplained entry. There is a file for each mechanism of mistakes, and a file for each part of the catalogue.
//
// The concepts, in the order in which data flow:
//
//  1. An [Entry] is a captured tensor with the program of its operation, and a [Judge] that compares values with the tensor. The entries of a search
//     have one role, and no arithmetic of the port explains them.
//  2. Package naming prepares the entries and calls [Find]. Find goes through stages of generators (catalogue_stages.go), ordered by reach: the
//     tensor itself, the formula of the operation, the tensors and weights that the operation reads, steps outside of the formula, fewer bits, and
//     then parts, solved numbers (solve.go, narrow.go) and two edits at once. If only a part of the result is wrong, such as two heads or a tile of tokens and channels,
//     a stage tries mistakes in this part ([Mistake.Only], inpart.go). Numbers of each layer (solve_layers.go) come last, with the mistakes that a description of
//     the difference proposes, all numbers filled in (fitted.go). A generator yields each [Mistake] that the entries may have, as data. A wrong
//     window, for example, comes from windows in masks.go, in the stage of the formula. If a large entry is wrong in few tokens, an earlier stage has these masks. An edit
//     of steps has no kind during the search; it gets a kind when it is named (words.go). [Model.Apply] makes the edit of a mistake in the program
//     of any entry, by the row of the mistake's kind in the catalogue.
//     If nothing gives all elements, [FindTwo] takes the mistakes that bring the values nearest to the trace, and looks for a second mistake in the programs
//     that have the first ([Mistake.First], both.go).
//  3. Each hypothesis is evaluated on a few tokens of every entry, then on all tokens of all entries. On the few tokens it may leave an eighth of
//     the unexplained elements, since other orders of summation may give these. A hypothesis that gives every element is a match if the right
//     operation misses enough elements: 8 in 2 rows, 1 if the entry is a mask, and one more for each solved number. A hypothesis that shows less
//     gets no name, and is reported as the nearest.
//  4. A search ends after the first stage with a match, when its work is used up ([Finding.Stopped]), or after the last stage. Only matches of one
//     stage can leave a finding undecided, since later stages are not searched. Matches with equal values become one name and its aliases, in the
//     order of survivor.compare (rule.go): mistakes without solved numbers, mistakes with solved numbers, then relations. Within each of these the
//     most plausible class comes first, and weak kinds end a class. A kind that its class puts before a kind in its [Row.After] takes that kind's class, and comes after it. Several numbers
//     in one place are one name with [Mistake.Others] if they are nearly equal or reach down to 0. They are a missing step if any larger number
//     gives the same elements. Other matches with different values leave the finding undecided.
//     If the formula has numbers, the wrong entries of other roles with the same program ([Model.Peers]) decide between matches, and solve a number together with
//     the entries of the role (peers.go): a port has one epsilon for its norms.
//  5. A [Finding] is the outcome: the mistake with its sentence, proof, place and page. Without a name it lists the tried kinds and the nearest
//     mistake, with a [Description] of the difference.
//
// The catalogue (catalogue*.go) has a [Row] for each [Kind] of mistakes, with its sentence, its pages in docs/mistakes.md, its class and the function
// that applies it. Only the catalogue has sentences, and no code reads a sentence: code compares, stores and counts mistakes or their [Mistake.Key].
//
// [Usuals] are the usual mistakes of docs/mistakes.md. Each row of their table (catalogue_usual*.go) gives the mistake of an operation, with numbers
// from the operation's own program. [Model.Healthy] applies the usual mistakes to right operations of their roles, with the functions that apply
// mistakes in a search. The result tells which usual mistakes a run would have shown.
//
// A [Relation] is a statement about the port's own tensor, such as rows of zeros. It predicts no other entry, so it is not a mistake.
package diagnose
