// Package chain says which entries stand on an unbroken chain of correct operations back to the token ids.
//
// A [Link] is the certificate of one entry, or why it has none. A [Gap] is where a chain breaks first on the way from the token ids: an entry without a certificate, one
// that is wrong on its own inputs, one whose bounds are wider than its limit, or an input that the two sides do not share. [Walk] is what a chain asks of the comparison it is a part
// of: limits, known divergences and arguments.
//
// A [Reparametrisation] is the same model in other numbers: channels in another order, a factor that is taken elsewhere, positions that are all shifted. Its entries are wrong
// by themselves or are computed from one that is, and what they do otherwise cancels in a later entry that is right. [Edits] say with which change an entry is given.
package chain
