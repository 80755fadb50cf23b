package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// What was found of a large model is used in the next run as long as the tensors, the weights and tracediff are the same to the byte, and the report
// is the same, as it is on any number of cores and with any memory. A wrong element is found whatever was found before.
func TestRememberedCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.CopyFS(at("model"), os.DirFS("../../fixtures/gemma3n-tiny")))
	checkpointtest.Enlarge(t, at("model/model.safetensors"))
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, at("tracediff")))
	cores := "2"
	run := func(args ...string) (out, said string, code int) {
		t.Helper()
		cmd := exec.Command(at("tracediff"), append(args, "--verbose")...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+cores, "HOME="+dir, "XDG_CACHE_HOME="+at("cache"), "LocalAppData="+at("cache"), "NO_COLOR=1")
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
	if _, said, code := run("capture", "--model", at("model"), "--tokens", "5,6,7,8", "--level", "3", "--dir", at("run"), "--reference", "go"); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	const earlier = "results come from an earlier run"
	local := at("run/local.safetensors")
	compare := func(when string, known bool, code int, more ...string) string {
		t.Helper()
		out, said, got := run(append([]string{"compare", local, at("run/reference.safetensors"), "--model", at("model")}, more...)...)
		if got != code || strings.Contains(said, earlier) != known {
			t.Errorf("%s: exit %d, want %d, and it says\n%s%s", when, got, code, out, said)
		}
		return out
	}
	first := compare("the first time", false, 0)
	if again := compare("again", true, 0); again != first {
		t.Errorf("the report is\n%s\nand with what was found\n%s", first, again)
	}
	f, err := os.OpenFile(local, os.O_RDWR, 0)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	last := make([]byte, 1) // of the logits' last element, its sign
	_, err = f.ReadAt(last, info.Size()-1)
	must(t, err)
	_, err = f.WriteAt([]byte{last[0] ^ 1<<7}, info.Size()-1)
	must(t, err)
	if out := compare("with another element", true, 1); !strings.Contains(out, "logits") {
		t.Errorf("with another element the report is\n%s", out)
	}
	_, err = f.WriteAt(last, info.Size()-1)
	must(t, err)
	must(t, f.Close())
	if again := compare("after it", true, 0); again != first {
		t.Errorf("the report is\n%s\nand after a wrong one\n%s", first, again)
	}
	for _, c := range []struct{ cores, memory string }{{"1", "64MiB"}, {"8", "256MiB"}, {"2", "4GiB"}} {
		must(t, os.RemoveAll(at("cache/tracediff/certificates")))
		cores = c.cores
		if out := compare("of nothing that is kept", false, 0, "--memory", c.memory); out != first {
			t.Errorf("on %s cores and with %s of memory the report is\n%s\nwant\n%s", c.cores, c.memory, out, first)
		}
	}
	for _, memory := range []string{"", "1", "63MiB", "much", "-1GiB"} {
		if _, said, code := run("compare", local, at("run/reference.safetensors"), "--model", at("model"), "--memory", memory); code != 2 || !strings.Contains(said, "hint: want a number and its unit") {
			t.Errorf("--memory %q: exit %d, %s", memory, code, said)
		}
	}
	if out := compare("with more work for searches", false, 0, "--search-work", "30x"); out != first {
		t.Errorf("where nothing is searched for, more work for it gives\n%s\nwant\n%s", out, first)
	}
	for _, times := range []string{"", "0x", "x", "-3", "1.5x", "1001x", "30xx"} {
		if _, said, code := run("compare", local, at("run/reference.safetensors"), "--model", at("model"), "--search-work", times); code != 2 || !strings.Contains(said, "hint: want a whole number from 1x to 1000x") {
			t.Errorf("--search-work %q: exit %d, %s", times, code, said)
		}
	}
}

// A mistake has the same report, byte for byte, on any number of cores and with any memory.
func TestAFindingIsTheSameWithLittleRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, at("tracediff")))
	run := func(cores string, args ...string) (code int, said string) {
		cmd := exec.Command(at("tracediff"), args...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+cores, "HOME="+dir, "XDG_CACHE_HOME="+t.TempDir(), "LocalAppData="+t.TempDir(), "NO_COLOR=1")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	if code, said := run("2", "capture", "--dtype", "float32", "--tokens", "5,6,7,8,9", "--level", "3", "--dir", at("run"), "--reference", "go"); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	doubled(t, at("run/local.safetensors"), "layers.0.mlp.down_proj")
	var first []byte
	for _, c := range []struct{ cores, memory string }{{"1", "256MiB"}, {"2", "4GiB"}, {"8", "64MiB"}, {"8", "4GiB"}} {
		code, said := run(c.cores, "compare", at("run/local.safetensors"), at("run/reference.safetensors"), "--memory", c.memory, "--report", "json="+at("report.json"))
		report, err := os.ReadFile(at("report.json"))
		must(t, err)
		if code != 1 || !strings.Contains(said, "multiplied by 2") {
			t.Fatalf("exit %d: %s", code, said)
		}
		if first == nil {
			first = report
		}
		if !bytes.Equal(report, first) {
			t.Errorf("on %s cores and with %s the report is\n%s\nwant\n%s", c.cores, c.memory, report, first)
		}
	}
}

// doubled doubles the numbers of a float32 tensor in a safetensors file.
func doubled(t *testing.T, file, tensor string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	start := 8 + binary.LittleEndian.Uint64(data)
	var header map[string]json.RawMessage
	must(t, json.Unmarshal(data[8:start], &header))
	var entry struct {
		Offsets [2]uint64 `json:"data_offsets"`
	}
	must(t, json.Unmarshal(header[tensor], &entry))
	numbers := data[start+entry.Offsets[0] : start+entry.Offsets[1]]
	for i := 0; i < len(numbers); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(numbers[i:]))
		binary.LittleEndian.PutUint32(numbers[i:], math.Float32bits(2*x))
	}
	must(t, os.WriteFile(file, data, 0o600))
}
