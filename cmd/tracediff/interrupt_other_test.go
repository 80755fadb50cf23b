//go:build !unix

package main

import "testing"

func TestInterruptLeavesWhatWasCaptured(t *testing.T) { t.Skip("needs unix: signals") }
