package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The gate of this repository: the built-in model matches every golden that its file names, in a CI.
func TestOwnGate(t *testing.T) {
	t.Setenv("CI", "true")
	var out, errOut bytes.Buffer
	status := run([]string{"tracediff", "gate", "--config", "../../.ci/tracediff.toml", "--dir", filepath.Join(t.TempDir(), "traces")}, nil, &out, &errOut)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; status != exitMatch || !regexp.MustCompile(`^gate: (\d+) of (\d+) prompts match; built-in model$`).MatchString(last) {
		t.Errorf("exit status %d, %s\n%s", status, last, errOut.String())
	}
	if n := strings.Count(out.String(), "reference: transformers "); n != strings.Count(out.String(), "\n== ")+1 {
		t.Errorf("%d prompts are held to transformers, not all", n)
	}
}

// The action calls the gate with flags that it has.
func TestActionFlags(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	must(t, err)
	var known []string
	for _, f := range gateCommand().Flags {
		known = append(known, f.Names()...)
	}
	_, call, ok := strings.Cut(string(text), "- name: Gate\n")
	call, _, end := strings.Cut(call, "- name: Upload")
	used := regexp.MustCompile(`--([a-z]+)`).FindAllStringSubmatch(call, -1)
	if !ok || !end || len(used) < 5 {
		t.Fatalf("the action calls the gate with %d flags", len(used))
	}
	for _, u := range used {
		if !slices.Contains(known, u[1]) {
			t.Errorf("the action uses --%s, which the gate does not have", u[1])
		}
	}
}
