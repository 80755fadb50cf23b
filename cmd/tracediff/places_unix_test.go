//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/internal/advice"
)

// inPlace puts a pipe, or a folder with a file in it, where a file was.
func inPlace(t *testing.T, path, what string) {
	t.Helper()
	must(t, os.Remove(path))
	if what == "pipe" {
		must(t, syscall.Mkfifo(path, 0o666))
		return
	}
	must(t, os.Mkdir(path, 0o777))
	must(t, os.WriteFile(filepath.Join(path, "mine"), []byte("mine"), 0o666))
}

// storing is a comparison that stores a reference and its noise floor.
func storing(dir string) []string {
	return []string{"tracediff", "compare", "--dir", dir, "--tokens", "2,3", "--reference", "go", "--quiet"}
}

// What is no file of a store is neither waited for nor replaced nor removed, and nor is what belongs to it.
func TestStoreSparesWhatIsNoFile(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	dir := filepath.Join(t.TempDir(), "d")
	var out bytes.Buffer
	if status := run(storing(dir), nil, &out, &out); status != exitMatch {
		t.Fatalf("exit status %d:\n%s", status, out.String())
	}
	kept := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		if len(found) != 1 {
			t.Fatalf("%s: %q", pattern, found)
		}
		return found[0]
	}
	trace := kept("references/*.safetensors")
	base := strings.TrimSuffix(trace, ".safetensors")
	for _, path := range []string{base + ".json", trace} {
		for _, what := range []string{"pipe", "folder"} {
			was, err := os.ReadFile(path)
			must(t, err)
			inPlace(t, path, what)
			before := state(t, filepath.Join(dir, "references"))
			ended := make(chan string, 1)
			go func() { ended <- refused(t, storing(dir)) }()
			select {
			case text := <-ended:
				if !regexp.MustCompile(`is a ` + what + `, and would be replaced\nhint: move it away`).MatchString(text) {
					t.Errorf("a %s at %s:\n%s", what, path, text)
				}
			case <-time.After(2 * time.Minute):
				t.Fatalf("a %s at %s: the comparison waits", what, path)
			}
			after := state(t, filepath.Join(dir, "references"))
			for path, was := range before {
				if after[path] != was {
					t.Errorf("a %s: %s is not what it was", what, path)
				}
			}
			must(t, os.RemoveAll(path))
			must(t, os.WriteFile(path, was, 0o666))
		}
	}
}

// A pipe in the place of a noise floor that a comparison of two files keeps.
func TestNoiseFloorSparesWhatIsNoFile(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	folder := filesFolder(t)
	args := typed("compare $F/local.safetensors $F/reference.safetensors --quiet --dir $F/kept", folder)
	var out bytes.Buffer
	if status := run(args, nil, &out, &out); status != exitMatch {
		t.Fatalf("exit status %d:\n%s", status, out.String())
	}
	floors, err := filepath.Glob(filepath.Join(folder, "kept/floors/*.json"))
	must(t, err)
	if len(floors) != 1 {
		t.Fatalf("one floor is wanted, not %q", floors)
	}
	inPlace(t, floors[0], "pipe")
	if text := refused(t, args); !strings.Contains(text, "is a pipe, and would be replaced\nhint: move it away") {
		t.Errorf("no word of the pipe:\n%s", text)
	}
	if info, err := os.Lstat(floors[0]); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is replaced: %v, %v", info, err)
	}
}

