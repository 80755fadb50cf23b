package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The ports that are not ours, in the loop as a person has one: --local exec: runs it, a bug in it is located, the bug is
// fixed, the same command says so. $PORTS is fixtures/ports and $HOOKS is hooks.
func TestPorts(t *testing.T) {
	t.Run("C", func(t *testing.T) {
		if _, err := exec.LookPath("cc"); err != nil {
			t.Skip("needs cc: a C compiler")
		}
		portScript(t, "c.txt")
	})
	t.Run("Numpy", func(t *testing.T) {
		if os.Getenv("TRACEDIFF_PYTHON") == "" {
			t.Skip("needs TRACEDIFF_PYTHON: an interpreter that has numpy")
		}
		portScript(t, "numpy.txt")
	})
}

// portScript runs one of the scripts in testdata/ports.
func portScript(t *testing.T, name string) {
	t.Helper()
	t.Chdir("../..") // where the sources are
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// Only compilers and interpreters read these: without a look at them go test would answer from its cache.
	for _, pattern := range []string{"fixtures/ports/*/*.[chp]*", "hooks/c/*.h", "hooks/python/tracediff/*.py"} {
		sources, err := filepath.Glob(pattern)
		if err != nil || len(sources) == 0 {
			t.Fatal(pattern, sources, err)
		}
		for _, source := range sources {
			if _, err := os.ReadFile(source); err != nil {
				t.Fatal(err)
			}
		}
	}
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join(root, "cmd/tracediff/testdata/ports", name)},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PORTS", filepath.Join(root, "fixtures", "ports"))
			e.Setenv("PYTHONPATH", filepath.Join(root, "hooks", "python"))
			e.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			e.Setenv("PYTHON", os.Getenv("TRACEDIFF_PYTHON"))
			return nil
		},
	})
}
