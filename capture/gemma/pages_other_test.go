//go:build !linux

package gemma_test

import "testing"

func TestLayersTouchNoOtherLayersPages(t *testing.T) {
	t.Skip("needs linux: a process's table of pages")
}
