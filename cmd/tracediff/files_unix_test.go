//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/session/job"
)

// filesFolder makes a folder with what a command can be given: two traces, a model, links, a pipe that nobody writes to,
// and folders of traces in which one of the files is such a pipe. $F in the cases below stands for it.
func filesFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	golden, err := fs.ReadFile(ondisk.Files(), "golden/gemma3n-tiny/hello.bfloat16.safetensors")
	must(t, err)
	for _, name := range []string{"local.safetensors", "reference.safetensors"} {
		must(t, os.WriteFile(at(name), golden, 0o666))
	}
	must(t, os.Symlink("local.safetensors", at("link")))
	must(t, os.Link(at("reference.safetensors"), at("hard")))
	must(t, os.WriteFile(at("names.txt"), []byte("logits\n"), 0o666))
	must(t, os.WriteFile(at("limits.toml"), []byte("[[tolerance]]\ntensors = '*'\nrtol = 0.1\n"), 0o666))
	must(t, os.WriteFile(at("gate.toml"), []byte("model = 'model'\norder = 'names.txt'\n[[prompt]]\nname = 'a'\ntext = 'Hello world'\n"), 0o666))
	must(t, job.WriteEmbedded(dir))
	must(t, os.Rename(at("model"), at("models")))
	must(t, os.Rename(at("models/"+embedded), at("model")))
	must(t, os.Mkdir(at("folder"), 0o777))
	// Devices are named by links: a program that replaces what it ought to write to, run by root, would take the machine's.
	for name, device := range map[string]string{"full": "/dev/full", "null": "/dev/null", "full-by-link": "full"} {
		must(t, os.Symlink(device, at(name)))
	}
	for _, name := range []string{"pipe", "unread"} { // one to read from, one to write to: readers would find each other
		must(t, syscall.Mkfifo(at(name), 0o666))
	}
	for _, name := range []string{"settings.json", "local.safetensors"} {
		kept := at("with-" + name)
		must(t, os.Mkdir(kept, 0o777))
		must(t, syscall.Mkfifo(filepath.Join(kept, name), 0o666))
	}
	for _, name := range []string{"config.json", "tokenizer.json", "model.safetensors"} {
		must(t, os.CopyFS(at("model-"+name), os.DirFS(at("model"))))
		must(t, os.Remove(filepath.Join(at("model-"+name), name)))
		must(t, syscall.Mkfifo(filepath.Join(at("model-"+name), name), 0o666))
	}
	must(t, os.MkdirAll(at("kept"), 0o777))
	var out bytes.Buffer
	if status := run([]string{"tracediff", "capture", "--prompt", "Hello world", "--dir", at("kept"), "--quiet"}, nil, &out, &out); status != exitMatch {
		t.Fatalf("the capture ends with %d: %s", status, out.String())
	}
	return dir
}

// typed are the words of a case, with the folder filled in.
func typed(line, folder string) []string {
	return append([]string{"tracediff"}, strings.Fields(strings.ReplaceAll(line, "$F", folder))...)
}

var twoLines = regexp.MustCompile(`\Atracediff: [^\n]+\nhint: [^\n]+\n\z`)

// refused runs a command line that cannot be used, and returns its two lines.
func refused(t *testing.T, args []string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if status := run(args, nil, &out, &errOut); status != exitUnusable {
		t.Errorf("%q: exit status %d, want %d", args, status, exitUnusable)
	}
	if text := errOut.String(); !twoLines.MatchString(text) {
		t.Errorf("%q: not two lines:\n%s", args, text)
	}
	return errOut.String()
}

// state is what a folder holds: the content of every regular file, and the kind of everything else.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		all[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			all[path] += string(data)
			return err
		}
		return nil
	}))
	return all
}

