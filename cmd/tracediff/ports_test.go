package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The ports that are not ours, in the loop as a person has one: --local exec: runs it, a bug in it is located, the bug is
// fixed, the same command says so. $PORTS is fixtures/ports and $HOOKS is hooks. The C port needs a compiler, the numpy
// one an interpreter that has numpy, which TRACEDIFF_PYTHON names; what there is no means to run is said and left out.
func TestPorts(t *testing.T) {
	t.Chdir("../..") // where the sources are
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	add := func(name string, ok bool, lack string) {
		if !ok {
			t.Logf("%s: NOT TESTED, there is no %s", name, lack)
			return
		}
		files = append(files, filepath.Join(root, "cmd/tracediff/testdata/ports", name))
	}
	_, noCompiler := exec.LookPath("cc")
	add("c.txt", noCompiler == nil, "C compiler (cc)")
	python := os.Getenv("TRACEDIFF_PYTHON")
	add("numpy.txt", python != "", "TRACEDIFF_PYTHON that names an interpreter with numpy")
	if len(files) == 0 {
		return
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
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PORTS", filepath.Join(root, "fixtures", "ports"))
			e.Setenv("PYTHONPATH", filepath.Join(root, "hooks", "python"))
			e.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			e.Setenv("PYTHON", python)
			return nil
		},
	})
}
