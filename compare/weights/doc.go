// Package weights compares the checkpoint of a port with the one that it was converted from, tensor by tensor.
//
// Each tensor gets a class. EQUAL and CAST are said only where every element agrees: the same number, or the original rounded to a
// narrower format, to nearest even. QUANTISED is said where every code is the nearest to the original over the stored scale, or one step
// beside it. Everything else is wrong, and has a name where one relation explains every element: transposed, rows in another order,
// 1+w, another tensor's. A sample of elements chooses which relations are tried. It decides nothing: a relation is named after it was
// checked over the whole tensor.
//
// Tensors are read by blocks, so that memory does not grow with their size. Zeros are equal whatever their sign, and so are two NaN.
package weights
