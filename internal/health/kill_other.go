//go:build !unix

package health

import "os/exec"

// killGroup does nothing: only the process itself is killed.
func killGroup(*exec.Cmd) {}