// No report is written over what the command reads or keeps, by whatever name it goes, nor where it cannot be: two lines,
// exit status 2, and every file is what it was.
func TestReportsSpareWhatIsThere(t *testing.T) {
	folder := filesFolder(t)
	traces := "compare $F/local.safetensors $F/reference.safetensors --quiet --report json="
	for _, c := range []struct{ line, what string }{
		{traces + "$F/local.safetensors", "local.safetensors is a file that this command reads or writes"},
		{traces + "$F/reference.safetensors", "reference.safetensors is a file that"},
		{traces + "$F/folder/../local.safetensors", "local.safetensors, which this command reads or writes"},
		{traces + "$F/link", "link is .*local.safetensors, which"},
		{traces + "$F/hard", "hard is .*reference.safetensors, which"},
		{traces + "$F/names.txt --order $F/names.txt", "names.txt"},
		{traces + "$F/limits.toml --tolerances $F/limits.toml", "limits.toml"},
		{traces + "$F/model/config.json --model $F/model", "config.json"},
		{traces + "$F/model/model.safetensors --model $F/model", "model.safetensors"},
		{traces + "$F/kept/settings.json --dir $F/kept", "settings.json is a file that tracediff keeps there"},
		{traces + "$F/none/out.json", "has no folder: .*none is not there"},
		{traces + "$F/folder", "is a folder"},
		{traces + "$F/limits.toml/x", "is below a file"},
		{traces + "$F/new.json --report junit=$F/folder/../new.json", "two reports would be written to"},
		{traces + "$F/pipe", "was not opened for reading"},
		{"compare --isolate $F/local.safetensors --report json=$F/local.safetensors", "local.safetensors"},
		{"compare --reference $F/reference.safetensors --dir $F/new --report json=$F/hard", "reference.safetensors"},
		{"compare --local $F/local.safetensors --dir $F/new --report text=$F/link", "local.safetensors"},
		{"compare --model $F/model --dir $F/new --report jsonl=$F/model/tokenizer.json", "tokenizer.json"},
		{"compare --dir $F/kept --report json=$F/kept/local.safetensors", "local.safetensors is a file that tracediff keeps"},
		{"compare --dir $F/kept --report json=$F/kept/digests.json", "digests.json is a file that tracediff keeps"},
		{"gate --config $F/gate.toml --dir $F/kept --report json=$F/gate.toml", "gate.toml"},
		{"gate --config $F/gate.toml --dir $F/kept --report json=$F/names.txt", "names.txt"},
		{"gate --config $F/gate.toml --dir $F/kept --report json=$F/model/config.json", "config.json"},
		{"gate --config $F/gate.toml --dir $F/kept --report json=$F/kept/reference.safetensors", "reference.safetensors"},
	} {
		before := state(t, folder)
		text := refused(t, typed(c.line, folder))
		if !regexp.MustCompile(`^tracediff: --report: .*` + c.what).MatchString(text) {
			t.Errorf("%s: no %q in:\n%s", c.line, c.what, text)
		}
		after := state(t, folder)
		for path := range after {
			if _, was := before[path]; !was {
				t.Errorf("%s: %s was made", c.line, path)
			}
		}
		for path, was := range before {
			if after[path] != was {
				t.Errorf("%s: %s is not what it was", c.line, path)
			}
		}
	}
}

// The settings of the last capture name files that stand on no command line.
func TestReportsSpareTheFilesOfTheLastCapture(t *testing.T) {
	folder := filesFolder(t)
	var out bytes.Buffer
	if status := run(typed("capture --model $F/model --order $F/names.txt --side local --dir $F/kept --quiet", folder), nil, &out, &out); status != exitMatch {
		t.Fatalf("the capture ends with %d: %s", status, out.String())
	}
	for _, name := range []string{"names.txt", "model/config.json"} {
		before := state(t, folder)
		if text := refused(t, typed("compare --dir $F/kept --report json=$F/"+name, folder)); !strings.Contains(text, "which this command reads") && !strings.Contains(text, "a file that this command reads") {
			t.Errorf("%s: %s", name, text)
		}
		if before[filepath.Join(folder, name)] != state(t, folder)[filepath.Join(folder, name)] {
			t.Errorf("%s was written over", name)
		}
	}
}

// isLink fails where something has taken the place of a link.
func isLink(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%s is replaced: %v, %v", path, info, err)
	}
}

