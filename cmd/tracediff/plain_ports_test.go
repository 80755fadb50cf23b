package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ports of architectures that no order describes, in plain numpy and with names of their own: each matches the recorded run of
// transformers, and each of its bugs stops the comparison at the entry that has it. The map that is proposed for the port serves, too.
func TestPlainPorts(t *testing.T) {
	interpreter := os.Getenv("TRACEDIFF_PYTHON")
	if interpreter == "" {
		t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has torch and transformers")
	}
	dir := t.TempDir()
	cmd := exec.Command(interpreter, "../../fixtures/plainports/make.py", dir)
	cmd.Env = append(os.Environ(), "ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "bugs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bugs map[string]map[string]string
	if err := json.Unmarshal(data, &bugs); err != nil {
		t.Fatal(err)
	}
	if len(bugs) < 12 {
		t.Fatalf("%d ports", len(bugs))
	}
	for kind, all := range bugs {
		folder := filepath.Join(dir, kind)
		reference := filepath.Join(folder, "reference.safetensors")
		compared := func(code int, name, mapped string) string {
			t.Helper()
			return told(t, code, "compare", filepath.Join(folder, name+".npz"), reference, "--map", mapped, "--model", filepath.Join(folder, "model"))
		}
		byHand, proposed := "../../fixtures/plainports/"+kind+".toml", filepath.Join(folder, "map.toml")
		if err := os.WriteFile(proposed, []byte(told(t, 0, "map", filepath.Join(folder, "healthy.npz"), reference)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, mapped := range []string{byHand, proposed} {
			if said := compared(0, "healthy", mapped); !strings.Contains(said, "\nMATCH: all ") {
				t.Errorf("%s does not match by %s:\n%s", kind, mapped, said)
			}
		}
		if len(all) < 3 {
			t.Errorf("%s has %d bugs", kind, len(all))
		}
		for bug, entry := range all {
			said := strings.Split(compared(1, bug, byHand), "\n")
			if !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "first divergence: "+entry+" ") }) {
				t.Errorf("%s with %s does not stop at %s:\n%s", kind, bug, entry, strings.Join(said, "\n"))
			}
			if whole := strings.Contains(strings.Join(strings.Fields(strings.Join(said, " ")), " "), "the whole head is rotated, not a part"); whole != (kind == "gemma4_text" && bug == "rotated-whole") {
				t.Errorf("%s with %s is told another name:\n%s", kind, bug, strings.Join(said, "\n"))
			}
		}
	}
}
