//go:build !unix

package checkpoint

// release: the system takes back what it needs.
func (s shard) release() {}
