//go:build !linux

package checkpoint_test

import "testing"

func TestRelease(t *testing.T) { t.Skip("needs linux: a process's account of its mappings") }
