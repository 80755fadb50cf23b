// Package redflag looks for values that are nearly always wrong in one trace, without a reference: probabilities that do not sum to 1, keys without
// rotation, a cache of zeros, missing gradients.
//
// A [Flag] may fail a build, so the limit of each [Kind] leaves a wide margin for healthy models. No golden trace of transformers raises a flag.
// docs/inside.md has the condition of each kind, and docs/results/inside.md how near the goldens come. Values that are only unusual raise no flag. A
// trace without flags may still be wrong: a wrong theta, or a window that is off by one, raises no flag. To find such mistakes, compare the trace with
// a reference (package compare).
//
// The role of a tensor follows from its name, by the vocabulary of TENSOR_ORDER and a few other common words (see [Kinds] and docs/inside.md). So any
// safetensors file with such names can be checked. With the configuration of the model, the order also gives the inputs of each entry, from which
// follows where a fault began, and the dtype of the entry.
//
// Each check is a function of the trace. The table checks lists the checks in order, with the tensors that a check reads and the kinds that it
// raises.
//
// Tensors are read in strips: once for their numbers, and again in the checks that compare tensors. Memory grows with the header and with the longest
// row, which is limited to maxRow elements.
package redflag
