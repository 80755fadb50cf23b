// Package propose finds the map that a dump needs: a dump has tensors with names of its own, and a map gives them the names of the entries
// of TENSOR_ORDER.
//
// A proposal is made in this order:
//
//  1. Names. Package names groups the tensors of a dump into templates: patterns such as "h.{L}.attn" with the layers, passes and ranks of
//     their tensors. A template has one or more forms, which are ways to get one tensor a layer: as it is, joined over ranks, the last row.
//  2. Roles. A role is an entry of the order in all layers. A role that no tensor of the dump has already is free.
//  3. Candidates. A form may be a role in a layout of its axes. Package axes lists the layouts that two shapes allow. A form, a role and a
//     layout are a candidate.
//  4. Values. Package tensors measures how near a candidate is to the reference, or to what the order computes for the role from the weights
//     of the checkpoint and from tensors that have a name already (computed.go).
//  5. Steps. Each step looks at the open templates and the free roles on the board, takes candidates, and writes a line for each that says
//     what the line stands on. A candidate that is taken is an operand from then on: more roles can be computed.
//  6. Closing. Names that would clash are left out, the lines of single layers are joined, and the rest is listed. If no entry without a
//     tensor can be wrong, a person has nothing to decide for the tensors that are still open.
//
// The steps, in the order in which they run:
//
//   - integers: token ids and positions, by name or by the reference;
//   - swapped: tensors of the order that have each other's names are a person's choice;
//   - values: a tensor has the numbers of an entry of the reference;
//   - computing: a tensor is what the order computes for an entry. A pair of open tensors is found together: one is the operand, the other
//     the result. Two copies of a tensor are no such pair. The parts of a fused tensor are several entries, by values or by computing;
//   - exchange: two tensors of one module have each other's values, and their words, or the order of the dump, say the opposite. If what is
//     computed from them takes them as the words say, the names stay, and the comparison reports the exchange;
//   - names: a known engine calls an entry so;
//   - guesses: first a tensor that is computed from another operand, or with other weights. Then one assignment over all open tensors and
//     free entries, whose score adds up alike words in names, the place in the dump, the shape that is the only one, and how near the
//     numbers are. A guess is dropped if it contradicts what is computed from it, and what follows from a guess is computed again;
//   - consumers: an entry whose consumers are right is right;
//   - singles: the same once more for single tensors and the entries of single layers;
//   - copies: a tensor with the bytes of one that has an entry is left out;
//   - fused and shapes: without a reference, the remaining lines are choices.
//
// Values, computing and fused parts prove a line. What the other steps find is not proven: such a line has by = "guess" or "name", see
// [mapping.ByGuess].
package propose
