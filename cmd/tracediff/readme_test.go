package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every command that the README and a page of docs show with its output prints that output today. A line of "..." stands
// for any lines.
func TestREADME(t *testing.T) {
	root, err := filepath.Abs("../..")
	must(t, err)
	for page, least := range map[string]int{"README.md": 4, "docs/ab.md": 1, "docs/inspect.md": 6, "docs/check.md": 2} {
		t.Run(page, func(t *testing.T) { checkPage(t, root, page, least) })
	}
}

// checkPage runs the commands of one page, of which it has to have so many.
func checkPage(t *testing.T, root, page string, least int) {
	readme, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	t.Chdir(t.TempDir())
	t.Setenv("CI", "") // where one of them would be refused
	must(t, os.Symlink(filepath.Join(root, "fixtures"), "fixtures"))
	shown := 0
	for i, block := range strings.Split(string(readme), "```\n") {
		command, want, ok := strings.Cut(block, "\n")
		args, isCommand := strings.CutPrefix(command, "$ go run ./cmd/tracediff ")
		if i%2 == 0 || !ok || !isCommand {
			continue
		}
		shown++
		var out, errOut bytes.Buffer
		run(append([]string{"tracediff"}, words(args)...), nil, &out, &errOut)
		if line, ok := shows(strings.Split(out.String(), "\n"), strings.Split(strings.TrimSuffix(want, "\n"), "\n")); !ok {
			t.Errorf("%s\ndoes not print %q where it is shown; it prints\n%s%s", command, line, out.String(), errOut.String())
		}
	}
	if shown < least {
		t.Errorf("it shows %d commands with their output", shown)
	}
}

// words splits a command line at spaces outside double quotes.
func words(line string) []string {
	var list []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}

// shows reports whether got is want, in which "..." stands for any lines, or the first line of want that is not there.
// The version of the build is whatever it is.
func shows(got, want []string) (string, bool) {
	at, free := 0, false
	for _, w := range want {
		if w == "..." {
			free = true
			continue
		}
		found := false
		for ; at < len(got); at++ {
			if same(got[at], w) {
				found = true
				at++
				break
			}
			if !free {
				break
			}
		}
		if !found {
			return w, false
		}
		free = false
	}
	return "end of the output", free || strings.Join(got[at:], "") == ""
}

func same(got, want string) bool {
	build := strings.NewReplacer("tracediff "+version(), "tracediff (devel)")
	return strings.TrimRight(build.Replace(got), " ") == strings.TrimRight(want, " ")
}
