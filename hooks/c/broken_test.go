package c_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// one is a tensor of one float.
var one = hooks.Tensor{DType: hooks.F32, Shape: []int{1}, Data: []byte{1, 2, 3, 4}}

// recorded is a call to td_record with the pieces that a case wants to spoil.
func recorded(name, rest string) string { return "record " + word(&name) + " " + rest }

// What cannot stand in a trace is refused, once, in words; the trace is left as .part, readable up to there, and failed.
func TestRefused(t *testing.T) {
	cases := []struct{ name, command, want string }{
		{"no name", recorded("", "1 1 1 00000000"), "the name is empty"},
		{"NULL name", "record - 1 1 1 00000000", "the name is empty"},
		{"separator of passes", recorded("a/b", "1 1 1 00000000"), "contains '/' or '#'"},
		{"separator of firings", recorded("a#1", "1 1 1 00000000"), "contains '/' or '#'"},
		{"metadata", recorded("__metadata__", "1 1 1 00000000"), "keeps this name"},
		{"overlong UTF-8", recorded("\xc0\x80", "1 1 1 00000000"), "not valid UTF-8"},
		{"overlong UTF-8 of three", recorded("\xe0\x9f\xbf", "1 1 1 00000000"), "not valid UTF-8"},
		{"surrogate", recorded("\xed\xa0\x80", "1 1 1 00000000"), "not valid UTF-8"},
		{"beyond Unicode", recorded("\xf4\x90\x80\x80", "1 1 1 00000000"), "not valid UTF-8"},
		{"cut rune", recorded("gr\xc3", "1 1 1 00000000"), "not valid UTF-8"},
		{"lone continuation", recorded("\x80", "1 1 1 00000000"), "not valid UTF-8"},
		{"dtype", recorded("a", "15 1 1 00"), "no such dtype"},
		{"negative dtype", recorded("a", "-1 1 1 00"), "no such dtype"},
		{"negative size", recorded("a", "1 2 1 -1 00000000"), "negative"},
		{"product of sizes overflows", recorded("a", "1 3 4294967296 4294967296 4294967296 00"), "beyond any memory"},
		{"axes", recorded("a", "1 17 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 00000000"), "TD_MAX_DIMS"},
		{"NULL data", recorded("a", "1 1 1 -"), "has no data"},
		{"device that fails", "from " + word(text("a")) + " 1 1 1 00000000 0 -1", "the copy from its device failed"},
		{"pass backwards", "pass -1", "passes only go forward"},
	}
	each(t, func(t *testing.T, driver string) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "run.safetensors")
				var s script
				s.open(path, manifest{})
				s.record("before", one)
				s.do("%s", c.command)
				s.record("after", one)
				s.do("close")
				s.do("close")
				got := run(t, driver, &s)
				for i, want := range []string{"0", "0", "-1", "-1", "-1", "-1"} {
					if got[i].code != want || i > 1 && (!strings.Contains(got[i].err, c.want) || got[i].err != got[2].err) {
						t.Errorf("command %d: %+v, want %s and %q", i, got[i], want, c.want)
					}
				}
				failedAfter(t, path, 1)
			})
		}
	})
}

// failedAfter checks that a run left a trace that says that it failed, with so many tensors, and nothing else.
func failedAfter(t *testing.T, path string, tensors int) {
	t.Helper()
	tr := open(t, path+capture.Suffix)
	if _, failed := tr.Status().Failure(); !failed || len(tr.Records()) != tensors {
		t.Errorf("left a trace %q of %d tensors, want a failed one of %d", tr.Status(), len(tr.Records()), tensors)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left %v, want the .part alone", left)
	}
}

// A manifest that a reader would refuse is refused before there is a file.
func TestRefusedManifest(t *testing.T) {
	cases := []struct {
		name string
		m    manifest
		want string
	}{
		{"not UTF-8", manifest{prompt: text("\xff")}, "not valid UTF-8"},
		{"name not UTF-8", manifest{names: []string{"\xff"}}, "not valid UTF-8"},
		{"dtype", manifest{dtype: text("F32")}, "the dtype is not one of torch's"},
		{"level", manifest{level: 4}, "level of a scope"},
		{"layers without a level", manifest{layers: text("0")}, "need a level"},
		{"range backwards", manifest{level: 2, layers: text("3-1")}, "layers are a list"},
		{"range of what", manifest{level: 2, layers: text("0-x")}, "layers are a list"},
		{"range that ends", manifest{level: 2, layers: text("0,")}, "layers are a list"},
		{"range without numbers", manifest{level: 2, layers: text("-")}, "layers are a list"},
		{"layers beyond numbers", manifest{level: 2, layers: text("99999999999999999999")}, "layers are a list"},
		{"passes", manifest{passes: -1}, "negative"},
	}
	each(t, func(t *testing.T, driver string) {
		for _, c := range cases {
			dir := t.TempDir()
			var s script
			s.open(filepath.Join(dir, "run.safetensors"), c.m)
			s.record("a", one)
			s.do("close")
			for i, got := range run(t, driver, &s) {
				if got.code != "-1" || !strings.Contains(got.err, c.want) {
					t.Errorf("%s: command %d: %+v, want -1 and %q", c.name, i, got, c.want)
				}
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("%s: left %v", c.name, left)
			}
		}
		var s script
		s.open(filepath.Join(t.TempDir(), "no", "such", "folder"), manifest{})
		s.do("close")
		for _, got := range run(t, driver, &s) {
			if got.code != "-1" || !strings.Contains(got.err, "cannot be created") {
				t.Errorf("no folder: %+v", got)
			}
		}
	})
}

