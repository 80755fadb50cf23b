package reference

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// shell is a command line for cmd.exe, which does not split arguments as other programs do: it gets the line as it is.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /d /s /c "` + line + `"`}
	return cmd
}

// group ends a command's children with it, which Windows otherwise leaves alone.
func group(cmd *exec.Cmd) {
	cmd.Cancel = func() error {
		return exec.Command("taskkill", "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid)).Run()
	}
}

func endGroup(*exec.Cmd) {}

// quote quotes a word for cmd.exe and for the C runtime's splitting behind it; false for what cmd.exe would act on even
// within quotes.
func quote(s string) (string, bool) { return `"` + s + `"`, !strings.ContainsAny(s, "\x00\r\n\"%!") }