// A report on a full disk is an error of two lines whose hint is about the disk. The result still goes to standard output,
// and the other reports are written.
func TestReportOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full: it stands for a full disk")
	}
	folder := filesFolder(t)
	for _, path := range []string{"$F/full", "$F/full-by-link"} {
		args := typed("compare $F/local.safetensors $F/reference.safetensors --quiet --format json --report text="+path+" --report json=$F/out.json", folder)
		var out, errOut bytes.Buffer
		if status := run(args, nil, &out, &errOut); status != exitUnusable {
			t.Errorf("exit status %d, want %d", status, exitUnusable)
		}
		if text := errOut.String(); !twoLines.MatchString(text) || !strings.Contains(text, "writing the report: ") || !strings.Contains(text, "\nhint: the disk is full") {
			t.Errorf("two lines about the disk are wanted:\n%s", text)
		}
		written, err := os.ReadFile(filepath.Join(folder, "out.json"))
		must(t, err)
		if !json.Valid(out.Bytes()) || !bytes.Equal(written, out.Bytes()) {
			t.Errorf("%d bytes on standard output, %d in the other report", out.Len(), len(written))
		}
	}
	isLink(t, filepath.Join(folder, "full"))
	isLink(t, filepath.Join(folder, "full-by-link"))
	// Where the comparison fails, too, both are said in the same two lines.
	text := refused(t, typed("compare $F/local.safetensors $F/nowhere --report json=$F/full", folder))
	if !regexp.MustCompile(`^tracediff: .*nowhere: no such file.*; and writing the report: .*no space left`).MatchString(text) {
		t.Errorf("both errors are wanted:\n%s", text)
	}
	// A gate has printed its own error by then: the report's is not lost behind it.
	args := typed("gate --config $F/gate.toml --dir $F/new --quiet --report json=$F/full", folder)
	must(t, os.WriteFile(filepath.Join(folder, "gate.toml"), []byte("[[prompt]]\nname = 'a'\ntokens = '2'\n"), 0o666))
	var out, errOut bytes.Buffer
	if status := run(args, nil, &out, &errOut); status != exitUnusable || strings.Count(errOut.String(), "\n") != 4 || !strings.Contains(errOut.String(), "\ntracediff: writing the report: ") {
		t.Errorf("exit status %d, and two errors are wanted:\n%s", status, errOut.String())
	}
}

// Standard output on a full disk: one error, with a hint that is about the disk.
func TestOutputOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full: it stands for a full disk")
	}
	defer full.Close()
	folder := filesFolder(t)
	for _, line := range []string{"compare $F/local.safetensors $F/reference.safetensors --quiet", "inspect $F/local.safetensors --header", "order"} {
		var errOut bytes.Buffer
		status := run(typed(line, folder), nil, full, &errOut)
		if text := errOut.String(); status != exitUnusable || !twoLines.MatchString(text) || !strings.Contains(text, "\nhint: the disk is full") || strings.Count(text, "no space left") != 1 {
			t.Errorf("%s: exit status %d:\n%s", line, status, text)
		}
	}
}

// What is not a regular file is written to and stays what it is.
func TestReportIsWrittenThrough(t *testing.T) {
	folder := filesFolder(t)
	read := make(chan []byte, 1)
	go func() {
		data, err := os.ReadFile(filepath.Join(folder, "pipe"))
		if err != nil {
			t.Error(err)
		}
		read <- data
	}()
	args := typed("compare $F/local.safetensors $F/reference.safetensors --quiet --format jsonl --report json=$F/pipe --report text=$F/null --report junit=/dev/fd/1", folder)
	var out, errOut bytes.Buffer
	if status := run(args, nil, &out, &errOut); status != exitMatch || errOut.Len() > 0 {
		t.Fatalf("exit status %d: %s", status, errOut.String())
	}
	if data := <-read; !json.Valid(data) || !bytes.Contains(data, []byte(`"exit": 0`)) {
		t.Errorf("the reader of the pipe has %d bytes, which are no report", len(data))
	}
	if !bytes.Contains(out.Bytes(), []byte("<testsuite")) || !bytes.Contains(out.Bytes(), []byte(`{"type":"end","exit":0}`)) {
		t.Errorf("standard output has not both reports: %.200s", out.String())
	}
	isLink(t, filepath.Join(folder, "null"))
	if info, err := os.Stat(filepath.Join(folder, "pipe")); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is replaced: %v, %v", info, err)
	}
}

