//go:build unix

package reference

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
)

// shell is a command line for sh.
func shell(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", "-c", line)
}

// group puts a command into its own process group. When the command's context is done, the whole group ends. The group is
// not the terminal's group, so an interrupt from the keyboard arrives once, through the context.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills the rest of a command's process group. An error means that no process is left.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// quote quotes a word for a POSIX shell; false for a text that cannot be a word.
func quote(s string) (string, bool) {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", !strings.ContainsRune(s, 0)
}
