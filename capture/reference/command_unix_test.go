//go:build unix

package reference_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// Whatever a value holds, the shell hands it to the program as it is.
func TestValuesReachTheProgram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", "")
		c := reference.Command{Line: "printf %s {prompt}", Input: reference.Input{Prompt: text}}
		line, err := c.Expand()
		if err != nil {
			t.Fatal(err)
		}
		got, err := exec.Command("sh", "-c", line).Output()
		if err != nil || string(got) != text {
			t.Fatalf("%q arrives as %q (%v)", text, got, err)
		}
	})
}

func TestExpand(t *testing.T) {
	c := reference.Command{Input: reference.Input{Tokens: "2,5;7", NoPrompt: "there is none"}, Out: "/tmp/it's"}
	for _, test := range []struct{ why, line, want, err string }{
		{"no placeholder", "make run", "make run", ""},
		{"values are quoted", "port {tokens} {out}", `port '2,5;7' '/tmp/it'\''s'`, ""},
		{"an empty value is a word", "port {model}", "port ''", ""},
		{"braces of the shell", "${HOME} { a; } {} {A} {a,b} {1..3}", "${HOME} { a; } {} {A} {a,b} {1..3}", ""},
		{"a doubled brace", "awk '{{print}' {{{tokens}", "awk '{print}' {'2,5;7'", ""},
		{"values are not expanded again", "{out}", `'/tmp/it'\''s'`, ""},
		{"an unknown name", "port {token}", "", "{token}; known are {prompt}, {tokens}, {model}, {order}, {out}"},
		{"no prompt to give", "port {prompt}", "", "there is none"},
	} {
		c.Line = test.line
		got, err := c.Expand()
		if test.err == "" && (err != nil || got != test.want) || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %q is %q, %v; want %q, %s", test.why, test.line, got, err, test.want, test.err)
		}
	}
}

// An interrupted command is gone with what it had started, also with what does not want to go.
func TestInterruptEndsTheWholeGroup(t *testing.T) {
	for name, line := range map[string]string{
		"a child":                           "sleep 600 & echo $! $$ >pids; wait",
		"a child that ignores the signal":   "(trap '' TERM; sleep 600) & echo $! $$ >pids; wait",
		"a shell that ignores it":           "trap '' TERM; echo $$ $$ >pids; while :; do sleep 600; done",
		"a child that holds the output":     "sleep 600 & echo $! $$ >pids",
		"a child in a pipe, after the exit": "(sleep 600; echo late) & echo $! $$ >pids; exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			pids := filepath.Join(dir, "pids")
			go func() {
				for ctx.Err() == nil {
					if data, _ := os.ReadFile(pids); bytes.HasSuffix(data, []byte("\n")) {
						break
					}
					time.Sleep(time.Millisecond)
				}
				stop()
			}()
			c := reference.Command{Line: line, Folder: dir, Out: filepath.Join(dir, "out.safetensors"), Show: &bytes.Buffer{}, DType: hooks.F32}
			started := time.Now()
			if err := c.Run(ctx); err == nil {
				t.Error("a command without a trace succeeded")
			}
			if d := time.Since(started); d > 30*time.Second {
				t.Errorf("it took %s", d)
			}
			data, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range strings.Fields(string(data)) {
				pid, err := strconv.Atoi(word)
				if err != nil {
					t.Fatal(err)
				}
				gone(t, pid)
			}
		})
	}
}

// gone waits until a process has ended; one that was killed may still be waiting to be collected.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil && strings.HasPrefix(string(state), "Z") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// What a command left is looked at whatever its status says, and its status whatever it left.
func TestRunJudgesTheTrace(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.safetensors")
	w, err := capture.Create(good, capture.Manifest{}, 0)
	if err == nil {
		err = w.Observe(hooks.Event{Name: "x", Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{1}, Data: make([]byte, 4)}})
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.safetensors")
	if w, err = capture.Create(empty, capture.Manifest{}, 0); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ line, err string }{
		{"cp good.safetensors {out}", ""},
		{"cp good.safetensors \"$TRACEDIFF_OUT\"", ""},
		{"cp good.safetensors {out}; exit 3", "the command failed (exit status 3), although its trace is complete"},
		{"kill -9 $$", "signal: killed"},
		{"cp empty.safetensors {out}", "holds no tensors"},
		{"head -c 100 good.safetensors >{out}", "exit status 0"},
		{"cp good.safetensors {out}; touch -t 200001010000 {out}", ""}, // the content decides, not the date
		{"no-such-program-anywhere", "exit status 127"},
	} {
		out := filepath.Join(dir, "out.safetensors")
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		c := reference.Command{Line: test.line, Folder: dir, Out: out, Show: &bytes.Buffer{}, DType: hooks.F32}
		err := c.Run(context.Background())
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %v, want %q", test.line, err, test.err)
		}
	}
	c := reference.Command{Line: "true", Out: good}
	if err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a command whose place is taken: %v", err)
	}
}
