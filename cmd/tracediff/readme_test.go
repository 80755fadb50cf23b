package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every command that the README and the pages of docs show with its output prints that output today, and ends with status 0, or with
// what its fence says: "```console exit 1 0" is for two commands. A line of "..." stands for any lines. A page is a session of its own, in a folder with the fixtures: what one of its commands has captured, the next
// one finds. Sessions that change the sources are run by TestNewcomer, and those of a trained model, "```console trained", by TestTrained.
func TestREADME(t *testing.T) {
	root := sources(t)
	least := map[string]int{
		"README.md": 2, "docs/ports.md": 3, "docs/results/in-the-wild.md": 10, "docs/formats.md": 2, "docs/reference.md": 1, "docs/ci.md": 1, "docs/guide.md": 1,
	}
	for page := range least {
		if !slices.Contains(pages(t, root), page) {
			t.Errorf("there is no %s", page)
		}
	}
	for _, page := range pages(t, root) {
		t.Run(page, func(t *testing.T) { checkPage(t, root, page, least[page]) })
	}
}

// A command that stands anywhere else than in a fence with its output would not be run.
func TestEveryShownCommandIsRun(t *testing.T) {
	root := sources(t)
	for _, page := range pages(t, root) {
		text := readPage(t, root, page)
		want := 0
		for line := range strings.Lines(text) {
			if _, ok := arguments(strings.TrimSpace(line)); ok {
				want++
			}
		}
		got := 0
		for _, s := range sessions(text) {
			for _, step := range s {
				if _, ok := arguments(step.command); ok {
					got++
				}
			}
		}
		if got != want {
			t.Errorf("%s shows %d commands and %d of them in a fence", page, want, got)
		}
	}
}

// A session with commands of other programs is skipped by TestREADME. No such session stays unrun: TestNewcomer has each step of those
// that change the sources, and test_any_model.py, in .ci/run, each fence of its page that says how its commands end.
func TestOtherSessionsAreRun(t *testing.T) {
	root := sources(t)
	path := readPage(t, root, "cmd/tracediff/testdata/newcomer/path.txt")
	for _, page := range pages(t, root) {
		text := readPage(t, root, page)
		found := 0
		for _, session := range sessions(text) {
			if !editing(session) {
				continue
			}
			if found++; page == "docs/reference.md" {
				continue
			}
			for i := range session {
				if step := fmt.Sprintf("readme %s %d\n", page, i+1); strings.Count(path, step) != 1 {
					t.Errorf("%s: %q is run %d times", page, session[i].command, strings.Count(path, step))
				}
			}
		}
		switch {
		case page == "docs/reference.md" && found != strings.Count(text, "```console exit "):
			t.Errorf("%s: %d sessions, and %d fences that are run", page, found, strings.Count(text, "```console exit "))
		case page != "docs/reference.md" && found > 1:
			t.Errorf("%s: %d sessions with commands of other programs, and the first alone is run", page, found)
		}
	}
}

// The code that docs/ports.md shows is that of a test or of a header's own manual.
func TestShownCodeIsReal(t *testing.T) {
	root := sources(t)
	for language, source := range map[string]string{"go": "capture/example_test.go", "c": "hooks/c/tracediff.h"} {
		_, code, ok := strings.Cut(readPage(t, root, "docs/ports.md"), "```"+language+"\n")
		code, _, closed := strings.Cut(code, "```")
		if !ok || !closed {
			t.Errorf("docs/ports.md has no code in %s", language)
		}
		text := readPage(t, root, source)
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); !strings.Contains(text, line) {
				t.Errorf("%s does not have %q", source, line)
			}
		}
	}
}

// sources is the root of the repository.
func sources(t *testing.T) string {
	root, err := filepath.Abs("../..")
	must(t, err)
	return root
}

// pages are the README, the page of contributors and the pages of docs, by their paths.
func pages(t *testing.T, root string) []string {
	list := []string{"README.md", "CONTRIBUTING.md"}
	for _, folder := range []string{"docs", "docs/results"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		must(t, err)
		for _, path := range found {
			list = append(list, folder+"/"+filepath.Base(path))
		}
	}
	return list
}

