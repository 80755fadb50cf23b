//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A closed terminal ends a run as an interrupt does, with the whole process group of the port: what the port has started, and what does not end when it is
// asked to. The terminal and its shell may both send the signal. The key that quits a program ends a run in the same way.
func TestHangupEndsThePort(t *testing.T) {
	for name, signals := range map[string][]os.Signal{"hangup": {syscall.SIGHUP, syscall.SIGHUP, syscall.SIGHUP}, "quit": {syscall.SIGQUIT}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endsThePort(t, signals)
		})
	}
}

func endsThePort(t *testing.T, signals []os.Signal) {
	t.Helper()
	dir := t.TempDir()
	stubborn := `trap "" HUP TERM; sleep 600 & echo $! $$ >pids.new; mv pids.new pids; while :; do wait; sleep 1; done`
	cmd, said := hungUp(t, dir, "", "exec:"+stubborn)
	for _, s := range signals {
		must(t, cmd.Process.Signal(s))
		time.Sleep(20 * time.Millisecond)
	}
	_ = cmd.Wait() // the status is looked at below
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
		t.Errorf("exit status %d, want %d", got, exitInterrupted)
	}
	if !strings.Contains(said.String(), "interrupted; the command was ended with its process group") {
		t.Errorf("it does not say that the command was ended: %s", said)
	}
	pids, err := os.ReadFile(filepath.Join(dir, "pids"))
	must(t, err)
	for _, pid := range strings.Fields(string(pids)) {
		if state, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output(); len(state) > 0 && state[0] != 'Z' {
			n, err := strconv.Atoi(pid)
			must(t, err)
			_ = syscall.Kill(n, syscall.SIGKILL) // leave nothing behind where the test fails
			t.Errorf("process %s of the port still runs: %s", pid, state)
		}
	}
}

// A run that was started with nohup goes on when the terminal is closed.
func TestHangupIgnored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	golden, err := filepath.Abs("../../fixtures/golden/gemma3n-tiny/hello.float32.safetensors")
	must(t, err)
	cmd, said := hungUp(t, dir, `trap "" HUP; `, "exec:echo $$ >pids; while ! test -e go; do sleep 0.02; done; cp "+golden+" {out}")
	must(t, cmd.Process.Signal(syscall.SIGHUP))
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// hungUp starts a comparison in a folder, by a shell that first does what before says, and waits until its port has written the file "pids".
func hungUp(t *testing.T, dir, before, local string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, filepath.Join(dir, "tracediff")))
	said := &bytes.Buffer{}
	cmd := exec.Command("/bin/sh", "-c", before+`exec ./tracediff compare --gate=false --prompt "Hello world" --dtype float32 --local "$0"`, local)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	must(t, cmd.Start())
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(dir, "pids")); err == nil && bytes.HasSuffix(text, []byte("\n")) {
			return cmd, said
		}
		if time.Now().After(end) {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it ends its port, too; the failure says why
			_ = cmd.Wait()
			t.Fatalf("the port did not start: %s", said)
		}
	}
}