// A report does not replace the file that standard output goes to.
func TestReportSparesStandardOutput(t *testing.T) {
	folder := filesFolder(t)
	path := filepath.Join(folder, "out.txt")
	out, err := os.Create(path)
	must(t, err)
	defer out.Close()
	var errOut bytes.Buffer
	args := typed("compare $F/local.safetensors $F/reference.safetensors --report json="+path, folder)
	if status := run(args, nil, out, &errOut); status != exitUnusable || !strings.Contains(errOut.String(), "is the file that standard output goes to") || !twoLines.MatchString(errOut.String()) {
		t.Errorf("exit status %d:\n%s", status, errOut.String())
	}
}

// muchLater is longer than what waits for a pipe takes on a busy machine; what waits without an end takes longer.
const muchLater = time.Minute

// A pipe that nobody writes to, wherever a file is wanted: two lines and exit status 2 within a minute.
func TestPipesThatNobodyWritesTo(t *testing.T) {
	folder := filesFolder(t)
	var wait sync.WaitGroup
	const traces = "compare $F/local.safetensors $F/reference.safetensors "
	for _, line := range []string{
		"compare $F/pipe $F/reference.safetensors", "compare $F/local.safetensors $F/pipe", "compare --isolate $F/pipe", "compare --ab $F/pipe $F/pipe",
		"check $F/pipe", "inspect $F/pipe", "inspect $F/local.safetensors $F/pipe logits",
		traces + "--order $F/pipe", traces + "--tolerances $F/pipe", traces + "--model $F/pipe", traces + "--report json=$F/unread",
		"compare --dir $F/new --local $F/pipe", "compare --dir $F/new --reference $F/pipe", "compare --dir $F/new --order $F/pipe",
		"compare --dir $F/new --tolerances $F/pipe", "compare --dir $F/new --model $F/pipe", "compare --dir $F/pipe", "compare --dir $F/new --reference hf --tokens 2;3 --python $F/pipe",
		"compare --dir $F/with-settings.json",
		"compare --dir $F/new --model $F/model-config.json", "compare --dir $F/new --model $F/model-tokenizer.json", "compare --dir $F/new --model $F/model-model.safetensors",
		"capture --dir $F/new --local $F/pipe", "capture --dir $F/new --reference $F/pipe", "capture --dir $F/new --order $F/pipe", "capture --dir $F/new --model $F/pipe",
		"capture --dir $F/pipe", "capture --dir $F/with-settings.json --quiet", "capture --dir $F/with-local.safetensors --quiet",
		"order --order $F/pipe", "order --model $F/pipe", "order --model $F/model-config.json",
		"gate --config $F/pipe --dir $F/gated", "gate --config $F/gate.toml --dir $F/gated --report json=$F/unread", "gate --config $F/gate.toml --dir $F/pipe",
		"init $F/pipe",
	} {
		wait.Go(func() { // all at once: most of them wait, and no test that does ought to wait for another
			started := time.Now()
			refused(t, typed(line, folder))
			if took := time.Since(started); took > muchLater {
				t.Errorf("%s: it took %v", line, took)
			}
		})
	}
	for _, line := range []string{"doctor --dir $F/pipe", "doctor --clean --dir $F/pipe", "doctor --dir $F/new --model $F/pipe", "doctor --dir $F/new --model $F/model-tokenizer.json"} {
		wait.Go(func() { // a finding of the checklist: exit status 1
			var out, errOut bytes.Buffer
			if status := run(append(typed(line, folder), "--python", "/nowhere"), nil, &out, &errOut); status != exitMismatch || errOut.Len() > 0 {
				t.Errorf("%s: exit status %d: %s", line, status, errOut.String())
			}
		})
	}
	wait.Wait()
}

// The process ends, too: nothing that still waits keeps it.
func TestWaitingKeepsNoProcess(t *testing.T) {
	t.Parallel()
	folder := filesFolder(t)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, "compare", "--order", filepath.Join(folder, "pipe"), "--dir", filepath.Join(folder, "new"))
	cmd.Args[0] = "tracediff"
	started := time.Now()
	text, _ := cmd.CombinedOutput() // the status is looked at below
	if status, took := cmd.ProcessState.ExitCode(), time.Since(started); status != exitUnusable || took > muchLater || !twoLines.Match(text) {
		t.Errorf("exit status %d after %v:\n%s", status, took, text)
	}
}

