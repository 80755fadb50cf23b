// Package diagnose names what is wrong with an operation: it looks for the one edit of the operation's program with which the
// program gives every element of every entry that is left.
//
// The edits are the same for all programs (see [program.Edit]): a step left out, another constant, another weight. No
// operation has a list of its own mistakes.
package diagnose
