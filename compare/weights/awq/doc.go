// Package awq finds factors that cancel between the tensors of a layer.
//
// AWQ multiplies the columns of a matrix by scales before it rounds them, and divides by the same scales what the columns are multiplied with:
// the weight of the norm before it, or the rows of the matrix whose result they take. The port computes what the original does, and neither
// tensor is the original's. So both are right where their factors cancel.
//
// The factors of a norm are known: the original's weight over the port's. Those of columns and rows of codes are measured, as the slope of the
// port's numbers over the original's, with the standard error that the codes leave it.
package awq
