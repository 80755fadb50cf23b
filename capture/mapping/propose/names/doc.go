// Package names reads the names of the tensors of a dump.
//
// A name may have the number of a layer, of a pass and of a rank in it, in the words of any writer. An [Occurrence] is a tensor with these numbers;
// a number is that of a layer if a word before it says so, or if the names of a dump differ in it. Occurrences whose names differ in these numbers
// only make a [Template], and a template has one or more forms: see [Form]. [Template.Called] says whether a template has a known name of an
// entry, from the table of package spelling, and [Alikeness] how alike two names are by the meaning of their words.
package names
