package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// What a large reference has cleared is kept, and is used while the trace, the program, the weights and tracediff are the same to the byte. A
// file that was damaged is made again. The report is the same with it and without.
func TestKeptClearance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.CopyFS(dir, os.DirFS("../../fixtures/lengths/llama")))
	weights, trace, kept := at("model/model.safetensors"), at("recorded.safetensors"), at("cache/tracediff/cleared.json")
	checkpointtest.Enlarge(t, weights)
	// The trace is one of the larger checkpoint. The digest of large weights is as long as that of small ones.
	declare := func() {
		ck, err := checkpoint.Open(at("model"))
		must(t, err)
		data, err := os.ReadFile(trace)
		must(t, err)
		from := bytes.Index(data, []byte(`"tracediff.weights":"`)) + len(`"tracediff.weights":"`)
		copy(data[from:], ck.Digest())
		must(t, os.WriteFile(trace, data, 0o666))
		must(t, ck.Close())
	}
	declare()
	self, err := os.Executable()
	must(t, err)
	must(t, os.Mkdir(at("bin"), 0o777))
	must(t, os.Mkdir(at("other"), 0o777))
	must(t, os.Symlink(self, at("bin/tracediff")))
	changed := at("other/tracediff") // a byte behind the end of a program changes nothing of what it does
	appendTo := func(path, more string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o777)
		must(t, err)
		_, err = io.WriteString(f, more)
		must(t, err)
		must(t, f.Close())
	}
	data, err := os.ReadFile(self)
	must(t, err)
	must(t, os.WriteFile(changed, data, 0o777))
	appendTo(changed, " ")

	// run isolates the trace and returns the report, and what was said of the clearance: kept, used or nothing.
	run := func(program string, more ...string) (out, said string) {
		t.Helper()
		cmd := exec.Command(program, append([]string{"compare", "--isolate", trace, "--program", at("recorded.program.json"), "--model", at("model"), "--verbose"}, more...)...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+at("cache"), "LocalAppData="+at("cache"), "NO_COLOR=1")
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
		}
		switch said := stderr.String(); {
		case strings.Contains(said, "cleared every operation in an earlier run"):
			return stdout.String(), "used"
		case strings.Contains(said, "cleared every operation, which is remembered"):
			return stdout.String(), "kept"
		}
		return stdout.String(), "nothing"
	}
	program := at("bin/tracediff")
	want := func(when, want string, program string, more ...string) string {
		t.Helper()
		out, said := run(program, more...)
		if said != want {
			t.Errorf("%s: %s, want %s", when, said, want)
		}
		return out
	}
	first := want("the first time", "kept", program)
	second := want("the second time", "used", program)
	if first != second || !strings.Contains(first, "MATCH: all") {
		t.Errorf("the report is\n%s\nand with what is kept\n%s", first, second)
	}
	json := want("as JSON", "used", program, "--format", "json")
	intact, err := os.ReadFile(kept)
	must(t, err)
	must(t, os.Remove(kept))
	if again := want("as JSON, of nothing that is kept", "kept", program, "--format", "json"); again != json {
		t.Errorf("the JSON is\n%s\nand with what is kept\n%s", again, json)
	}
	want("another build", "kept", changed)
	want("another build, again", "used", changed)
	want("the first build after it", "kept", program)

	for _, damaged := range []string{"", "{", "null", `{"` + trace + `":""}`, strings.ReplaceAll(string(intact), `: "`, `: "0`), strings.Repeat("x", 2<<20)} {
		must(t, os.WriteFile(kept, []byte(damaged), 0o666))
		want("of a damaged file", "kept", program)
	}
	appendTo(at("recorded.program.json"), "\n")
	want("another program", "kept", program)

	f, err := os.OpenFile(weights, os.O_WRONLY, 0)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	_, err = f.WriteAt([]byte{1}, info.Size()-1) // of the tensor that nothing needs
	must(t, err)
	must(t, f.Close())
	declare()
	want("other weights", "kept", program)

	data, err = os.ReadFile(trace)
	must(t, err)
	data[len(data)-1] ^= 1 << 7 // a sign: this trace clears nothing
	must(t, os.WriteFile(trace, data, 0o666))
	cmd := exec.Command(program, "compare", "--isolate", trace, "--program", at("recorded.program.json"), "--model", at("model"), "--verbose")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+at("cache"), "LocalAppData="+at("cache"))
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Contains(string(out), "cleared every operation") || !strings.Contains(string(out), "UNVERIFIED") {
		t.Errorf("a trace that contradicts the program: %v\n%s", err, out)
	}
}
