// Package plan lists the entries of a comparison, and the reasons for leaving out the rest.
//
// A [Plan] is made before the comparison, from the order, the manifests of both traces and the requested scope, and
// does not change. It has the entries in the order of the walk; the entries, passes and rows in every scope; the
// entries promised by each side, since a promised entry without a tensor is MISSING; the number of tokens of each
// pass, hence the position of each tensor's rows in the sequence; and the shape and axes of each entry in the
// order. The reasons are sentences.
package plan
