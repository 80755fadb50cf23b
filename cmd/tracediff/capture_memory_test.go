package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The reference of a long prompt is the same, byte for byte, on any number of cores and with any memory, and so is its noise floor: with 256 MiB its scores are
// computed in pieces, with 64 MiB its masks too, and with 4 GiB neither.
func TestAReferenceIsTheSameWithLittleMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.CopyFS(at("model"), os.DirFS("../../fixtures/gemma3-tiny")))
	config, err := os.ReadFile(at("model/config.json"))
	must(t, err)
	longer := bytes.Replace(config, []byte(`"max_position_embeddings": 128`), []byte(`"max_position_embeddings": 1024`), 1)
	if bytes.Equal(config, longer) {
		t.Fatal("the model has other positions")
	}
	must(t, os.WriteFile(at("model/config.json"), longer, 0o666))
	var ids []string
	for k := range 700 {
		ids = append(ids, strconv.Itoa(2+k%150))
	}
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, at("tracediff")))
	run := func(cores string, args ...string) (code int, said string) {
		args = append([]string{"capture", "--model", at("model"), "--tokens", strings.Join(ids, ",") + ";7", "--side", "reference", "--reference", "go"}, args...)
		cmd := exec.Command(at("tracediff"), args...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+cores, "HOME="+dir, "XDG_CACHE_HOME="+at("cache"), "LocalAppData="+at("cache"), "NO_COLOR=1")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	var first [2][]byte
	for _, c := range []struct{ cores, memory string }{{"1", "256MiB"}, {"2", "4GiB"}, {"2", "64MiB"}} {
		code, said := run(c.cores, "--dir", at("run"), "--memory", c.memory)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, said)
		}
		floors, err := filepath.Glob(at("run/references/*.floor.json"))
		must(t, err)
		if len(floors) != 1 {
			t.Fatalf("noise floors: %v", floors)
		}
		for k, name := range []string{at("run/reference.safetensors"), floors[0]} {
			data, err := os.ReadFile(name)
			must(t, err)
			if first[k] == nil {
				first[k] = data
			}
			if !bytes.Equal(data, first[k]) {
				t.Errorf("on %s cores and with %s %s has other bytes", c.cores, c.memory, filepath.Base(name))
			}
		}
		must(t, os.RemoveAll(at("run")))
	}
	for _, memory := range []string{"", "1", "63MiB", "much", "-1GiB"} {
		if code, said := run("2", "--dir", at("run"), "--memory", memory); code != 2 || !strings.Contains(said, "hint: want a number and its unit") {
			t.Errorf("--memory %q: exit %d, %s", memory, code, said)
		}
	}
	if _, err := os.Stat(at("run")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a capture that was refused left a folder: %v", err)
	}
}
