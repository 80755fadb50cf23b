// Package measure measures two tensors of one shape: every metric in one pass over the data, with sums in float64 that are
// the same on any number of cores and with any instruction set. It decides nothing.
package measure
