package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command itself, in place of the test when told so.
func TestMain(m *testing.M) {
	if os.Getenv("TRACEDIFF_TEST_SKIPS") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// event lines as go test -json writes them.
func say(action, name, output string) string {
	s := `{"Action":"` + action + `","Package":"github.com/tracediff/tracediff/pkg"`
	if name != "" {
		s += `,"Test":"` + name + `"`
	}
	if output != "" {
		s += `,"Output":"` + output + `\n"`
	}
	return s + "}\n"
}

var (
	passes  = say("run", "TestA", "") + say("output", "TestA", "=== RUN   TestA") + say("output", "TestA", "    a_test.go:1: a number") + say("pass", "TestA", "")
	skips   = say("run", "TestB", "") + say("output", "TestB", "    b_test.go:1: needs B: why") + say("skip", "TestB", "")
	fails   = say("output", "TestC", "    c_test.go:1: it is wrong") + say("fail", "TestC", "")
	ended   = say("output", "", "PASS") + say("output", "", "ok  \\tpkg\\t0.1s") + say("pass", "", "")
	refused = say("output", "", "FAIL\\tpkg\\t0.1s") + say("fail", "", "")
)

const listed = "# a comment\n\npkg TestB: needs B: why\n"

func TestSkips(t *testing.T) {
	for name, c := range map[string]struct {
		events, allow string
		args          []string
		code          int
		want          string // in the output
	}{
		"nothing is skipped":                  {passes + ended, "", nil, 0, "ok  \tpkg\t0.1s\n1 tests, 0 skipped"},
		"a skip that is listed":               {passes + skips + ended, listed, nil, 0, "2 tests, 1 skipped"},
		"a skip without a list":               {passes + skips + ended, "", nil, 1, "pkg TestB was skipped, which is not allowed"},
		"a skip that is not listed":           {skips + ended, "pkg TestA: needs A: why\n", nil, 1, "pkg TestB was skipped, which is not allowed"},
		"a skip of another package's name":    {skips + ended, "other TestB: needs B: why\n", nil, 1, "pkg TestB was skipped, which is not allowed"},
		"a skip for another reason":           {skips + ended, "pkg TestB: needs C: why\n", nil, 1, "for another reason than"},
		"a listed test that is gone":          {passes + ended, listed, nil, 1, "pkg TestB is listed and did not run"},
		"a listed test that passes":           {passes + skips + ended, listed + "pkg TestA: needs A: why\n", nil, 1, "pkg TestA is listed and was not skipped"},
		"a listed test that passes somewhere": {passes + skips + ended, listed + "? pkg TestA: needs A: why\n", nil, 0, "2 tests, 1 skipped"},
		"one of those that is gone":           {skips + ended, listed + "? pkg TestA: needs A: why\n", nil, 1, "pkg TestA is listed and did not run"},
		"one that is wanted":                  {passes + ended, "", []string{"TestA"}, 0, "1 tests"},
		"one that is wanted and not there":    {passes + ended, "", []string{"TestA", "TestB"}, 1, "TestB has to pass here"},
		"one that is wanted and skipped":      {passes + skips + ended, listed, []string{"TestB"}, 1, "TestB has to pass here"},
		"no test at all":                      {ended, "", nil, 1, "no test has run"},
		"no event at all":                     {"", "", nil, 1, "no test has run"},
		"a test that fails":                   {passes + fails + refused, "", nil, 1, "    c_test.go:1: it is wrong\nFAIL\tpkg\t0.1s\nskips: pkg failed\nFAIL\n"},
		"a test that ends in a panic":         {say("run", "TestD", "") + say("output", "TestD", "panic: d") + refused, "", nil, 1, "panic: d\nskips: pkg failed"},
		"a panic after a test that passes":    {passes + say("output", "TestA", "panic: late") + refused, "", nil, 1, "panic: late\nFAIL\tpkg\t0.1s\nskips: pkg failed"},
		"a test that does not end":            {passes + say("run", "TestD", ""), "", nil, 1, "pkg TestD did not end"},
		"a package that does not build": {
			`{"Action":"build-output","ImportPath":"pkg","Output":"x.go:1: no\n"}` + "\n" + `{"Action":"build-fail","ImportPath":"pkg"}` + "\n" + passes + ended, "", nil, 1,
			"x.go:1: no\nok  \tpkg\t0.1s\nskips: pkg failed",
		},
		"what is no event":            {"go: a warning\n" + passes + ended, "", nil, 0, "go: a warning\nok"},
		"what passes is not printed":  {passes + ended, "", nil, 0, "ok"},
		"what passes is printed":      {passes + ended, "", []string{"-v"}, 0, "    a_test.go:1: a number\nok"},
		"a list without a reason":     {passes + ended, "pkg TestB\n", nil, 2, "line 1: \"pkg TestB\" is not PACKAGE TEST: needs WHAT: WHY"},
		"a list with another reason":  {passes + ended, "pkg TestB: no time\n", nil, 2, "is not PACKAGE TEST"},
		"a list with one thing twice": {passes + ended, listed + listed, nil, 2, "line 6: pkg TestB is listed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if c.allow != "" {
				list := filepath.Join(t.TempDir(), "skips")
				if err := os.WriteFile(list, []byte(c.allow), 0o666); err != nil {
					t.Fatal(err)
				}
				args = append([]string{"-allow", list}, args...)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, args...)
			cmd.Env = append(os.Environ(), "TRACEDIFF_TEST_SKIPS=1")
			cmd.Stdin = strings.NewReader(c.events)
			out, _ := cmd.CombinedOutput() // the status is looked at below
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.want, out)
			}
			if name == "what passes is not printed" && strings.Contains(string(out), "a number") {
				t.Errorf("printed: %s", out)
			}
		})
	}
}
