//go:build unix

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// On a terminal each stage that takes its time says what runs, how far it is, how many bytes there are and how fast they come, in one
// line that goes away. In a file, in a dumb terminal and with --quiet nothing is drawn.
func TestProgressInATerminal(t *testing.T) {
	dir := t.TempDir()
	tty := newTerminal(t, dir)
	self, err := exec.LookPath("show-progress")
	must(t, err)
	tty.line(self)
	tty.shows("capturing transformers [", "MB 2 of 5, 3.0 MiB, ", " MiB/s")
	if screen := tty.shows("a line above"); strings.Count(screen, "\n") > 24 {
		t.Error(screen)
	}
	for i, quiet := range []string{self + " 2>log", self + " --quiet", self + " --debug", "TERM=dumb " + self} {
		tty.do("pipe-pane", "cat >"+filepath.Join(dir, fmt.Sprint(i)))
		tty.line(fmt.Sprintf("clear; %s; expr %d + 1000", quiet, i))
		tty.shows(fmt.Sprint(1000+i, " $"))
		drawn, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		must(t, err)
		if strings.Contains(string(drawn), "transformers [") || !strings.Contains(string(drawn), "show-progress") {
			t.Errorf("%s: %s", quiet, drawn)
		}
	}

	// The stages of a comparison with the walk that take more than a moment.
	tracediff, err := exec.LookPath("tracediff")
	must(t, err)
	log := filepath.Join(dir, "drawn")
	tty.do("pipe-pane", "cat >"+log)
	tokens := strings.TrimSuffix(strings.Repeat("2,527,876,", 20), ",")
	tty.line("clear; " + tracediff + " compare --isolate --tokens " + tokens + " --reference go --level 3 >out; expr 2000 + 1")
	tty.shows("2001 $")
	drawn, err := os.ReadFile(log)
	must(t, err)
	for _, stage := range []string{"capturing the reference walk", "measuring the noise floor", "comparing and verifying"} {
		if !regexp.MustCompile(regexp.QuoteMeta(stage) + ` .*of \d+, [0-9.]+ [KMG]iB, [0-9.]+ [KMG]?i?B/s`).Match(drawn) {
			t.Errorf("%s draws nothing", stage)
		}
	}
	if !regexp.MustCompile(`comparing and verifying .*B/s (looking for|pass\d+/|)[a-z]+`).Match(drawn) {
		t.Error("it does not say what is verified")
	}

	// A check of a file of zeros, as a hole.
	const tensors, rows, columns = 8, 1 << 11, 1 << 11
	var parts []string
	for k := range tensors {
		parts = append(parts, fmt.Sprintf(`"layers.%d.out":{"dtype":"F32","shape":[1,%d,%d],"data_offsets":[%d,%d]}`, k, rows, columns, k*rows*columns*4, (k+1)*rows*columns*4))
	}
	header := "{" + strings.Join(parts, ",") + "}"
	zeros := filepath.Join(dir, "zeros.safetensors")
	must(t, os.WriteFile(zeros, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o666))
	must(t, os.Truncate(zeros, int64(8+len(header)+tensors*rows*columns*4)))
	log = filepath.Join(dir, "drawn by check")
	tty.do("pipe-pane", "cat >'"+log+"'")
	tty.line("clear; " + tracediff + " check " + zeros + " >out; expr 3000 + 1")
	tty.shows("3001 $")
	drawn, err = os.ReadFile(log)
	must(t, err)
	if !regexp.MustCompile(`checking .*of \d+, [0-9.]+ [KMG]iB, [0-9.]+ [KMG]?i?B/s`).Match(drawn) {
		t.Errorf("check draws %q", drawn)
	}
}
