// Package axes lists the layouts in which a tensor of some shape can hold an entry, or several entries that an engine computes as one.
//
// It knows shapes, names of axes and the sizes of a model, and no values: [Layouts] and [Parts] say what is possible, and the values of a
// dump say which of the layouts is meant. A layout is text in the words of package layout, "t (h d) -> 1 h t d".
package axes
