package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// helpOf prints the help of a command.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(append([]string{"tracediff"}, args...), nil, &out, &errOut); code != exitMatch || errOut.Len() > 0 {
		t.Fatalf("%s: exit status %d: %s", args, code, errOut.String())
	}
	return out.String()
}

// The help of every command fits a screen, and what it says of flags is true: each of them is there, and --help-all, or a page without it,
// has every one.
func TestHelpIsAPage(t *testing.T) {
	app := newApp(nil, nil, nil)
	for _, c := range app.Commands {
		short := helpOf(t, c.Name, "--help")
		lines := strings.Split(strings.TrimSuffix(short, "\n"), "\n")
		if len(lines) > pageLines+5 {
			t.Errorf("%s: %d lines", c.Name, len(lines))
		}
		var known []string
		for _, f := range c.Flags {
			known = append(known, f.Names()...)
		}
		all := short
		if slices.Contains(known, helpAll) {
			if all = helpOf(t, c.Name, "--"+helpAll); strings.Contains(short, "  --"+helpAll) == false {
				t.Errorf("%s: the page does not say that there is --%s", c.Name, helpAll)
			}
		}
		for _, f := range c.Flags {
			if name := f.Names()[0]; name != "help" && !strings.Contains(all, "--"+name) {
				t.Errorf("%s: no help has --%s", c.Name, name)
			}
		}
		for _, line := range append(lines, strings.Split(all, "\n")...) {
			if n := utf8.RuneCountInString(line); n > pageColumns {
				t.Errorf("%s: %d columns: %s", c.Name, n, line)
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^  (?:-q, )?--?([a-z][a-z-]*)`).FindAllStringSubmatch(short, -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s: there is no --%s", c.Name, m[1])
			}
		}
		if !strings.Contains(short, "\nEXAMPLES\n  ") {
			t.Errorf("%s: there is no example", c.Name)
		}
	}
}

// The list of commands has each once, those that a newcomer never types in a group of their own at the end, and fits a page.
func TestCommandsAreInGroups(t *testing.T) {
	list := helpOf(t)
	if helpOf(t, "--help") != list {
		t.Error("the program prints another help without arguments")
	}
	if n := strings.Count(list, "\n"); n > pageLines+5 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(list) {
		if n := utf8.RuneCountInString(line); n > pageColumns+1 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	_, rare, _ := strings.Cut(list, "\nRARELY TYPED\n")
	for _, c := range newApp(nil, nil, nil).Commands {
		if n := strings.Count(list, "\n  "+c.Name+" "); n != 1 {
			t.Errorf("%s is listed %d times", c.Name, n)
		}
		if seldom := slices.Contains([]string{"diff-program", "merge", "man", "completion", "version"}, c.Name); seldom != strings.Contains("\n"+rare, "\n  "+c.Name+" ") {
			t.Errorf("%s stands in the wrong group", c.Name)
		}
	}
}

// A flag that does not exist: the hint has the flag of the command that is near, and says where the flags are listed if no flag is near.
func TestHintHasTheNearestFlag(t *testing.T) {
	for args, want := range map[string]string{
		"capture --out x": "--dir", "capture --promt x": "--prompt", "compare --json x": "--report", "compare --tol 1": "--rtol", "watch --layer 3": "--layers",
		"gate --reprot x": "--report", "doctor --checkpoint x": "--model", "weights --html x": "--report", "compare --out x": "--dir", "compare --lvl 2": "--level",
		"compare --foo": "", "inspect --zzzz": "", "init --q": "", "check --verify": "",
	} {
		var out, errOut bytes.Buffer
		if code := run(append([]string{"tracediff"}, strings.Fields(args)...), nil, &out, &errOut); code != exitUnusable {
			t.Errorf("%s: exit status %d", args, code)
		}
		command, _, _ := strings.Cut(args, " ")
		hint := "tracediff " + command + " --help lists the flags\n"
		if want != "" {
			hint = "did you mean " + want
		}
		if !strings.Contains(errOut.String(), "\nhint: "+hint) {
			t.Errorf("%s: %s", args, errOut.String())
		}
	}
}
