// Package certify isolates entries of a trace: it computes each again from the trace's own captured ancestors and the
// checkpoint, and says by error bounds whether correct arithmetic can have made it, and which entries stand on an unbroken
// chain of correct operations back to the token ids.
package certify
