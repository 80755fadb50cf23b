//go:build !unix

package main

import "testing"

func TestInterruptLeavesWhatWasCaptured(t *testing.T) { t.Skip("needs unix: signals") }
func TestHangupEndsThePort(t *testing.T)              { t.Skip("needs unix: signals") }
func TestHangupIgnored(t *testing.T)                  { t.Skip("needs unix: signals") }