func readPage(t *testing.T, root, page string) string {
	data, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	return string(data)
}

// step is a command of a page, with the "$ ", and the lines that it is said to print.
type step struct {
	command string
	want    []string
	status  int  // what it exits with
	trained bool // it needs the checkpoint of a trained model
}

// sessions returns the fences of a page that begin with a command, each as its steps.
func sessions(page string) [][]step {
	var list [][]step
	var now []step
	var statuses []string // of the commands of this fence
	inside, trained := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			if inside = !inside; !inside && now != nil {
				list, now = append(list, now), nil
			}
			info, exits, _ := strings.Cut(line, " exit ")
			statuses, trained = strings.Fields(exits), info == "```console trained"
		case inside && strings.HasPrefix(line, "$ "):
			s := step{command: line, trained: trained}
			if len(statuses) > 0 {
				s.status, _ = strconv.Atoi(statuses[0])
				statuses = statuses[1:]
			}
			now = append(now, s)
		case inside && now != nil:
			at := &now[len(now)-1]
			at.want = append(at.want, line)
		}
	}
	return list
}

// arguments returns what a command gives to tracediff; ok is false where it is another program's, or the source of this one
// is changed before it.
func arguments(command string) (text string, ok bool) {
	for _, prefix := range []string{"$ tracediff ", "$ go run ./cmd/tracediff "} {
		if text, ok = strings.CutPrefix(command, prefix); ok {
			return text, true
		}
	}
	return "", false
}

// editing reports whether a session has commands of other programs: those that change the sources.
func editing(session []step) bool {
	return !session[0].trained && slices.ContainsFunc(session, func(s step) bool { _, ours := arguments(s.command); return !ours })
}

// checkPage runs the commands of one page, of which it has to have so many.
func checkPage(t *testing.T, root, page string, least int) {
	text := readPage(t, root, page)
	t.Chdir(t.TempDir())
	t.Setenv("CI", "") // where one of them would be refused
	must(t, os.Symlink(filepath.Join(root, "fixtures"), "fixtures"))
	shown := 0
	for _, session := range sessions(text) {
		if editing(session) || session[0].trained {
			continue
		}
		for _, s := range session {
			shown++
			args, _ := arguments(s.command)
			var out, errOut bytes.Buffer
			if status := run(append([]string{"tracediff"}, fieldsOf(args)...), nil, &out, &errOut); status != s.status {
				t.Errorf("%s\nends with status %d, and the page says %d", s.command, status, s.status)
			}
			if line, ok := shows(strings.Split(out.String(), "\n"), s.want); !ok {
				t.Errorf("%s\ndoes not print %q where it is shown; it prints\n%s%s", s.command, line, out.String(), errOut.String())
			}
		}
	}
	if shown < least {
		t.Errorf("it shows %d commands with their output", shown)
	}
}

// fieldsOf splits a command line at spaces outside of quotes.
func fieldsOf(line string) []string {
	var list []string
	var quote rune
	fresh := true
	for _, r := range line {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			fresh = true
			continue
		default:
			if fresh {
				list = append(list, "")
			}
			fresh = false
			list[len(list)-1] += string(r)
		}
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

// Every page of docs says in its first line for whom it is, and the README links to it. Pages of results are linked from the two pages on
// evidence.
func TestPagesSayForWhom(t *testing.T) {
	root := sources(t)
	readme, evidence := readPage(t, root, "README.md"), readPage(t, root, "docs/evidence.md")+readPage(t, root, "docs/engines.md")
	for _, page := range pages(t, root)[1:] {
		lines := strings.SplitN(readPage(t, root, page), "\n", 4)
		if len(lines) < 4 || !strings.HasPrefix(lines[0], "# ") || lines[1] != "" || !strings.HasPrefix(lines[2], "For ") {
			t.Errorf("%s does not say below its title for whom it is", page)
		}
		from, name := readme, page
		if result, ok := strings.CutPrefix(page, "docs/"); ok && strings.HasPrefix(result, "results/") {
			from, name = evidence, result
		}
		if !strings.Contains(from, "("+name+")") {
			t.Errorf("no link leads to %s", page)
		}
	}
}
