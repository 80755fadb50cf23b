//go:build !unix

package files

// nonblock is nothing where a pipe is not a file of a folder.
const nonblock = 0

// noReader is false where opening waits for nobody.
func noReader(error) bool { return false }
