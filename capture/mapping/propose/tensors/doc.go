// Package tensors compares the numbers of tensors: those of a dump with those that an entry of the order has.
//
// A [Tensor] is read where its numbers are needed. A [Reader] keeps the numbers, their sorted copy and a summary of them, so that most
// pairs are told apart without a look at an element. A [Comparison] has a reader for each side and measures a relative L2 distance: of the
// elements in a layout, of the sorted elements, or of the elements as they lie. Below [Near] two tensors have the same values but for rounding.
// [Digests] say which tensors of a dump have the same bytes.
package tensors