// Whatever is at the place of a file that is read, the hint says something.
func TestHintsAreNotEmpty(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	folder := filesFolder(t)
	at := func(name string) string { return filepath.Join(folder, name) }
	must(t, os.WriteFile(at("large"), bytes.Repeat([]byte("\n"), 16<<20+1), 0o666))
	for _, name := range []string{"config.json", "model.safetensors"} {
		must(t, os.CopyFS(at("folder-"+name), os.DirFS(at("model"))))
		inPlace(t, at("folder-"+name+"/"+name), "folder")
	}
	must(t, os.CopyFS(at("large-config.json"), os.DirFS(at("model"))))
	must(t, os.WriteFile(at("large-config.json/config.json"), bytes.Repeat([]byte(" "), 1<<20+1), 0o666))
	for _, line := range []string{
		"gate --config $F/folder --dir $F/new", "gate --config $F/large --dir $F/new", "gate --config /dev/zero --dir $F/new",
		"compare --dir $F/new --model $F/folder-config.json", "compare --dir $F/new --model $F/large-config.json", "compare --dir $F/new --model $F/folder-model.safetensors",
		"order --model $F/folder-config.json", "compare $F/folder $F/reference.safetensors", "compare --dir $F/new --order $F/folder",
		"compare --dir $F/new --tolerances $F/folder", "inspect $F/folder", "check $F/folder",
	} {
		refused(t, typed(line, folder)) // which wants a hint of some words
	}
}

// A report replaces neither the port that a command runs nor a file that its words name.
func TestReportsSpareThePort(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	dir := t.TempDir()
	t.Chdir(dir)
	golden := filesFolder(t) + "/local.safetensors"
	const script = "#!/bin/sh\ncp \"$1\" \"$2\"\n"
	must(t, os.WriteFile("port.sh", []byte(script), 0o777))
	command := "exec:./port.sh " + golden + " {out}"
	for _, line := range [][]string{
		{"compare", "--tokens", "2,3", "--local", command, "--report", "json=port.sh"},
		{"compare", "--tokens", "2,3", "--reference", "exec:sh <" + dir + "/port.sh", "--report", "json=port.sh"},
	} {
		if text := refused(t, append([]string{"tracediff"}, append(line, "--dir", "d", "--quiet")...)); !regexp.MustCompile(`--report: port\.sh is .*this command reads or writes`).MatchString(text) {
			t.Errorf("%q: no word of the port:\n%s", line, text)
		}
		if text, err := os.ReadFile("port.sh"); err != nil || string(text) != script {
			t.Fatalf("%q: the port is replaced: %v", line, err)
		}
	}
	// As the settings of the last capture and a gate's file have it.
	must(t, os.WriteFile("gate.toml", []byte("local = 'exec:./port.sh x {out}'\n[[prompt]]\nname = 'a'\ntokens = '2'\n"), 0o666))
	refused(t, []string{"tracediff", "gate", "--config", "gate.toml", "--dir", "d", "--report", "json=port.sh"})
	if text, err := os.ReadFile("port.sh"); err != nil || string(text) != script {
		t.Fatalf("gate: the port is replaced: %v", err)
	}
}

// A report that is refused for a file of the last capture is refused once.
func TestReportIsRefusedOnce(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	folder := filesFolder(t)
	var out bytes.Buffer
	if status := run(append(typed("capture --dir $F/st --reference $F/reference.safetensors --quiet --prompt", folder), "Hello world"), nil, &out, &out); status != exitMatch {
		t.Fatalf("exit status %d:\n%s", status, out.String())
	}
	if text := refused(t, typed("compare --dir $F/st --quiet --report json=$F/reference.safetensors", folder)); strings.Count(text, "reads or writes") != 1 {
		t.Errorf("once is enough:\n%s", text)
	}
}

// What is wrong with every prompt of a gate is said once.
func TestGateSaysOnceWhatIsWrongWithAll(t *testing.T) {
	config := filepath.Join(t.TempDir(), "gate.toml")
	must(t, os.WriteFile(config, []byte("[[prompt]]\nname = 'a'\ntokens = '2'\n[[prompt]]\nname = 'b'\ntokens = '3'\n"), 0o666))
	if text := refused(t, []string{"tracediff", "gate", "--config", config, "--dir", "/dev/null"}); !strings.HasPrefix(text, "tracediff: --dir: /dev/null is not a folder\n") {
		t.Errorf("no word of the folder:\n%s", text)
	}
}

