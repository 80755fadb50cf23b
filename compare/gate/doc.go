// Package gate has the limits of accumulated errors: a person's own, multiples of the noise floor of a prompt, or a table by
// dtype, and says whether measured errors are within them.
package gate