// A writer without a path, one that was never opened and none at all leave the hooks without effect.
func TestOff(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		for _, first := range []string{"", "open", "null"} {
			var s script
			switch first {
			case "open":
				s.open("", manifest{})
			case "null":
				s.do("null")
			}
			s.do("pass 3")
			s.record("a/b", one) // not even looked at
			s.do("fail 00")
			s.do("close")
			mustRun(t, driver, &s)
		}
	})
}

// What comes after the end of a trace is an error and leaves the finished trace alone.
func TestAfterTheEnd(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		var s script
		s.open(path, manifest{})
		s.record("a", one)
		s.do("close")
		s.do("close")
		s.record("b", one)
		s.do("fail 00")
		s.do("close")
		codes := ""
		for _, a := range run(t, driver, &s) {
			codes += a.code + " "
		}
		if codes != "0 0 0 0 -1 0 -1 " {
			t.Errorf("returned %s", codes)
		}
		if tr := open(t, path); tr.Status() != capture.StatusComplete || len(tr.Records()) != 1 {
			t.Errorf("%s, %d tensors", tr.Status(), len(tr.Records()))
		}
	})
}

// A process that ends in the middle of a device's tensor leaves those before it, and an older trace as it was.
func TestKilledInATensor(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		var s script
		s.open(path, manifest{prompt: text("old")})
		s.do("close")
		s.open(path, manifest{prompt: text("new"), reserve: 1})
		for i := range 9 {
			s.record("before", hooks.Tensor{DType: hooks.U8, Shape: []int{i}, Data: bytes.Repeat([]byte{byte(i)}, i)})
		}
		big := make([]byte, 600<<10)
		s.tensor("from", "big", hooks.Tensor{DType: hooks.U8, Shape: []int{len(big)}, Data: big})
		s.do(" -1 2")
		s.do("close")
		if got := run(t, driver, &s); len(got) != 12 {
			t.Fatalf("%d answers", len(got))
		}
		if old := open(t, path).Manifest(); old.Prompt != "old" {
			t.Errorf("the old trace is one of %q", old.Prompt)
		}
		tr := open(t, path+capture.Suffix)
		if tr.Status() != capture.StatusOpen {
			t.Errorf("status %q", tr.Status())
		}
		for i, e := range events(t, tr) {
			if !bytes.Equal(e.Tensor.Data, bytes.Repeat([]byte{byte(i)}, i)) || i > 8 {
				t.Errorf("tensor %d is %v", i, e.Tensor)
			}
		}
	})
}

// A process that is killed at any moment leaves whole tensors, and one that is killed later leaves no fewer.
func TestKilled(t *testing.T) {
	each(t, func(t *testing.T, driver string) {
		most := 0
		// On a busy machine it may take longer until there is a tensor.
		for life := 3 * time.Millisecond; life < 50*time.Millisecond || most == 0 && life < time.Minute; life *= 2 {
			path := filepath.Join(t.TempDir(), "run.safetensors")
			var s script
			s.open(path, manifest{reserve: 1})
			s.do("flood 3000")
			victim := exec.Command(driver)
			victim.Stdin = strings.NewReader(s.String())
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(life)
			_ = victim.Process.Kill()
			_ = victim.Wait() // killed, which is what was wanted
			if _, err := os.Stat(path + capture.Suffix); err != nil {
				continue // before there was a trace, nothing is in its place
			}
			all := events(t, open(t, path+capture.Suffix))
			for i, e := range all {
				if !bytes.Equal(e.Tensor.Data, bytes.Repeat([]byte{byte(i % 251)}, 3000)) {
					t.Fatalf("tensor %d of %d is not what was recorded", i, len(all))
				}
			}
			most = max(most, len(all))
		}
		if most == 0 {
			t.Error("no victim lived long enough to record a tensor")
		}
	})
}

// A disk that is full is an error that sticks, and what was recorded before it stays.
func TestDiskFull(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs ulimit: a limit on the size of files")
	}
	each(t, func(t *testing.T, driver string) {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		var s script
		s.open(path, manifest{})
		s.record("small", one)
		big := make([]byte, 400<<10)
		s.record("big", hooks.Tensor{DType: hooks.U8, Shape: []int{len(big)}, Data: big})
		s.record("after", one)
		s.do("close")
		// 200 blocks are at most 200 KiB; a process that ignores the signal of the limit sees an error.
		limited := exec.Command("sh", "-c", `trap '' XFSZ; ulimit -f 200; exec "$0"`, driver)
		got := runCommand(t, &s, limited)
		for i, want := range []string{"0", "0", "-1", "-1", "-1"} {
			if got[i].code != want || want != "0" && !strings.Contains(got[i].err, "big: ") {
				t.Errorf("command %d: %+v, want %s", i, got[i], want)
			}
		}
		failedAfter(t, path, 1)
	})
}
