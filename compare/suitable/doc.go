// Package suitable decides, before a comparison, whether two traces can be compared at all.
//
// [Check] refuses traces with a sentence and a hint, in this order: an incomplete trace; different weights; a trace
// with several sequences or with padding; a trace with tensors in contradiction to its manifest or to the order, as
// after rewriting by another program; different configurations; different orders. A declaration on only one side is
// not a difference. An A/B comparison accepts different configurations and orders, and receives the differences as
// a list. [PaddedAsFound] refuses padding found only at a divergence.
package suitable
