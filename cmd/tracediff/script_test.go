package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	// Small models are gone through hundreds of times, with a heap of some MiB: a third of the processor's time would be that of the
	// garbage collector. GOGC, where it is set, has its way.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	// CI asks for parity, which a test says itself. This is run as the program, too, which has to see it.
	if filepath.Base(os.Args[0]) != "tracediff" {
		if err := os.Unsetenv("CI"); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"tracediff": main, "show-progress": showProgress})
}

// The scripts run the real program as a person would. $FIXTURES is a folder with the embedded files in it, $BUGS one with
// traces of ports that have a bug, $BUG the first of them, $TRAINING one with traces of training loops. $FOREIGN is a file
// that the official Python package wrote, $DUMPS the folder with dumps of other writers.
func TestScripts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := ondisk.Copy(folder); err != nil {
		t.Fatal(err)
	}
	bugs, err := filepath.Abs("../../fixtures/bugs")
	if err != nil {
		t.Fatal(err)
	}
	training, err := filepath.Abs("../../fixtures/training")
	if err != nil {
		t.Fatal(err)
	}
	late := filepath.Join(t.TempDir(), "late.safetensors")
	changed{golden: "decode.bfloat16", level: 1, late: true}.write(t, late)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", folder)
			bug, err := filepath.Abs(bugFixture)
			e.Setenv("BUG", bug)
			e.Setenv("BUGS", bugs)
			e.Setenv("FOREIGN", filepath.Join(filepath.Dir(bugs), "foreign", "official.safetensors"))
			e.Setenv("DUMPS", filepath.Join(filepath.Dir(bugs), "foreign"))
			e.Setenv("TRAINING", training)
			e.Setenv("LATE", late)
			e.Setenv("HOSTILE", "\x1b[31mred\x1b[0m")
			if err != nil {
				return err
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cut": cut, "unfinish": unfinish, "claim": claim, "bare": bare, "model": modelDir, "spoil": spoil, "grow": grow,
			"edit": edit, "weights": weights, "shard": shard, "replace": replace, "flip": flip, "says": unbrokenSays,
		},
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

// claim FILE N makes a trace of one pass say that it has N.
func claim(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	length := binary.LittleEndian.Uint64(data)
	header := bytes.Replace(data[8:8+length], []byte(`"tracediff.passes":"1"`), []byte(`"tracediff.passes":"`+args[1]+`"`), 1)
	header = append(header, bytes.Repeat([]byte(" "), -len(header)&7)...)
	claimed := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	ts.Check(os.WriteFile(path, append(claimed, data[8+length:]...), 0o666))
}

// bare FILE NAME... leaves the tensors of these names, and nothing of what a trace says of itself.
func bare(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	tensors := slices.DeleteFunc(readWeights(ts, path), func(t checkpointtest.Tensor) bool { return !slices.Contains(args[1:], t.Name) })
	if len(tensors) != len(args)-1 {
		ts.Fatalf("%d of %d names are there", len(tensors), len(args)-1)
	}
	ts.Check(os.WriteFile(path, checkpointtest.File(tensors), 0o666))
}

// model DIR [NAME] copies an embedded checkpoint, the tiny one by default, to a folder, to be spoiled.
func modelDir(ts *testscript.TestScript, _ bool, args []string) {
	from, err := fs.Sub(ondisk.Files(), append(args, embedded)[1])
	ts.Check(err)
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), from))
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chmod(path, 0o777)
		}
		return err
	}))
}

// unbrokenSays is the command says PATTERN: it is stdout for a report of lines that are broken at the width of a page: it sees each in one piece, and the hint below it
// as a line of its own.
func unbrokenSays(ts *testscript.TestScript, not bool, args []string) {
	const indent = "\n                  "
	text := strings.ReplaceAll(ts.ReadFile("stdout"), indent+"hint: ", "\n hint: ")
	text = strings.ReplaceAll(text, " \\"+indent, indent) // a command that goes on
	text = strings.ReplaceAll(strings.ReplaceAll(text, indent+"      ", " "), indent, " ")
	if found := regexp.MustCompile("(?m)" + args[0]).MatchString(text); found == not {
		ts.Fatalf("%q: found is %v in\n%s", args[0], found, text)
	}
}

// spoil FILE changes a weight: the lowest bit of the last byte.
func spoil(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ts.Check(err)
	defer f.Close()
	info, err := f.Stat()
	ts.Check(err)
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	ts.Check(err)
	_, err = f.WriteAt([]byte{last[0] ^ 1}, info.Size()-1)
	ts.Check(err)
}

// flip FILE TEXT N changes the lowest bit of the byte that stands N bytes behind the first occurrence of a text.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	at := bytes.Index(data, []byte(args[1]))
	if at < 0 || at+n >= len(data) {
		ts.Fatalf("%s has no %q with %d bytes behind it", args[0], args[1], n)
	}
	data[at+n] ^= 1
	ts.Check(os.WriteFile(path, data, 0o666))
}

// edit FILE TO OLD NEW writes a text with one thing in place of another, which has to be there.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[2]) {
		ts.Fatalf("%s has no %q", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.ReplaceAll(text, args[2], args[3])), 0o666))
}

// grow FILE adds a tensor of zeros to a safetensors file, as a hole: its size is past what is hashed at every run.
func grow(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	length := int(binary.LittleEndian.Uint64(data))
	header := bytes.TrimRight(data[8:8+length], " ")
	end := len(data) - 8 - length
	header = fmt.Appendf(header[:len(header)-1:len(header)-1], `,"hole":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}}`, digestLimit, end, end+digestLimit)
	grown := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	grown = append(append(grown, header...), data[8+length:]...)
	ts.Check(os.WriteFile(path, grown, 0o666))
	ts.Check(os.Truncate(path, int64(len(grown))+digestLimit))
}
