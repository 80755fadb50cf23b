//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// terminal is a session of tmux with one pane of 80 columns and 24 rows, which runs sh.
type terminal struct {
	t      *testing.T
	socket string
}

// newTerminal starts one in a folder. It ends with the test.
func newTerminal(t *testing.T, dir string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: it is the terminal")
	}
	sockets, err := os.MkdirTemp("", "tmux") // a socket's path is short
	must(t, err)
	tty := &terminal{t, filepath.Join(sockets, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", tty.socket, "kill-server").Run() // it is gone where the test has ended it
		must(t, os.RemoveAll(sockets))
	})
	tty.do("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir, "env", "PS1=$ ", "CI=", "sh")
	return tty
}

func (tty *terminal) do(args ...string) string {
	tty.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", tty.socket}, args...)...).CombinedOutput()
	if err != nil {
		tty.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// line types a line.
func (tty *terminal) line(text string) {
	tty.t.Helper()
	tty.do("send-keys", "-l", text)
	tty.do("send-keys", "Enter")
}

// shows waits until the screen has all of some texts, however its lines are broken, and returns it.
func (tty *terminal) shows(want ...string) string {
	tty.t.Helper()
	text := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		text = tty.do("capture-pane", "-p")
		words, all := strings.Join(strings.Fields(text), " "), true
		for _, w := range want {
			all = all && strings.Contains(words, w)
		}
		if all {
			return text
		}
	}
	tty.t.Fatalf("the screen does not show %q:\n%s", want, text)
	return ""
}

// modes says whether the cursor is shown, and whether the other screen is.
func (tty *terminal) modes() string {
	return strings.TrimSpace(tty.do("display-message", "-p", "cursor #{cursor_flag} other #{alternate_on}"))
}

// save writes a file as editors do: another one takes its place.
func save(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	text := strings.Replace(string(data), from, to, 1)
	if text == string(data) {
		t.Fatalf("%s has no %q", path, from)
	}
	must(t, os.WriteFile(path+"~new~", []byte(text), 0o666))
	must(t, os.Rename(path+"~new~", path))
}

func TestWatchInATerminal(t *testing.T) {
	watchesAPort(t, func(*terminal, string) {})
}

// The same behind a login over SSH: the watch runs in a terminal that sshd has opened, and tmux shows it.
func TestWatchOverSSH(t *testing.T) {
	ssh, err := sshTo(t)
	if _, err2 := exec.LookPath("tmux"); err != nil || err2 != nil {
		t.Skip("needs sshd and tmux: a login, and a terminal for it:", err, err2)
	}
	watchesAPort(t, func(tty *terminal, dir string) {
		tty.line(ssh + ` "cd '` + dir + `' && exec env 'PS1=over ssh: ' CI= sh"`)
		tty.shows("over ssh:")
		tty.line(`echo "from ${SSH_CONNECTION%% *}"`)
		tty.shows("from 127.0.0.1")
	})
}

// sshTo starts an sshd of its own, which ends with the test, and returns the command that logs into it, with a terminal. Its
// error says why this machine has none.
func sshTo(t *testing.T) (string, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ssh")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	// sshd starts itself again at each login, so its path has to be a whole one.
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd" // in the path of root alone
	}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			return "", fmt.Errorf("ssh-keygen: %w\n%s", err, out)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().(*net.TCPAddr)
	must(t, free.Close())
	config := filepath.Join(dir, "config")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "Port %d\nListenAddress 127.0.0.1\nHostKey %[2]s/host\nAuthorizedKeysFile %[2]s/user.pub\n"+
		"PasswordAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\n", address.Port, dir), 0o600))
	if out, err := exec.Command(sshd, "-t", "-f", config).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", sshd, err, out)
	}
	server := exec.Command(sshd, "-D", "-f", config)
	must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address.String())
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("ssh -tt -q -F /dev/null -p %d -i %s/user -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null 127.0.0.1", address.Port, dir), nil
}

// watchesAPort watches a port in C in a terminal: an edit of its source moves the first divergence, one that does not compile
// shows the compiler's words, Ctrl-C gives the terminal back. login is what is done in the terminal before.
func watchesAPort(t *testing.T, login func(tty *terminal, dir string)) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs cc: a C compiler")
	}
	root := sources(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, folder := range []string{"fixtures/ports/c", "hooks/c"} {
		must(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(root, folder))))
	}
	source := filepath.Join(dir, "fixtures/ports/c/port.h")
	save(t, source, "#define BUG NO_BUG", "#define BUG ROPE_INTERLEAVED")
	self, err := exec.LookPath("tracediff")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "watch.sh"), fmt.Appendf(nil, `exec %s watch --watch fixtures --prompt "Hello world" --dtype float32 --level 3 --layers 0 \
	--local 'exec:./port --model {model} --tokens {tokens} --layers 1 --out {out}' \
	-- sh -c 'cc -std=c99 -o port fixtures/ports/c/*.c -lm'
`, self), 0o666))

	tty := newTerminal(t, dir)
	login(tty, dir)
	tty.line("echo before the watch")
	tty.shows("before the watch")
	tty.line("sh watch.sh")
	screen := tty.shows("tracediff watch: fixtures (", "MISMATCH: 1 of", "first layers.0.self_attn.q_rope", "interleaved RoPE", "the next change runs it again")
	if lines := strings.Split(strings.TrimRight(screen, "\n"), "\n"); len(lines) > 24 || strings.Contains(screen, "before the watch") {
		t.Errorf("%d lines:\n%s", len(lines), screen)
	}
	if got := tty.modes(); got != "cursor 0 other 1" {
		t.Errorf("while it watches: %s", got)
	}

	save(t, source, "#define BUG ROPE_INTERLEAVED", "#define BUG FORGETS_SQRT2")
	tty.shows("fixtures/ports/c/port.h changed, took", "first divergence: was layers.0.self_attn.q_rope, now layers.0.attn_laurel (layers.0.self_attn.q_rope matches)", "first layers.0.attn_laurel")

	save(t, source, "#define BUG FORGETS_SQRT2", "#define BUG NO_SUCH_BUG")
	tty.shows("BUILD FAILED: sh -c cc -std=c99", "exit status 1", "NO_SUCH_BUG")

	save(t, source, "#define BUG NO_SUCH_BUG", "#define BUG NO_BUG")
	tty.shows("first divergence: was layers.0.attn_laurel, now none: everything compared matches", "MATCH: all 73 entries compared match")

	tty.do("send-keys", "C-c")
	tty.shows("before the watch", "watch ended after 4 runs", "MATCH: all 73 entries compared match")
	tty.line(`echo "status $?"`)
	tty.shows("status 130")
	if got := tty.modes(); got != "cursor 1 other 0" {
		t.Errorf("after it: %s", got)
	}
}
