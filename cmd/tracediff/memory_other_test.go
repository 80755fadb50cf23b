//go:build !linux

package main

import "testing"

func TestMemoryIsIndependentOfSize(t *testing.T) {
	t.Skip("needs linux: the kernel's count of a process's memory")
}
