//go:build !unix || race

package capture_test

import "testing"

func TestKill(t *testing.T) {
	t.Skip("needs unix: signals, and no race detector, which slows each of hundreds of processes")
}

func TestKillFailing(t *testing.T) {
	t.Skip("needs unix: signals, and no race detector, which slows each of hundreds of processes")
}
