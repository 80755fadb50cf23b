package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The help of compare fits a screen, and what it says of flags is true: each of them is there, and --help-all has every one.
func TestHelpOfCompareIsAPage(t *testing.T) {
	help := func(flag string) string {
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "compare", flag}, nil, &out, &errOut); code != exitMatch || errOut.Len() > 0 {
			t.Fatalf("%s: exit status %d: %s", flag, code, errOut.String())
		}
		return out.String()
	}
	short, all := help("--help"), help("--help-all")
	lines := strings.Split(strings.TrimSuffix(short, "\n"), "\n")
	if len(lines) > pageLines+5 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > pageColumns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	var known []string
	for _, f := range compareCommand().Flags {
		known = append(known, f.Names()...)
		if name := f.Names()[0]; !strings.Contains(all, "--"+name) {
			t.Errorf("--help-all has no --%s", name)
		}
	}
	shown := regexp.MustCompile(`(?m)^  --?([a-z][a-z-]*)`).FindAllStringSubmatch(short, -1)
	if len(shown) < 12 || len(shown) > 14 {
		t.Errorf("%d flags are shown", len(shown))
	}
	for _, m := range shown {
		if !slices.Contains(known, m[1]) {
			t.Errorf("there is no --%s", m[1])
		}
	}
}
