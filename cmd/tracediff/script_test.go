package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracediff/tracediff/fixtures"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tracediff": main})
}

// The scripts run the real program as a person would. $FIXTURES is a folder with the embedded files in it.
func TestScripts(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, fixtures.Files); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", folder)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"cut": cut, "unfinish": unfinish, "model": modelDir},
	})
}

// cut FILE N leaves the first N bytes of a file.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	n := 0
	for _, c := range args[1] {
		n = n*10 + int(c-'0')
	}
	ts.Check(os.WriteFile(path, data[:n], 0o666))
}

// unfinish FILE makes a complete trace one whose run did not end: its status says open.
func unfinish(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	length := int(binary.LittleEndian.Uint64(data))
	header := bytes.Replace(data[8:8+length], []byte("complete"), []byte("open    "), 1)
	ts.Check(os.WriteFile(path, append(append(data[:8:8], header...), data[8+length:]...), 0o666))
}

// model DIR copies the embedded tiny checkpoint to a folder, to be spoiled.
func modelDir(ts *testscript.TestScript, _ bool, args []string) {
	from, err := fs.Sub(fixtures.Files, embedded)
	ts.Check(err)
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), from))
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chmod(path, 0o777)
		}
		return err
	}))
}
