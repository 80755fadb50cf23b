// Package picture makes small pictures of tensors, for a report that a person reads: where in a tensor the two sides differ, by how
// much, and which values are furthest apart.
//
// A picture has a bounded size: the map of the error is max-pooled, so that a single wrong element keeps its darkness. No verdict rests on a
// picture. It is made while the tensors are compared, from the same parts, for one more pass over the numbers. A comparison makes
// pictures only on request.
package picture
