// Package picture makes small pictures of tensors, for a report that a person reads: where in a tensor the two sides differ, by how
// much, and which values are furthest apart.
//
// A picture has a bounded size whatever the tensor's: a map of the error is max-pooled, so that one wrong element is as dark as it
// would be alone. No verdict rests on a picture. It is made while the tensors are compared, from the same parts of them, and costs
// one more pass over their numbers; a comparison that nobody wants pictures of does not make any.
package picture
