// Package chain finds the entries on an unbroken chain of correct operations back to the token ids.
//
// [Chain.At] certifies an entry by package isolate, and then asks the same of the captured tensors that the entry is
// computed from. The entry's chain is unbroken if all of them are right on their own inputs.
//
// A [Link] is the certificate of one entry, or the reason for its absence. A [Gap] is the first break of a chain on
// the way from the token ids: an entry without a certificate, an entry wrong on its own inputs, an entry with
// bounds wider than its limit, or an input with different values on the two sides. [Facts] supplies what
// the comparison knows of each entry before any entry is certified: the limit, and whether the two sides agree.
//
// A [Reparametrisation] is the same model in other numbers: permuted channels, a factor applied elsewhere,
// positions shifted by a constant. Its entries are wrong on their own inputs, or are computed from such entries,
// and the difference cancels in a later entry. [Edits] supplies the edit of each wrong entry.
package chain
