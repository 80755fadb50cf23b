//go:build unix

package health

import (
	"os/exec"
	"syscall"
)

// killGroup has cmd and whatever it starts killed together: a shim starts the real interpreter as a child.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