// A pipe is refused also where it would not be read.
func TestPipesThatAreNotRead(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	folder := filesFolder(t)
	const traces = "compare $F/local.safetensors $F/reference.safetensors "
	for _, c := range []struct{ line, want string }{
		{traces + "--dir $F/pipe", `^tracediff: --dir: .*pipe is not a folder\n`},
		{"compare --isolate $F/local.safetensors --dir $F/pipe", `^tracediff: --dir: .*pipe is not a folder\n`},
		{"compare --tokens 2,3 --reference go --dir $F/new --python $F/pipe", `^tracediff: --python: .*pipe is a pipe, not a program\n`},
		{traces + "--model $F/model-tokenizer.json", `tokenizer.json is not a regular file, but a pipe\n`},
		{"inspect $F/local.safetensors --model $F/model-tokenizer.json", `tokenizer.json is not a regular file, but a pipe\n`},
		{"inspect $F/local.safetensors --model $F/model-config.json", `config.json is not a regular file, but a pipe\n`},
	} {
		if text := refused(t, typed(c.line, folder)); !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("%s: no %q in:\n%s", c.line, c.want, text)
		}
	}
}

// What is wrong with a value is answered with what the value may be.
func TestHintsFit(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	folder := filesFolder(t)
	must(t, os.WriteFile(filepath.Join(folder, "empty"), nil, 0o666))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"compare", "--tokens", "2", "--layers", "99"}, `has layers 0 to .*\nhint: layers count from 0`},
		{[]string{"compare", "--tokens", "2", "--layers", "3-1"}, `--layers: .*ends before it starts\nhint: numbers count from 0`},
		{[]string{"order", "--layers", "3-1"}, `\nhint: numbers count from 0`},
		{[]string{"compare", "--tokens", "99999"}, `outside the vocabulary.*\nhint: the ids`},
		{[]string{"compare", "--tokens", "2", "--max-new-tokens", "-1"}, `\nhint: 0 captures only the input`},
		{[]string{"compare", "--tokens", "2", "--level", "4"}, `\nhint: 1 is block boundaries`},
		{[]string{"compare", "--tokens", "2", "--order", "$F/empty"}, `no names.*\nhint: --order wants`},
		{[]string{"compare", "--tokens", "2", "--local", "exec:exit 3"}, `exit status 3.*\nhint: the command printed nothing`},
		{[]string{"compare", "--tokens", "2", "--quiet", "--report", "json=$F/kept/settings.json", "--dir", "$F/kept"}, `^tracediff: --report: \S+ is a file that tracediff keeps there\n`},
		{[]string{"init", ""}, `name of the file is empty\nhint: tracediff init FILE`},
		{[]string{"init", "/dev/fd/99/x"}, `^tracediff: [^\n]*/dev/fd/99`},
		{[]string{"completion"}, `wants the name of a shell\nhint: want bash, zsh or fish`},
	} {
		args := []string{"tracediff"}
		for _, arg := range c.args {
			args = append(args, strings.ReplaceAll(arg, "$F", folder))
		}
		if c.args[0] == "compare" && !slices.Contains(c.args, "--dir") {
			args = append(args, "--quiet", "--dir", filepath.Join(folder, "new"))
		}
		if text := refused(t, args); !regexp.MustCompile(c.want).MatchString(text) || strings.Contains(text, ".part") {
			t.Errorf("%q: no %q in:\n%s", c.args, c.want, text)
		}
	}
	// A report beside which no file can be made is called by its own name.
	if text := refused(t, typed("compare $F/local.safetensors $F/reference.safetensors --report json=/dev/fd/99", folder)); strings.Contains(text, ".part") {
		t.Errorf("the name of a file that nobody knows:\n%s", text)
	}
}

// A limit of the shell on the size of files is answered with how it is raised.
func TestTooLargeAFileHasAHint(t *testing.T) {
	t.Setenv("CI", "") // the walk is reference enough
	if hint := advice.Hint(&os.PathError{Op: "write", Path: "x", Err: syscall.EFBIG}); !strings.Contains(hint, "ulimit -f") {
		t.Errorf("no word of the limit: %s", hint)
	}
}