// feed writes into a pipe and returns the name that a shell's <(command) would have for it.
func feed(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fed")
	must(t, syscall.Mkfifo(path, 0o666))
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer f.Close()
		io.WriteString(f, text)
	}()
	return path
}

// A stream does where a small file is read once: an order, tolerances, a gate's file. The names of the order are kept for
// the next comparison, which cannot read the stream again.
func TestStreamsAreRead(t *testing.T) {
	t.Parallel()
	folder := filesFolder(t)
	ends := func(want int, said string, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if status := run(append([]string{"tracediff"}, args...), nil, &out, &errOut); status != want || !regexp.MustCompile(said).MatchString(out.String()) {
			t.Errorf("%q: exit status %d, want %d and %q:\n%s%s", args, status, want, said, out.String(), errOut.String())
		}
	}
	local, reference, dir := filepath.Join(folder, "local.safetensors"), filepath.Join(folder, "reference.safetensors"), filepath.Join(folder, "new")
	const names, limits = "embed_tokens\nlogits\n", "[[tolerance]]\ntensors = '*'\nrtol = 0.125\n"
	ends(exitMatch, `compared 3 of 3 entries`, "compare", "--table", local, reference, "--order", feed(t, names), "--tolerances", feed(t, limits))
	ends(exitMatch, `0\.125`, "compare", "--table", local, reference, "--tolerances", feed(t, limits))
	ends(exitMatch, `^input_ids\nembed_tokens\nlogits\n$`, "order", "--format", "text", "--order", feed(t, names))
	ends(exitMatch, `compared 3 of 3 entries`, "compare", "--table", "--prompt", "Hello world", "--dir", dir, "--order", feed(t, names))
	ends(exitMatch, `compared 3 of 3 entries`, "compare", "--table", "--dir", dir)
	ends(exitMatch, `1 of 1 prompts match`, "gate", "--dir", filepath.Join(folder, "gated"), "--config", feed(t, "[[prompt]]\nname = 'a'\ntext = 'Hello world'\n"))
}

// As a shell has it, with <( ) and >( ).
func TestProcessSubstitution(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash: it has <( ) and >( )")
	}
	folder := filesFolder(t)
	self, err := os.Executable()
	must(t, err)
	must(t, os.Symlink(self, filepath.Join(folder, "tracediff")))
	script := `cd "$1"; PATH=.:$PATH
tracediff compare local.safetensors reference.safetensors -q --order <(echo logits) --tolerances <(echo '[[tolerance]]'; echo "tensors = '*'"; echo rtol = 0.1) --report jsonl=>(tail -n 1 >made) >said || exit
for n in 1 2 3 4 5 6 7 8 9 10; do grep -q end made 2>/dev/null && break; sleep 0.2; done
cat said made
tracediff compare <(cat local.safetensors) reference.safetensors; echo "status $?"`
	text, err := exec.Command(bash, "-c", script, "bash", folder).CombinedOutput()
	must(t, err)
	if want := regexp.MustCompile(`(?s)all 2 entries compared match.*\{"type":"end","exit":0\}\ntracediff: [^\n]*not a regular file, but a pipe\nhint: [^\n]*write it to a regular file first[^\n]*\nstatus 2\n$`); !want.Match(text) {
		t.Errorf("not as wanted:\n%s", text)
	}
}

// What a command prints ends its line before the next line begins.
func TestOutputOfCommandsEndsItsLine(t *testing.T) {
	for _, ending := range []string{"half a line", `redrawn\r`, `whole\n`} {
		var out, errOut bytes.Buffer
		args := []string{"tracediff", "compare", "--dir", filepath.Join(t.TempDir(), "new"), "--tokens", "2,513", "--local", "exec:printf '" + ending + "'; exit 3"}
		if status := run(args, nil, &out, &errOut); status != exitUnusable {
			t.Errorf("exit status %d, want %d", status, exitUnusable)
		}
		if text := errOut.String(); !regexp.MustCompile(`(?:half a line|redrawn\r|whole)\nnote: [^\n]*\ntracediff: [^\n]*exit status 3[^\n]*\nhint: [^\n]*\n\z`).MatchString(text) {
			t.Errorf("%s: the error stands in no line of its own:\n%q", ending, text)
		}
	}
}
