package reference

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// shell is a command line for cmd.exe, which does not split arguments like other programs: cmd.exe gets the line
// unchanged.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /d /s /c "` + line + `"`}
	return cmd
}

// group ends the children of a command with the command; Windows would let the children run.
func group(cmd *exec.Cmd) {
	cmd.Cancel = func() error {
		return exec.Command("taskkill", "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid)).Run()
	}
}

func endGroup(*exec.Cmd) {}

// quote quotes a word for cmd.exe and for the argument rules of the C runtime; false for characters that have a meaning
// in cmd.exe even within quotes.
func quote(s string) (string, bool) { return `"` + s + `"`, !strings.ContainsAny(s, "\x00\r\n\"%!") }
