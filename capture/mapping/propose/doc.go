// Package propose finds the map that a dump needs. A dump has tensors with names of its own, a map gives them the names of the entries of TENSOR_ORDER.
//
// A proposal is made in steps. Each step takes tensors that the steps before left open, and says in the line what it stands on:
//
//   - by values: a tensor has the numbers of an entry of the reference;
//   - by computing: a tensor is what the order computes for an entry, from the weights of the checkpoint and from tensors that have a name. A pair of open tensors
//     is found together: one is the operand, the other the result. Two copies of a tensor are no such pair;
//   - exchanged: two tensors of one module have each other's values, and their words, or the order of the dump, say the opposite. If what is computed from them takes them as the words
//     say, the names stay, and the comparison reports the exchange;
//   - fused: parts of a tensor are several entries, by values or by computing;
//   - by names: a known engine calls an entry so;
//   - by the rest: one assignment over all tensors and entries that are left, whose score adds up alike words in names, the place in the dump, the shape that is the
//     only one, and how near the numbers are. A tensor that an entry is computed to be from another operand, or with other weights, comes first. A guess that contradicts what is computed
//     from it is dropped, and what follows from a guess is computed again;
//   - by consumers: an entry whose consumers are right is right;
//   - copies: a tensor with the bytes of one that has an entry is left out;
//   - by shapes: what is left is a choice, where there is no reference.
//
// If no entry without a tensor can be wrong, a person has nothing to decide for the tensors that are still open.
//
// Values, computing and fused parts prove a line. What the other steps find is not proven: such a line has by = "guess" or "name", see [mapping.ByGuess].
package propose
