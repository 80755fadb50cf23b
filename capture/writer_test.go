package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// some are tensors of the kinds that are easy to get wrong: a scalar, empty ones, a name fired twice, a later pass.
var some = []hooks.Event{
	event(0, "input_ids", tensor(1, hooks.I64, 1, 4)),
	event(0, "empty", tensor(2, hooks.F16, 3, 0)),
	event(0, "scalar", tensor(3, hooks.F64)),
	event(0, "twice", tensor(4, hooks.BF16, 5)),
	event(0, "twice", tensor(5, hooks.BF16, 7)),
	event(2, `a "quoted" \ name`, tensor(6, hooks.F8E5M2, 2, 1, 2)),
	event(2, "twice", tensor(7, hooks.U32, 2)),
	event(10, "empty at the end", tensor(8, hooks.F32, 0)),
}

func TestTraceIsWhatWasFired(t *testing.T) {
	tr := open(t, write(t, capture.Manifest{}, 4096, some...))
	sameAsFired(t, tr, some)
	if tr.Status() != capture.StatusComplete || !tr.Sequence() || tr.Notes() != nil {
		t.Errorf("status %q, sequence %t, notes %q", tr.Status(), tr.Sequence(), tr.Notes())
	}
	if r, ok := tr.Lookup(2, "twice"); !ok || r.Key != "pass2/twice" {
		t.Errorf("twice in pass 2 is %q, %t", r.Key, ok)
	}
	if r, ok := tr.LookupFiring(0, "twice", 2); ok {
		t.Errorf("a third firing: %q", r.Key)
	}
}

func TestTraceWithoutTensors(t *testing.T) {
	sameAsFired(t, open(t, write(t, capture.Manifest{}, 0)), nil)
}

// Tensors are copied when they are fired: the model goes on to use its buffer for something else.
func TestBufferIsReused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	w := create(t, path, capture.Manifest{}, 0)
	var want []hooks.Event
	buffer := make([]byte, 8)
	for i := range 5 {
		x := tensor(i, hooks.F32, 2)
		want = append(want, event(i, "x", x))
		copy(buffer, x.Data)
		fire(t, w, event(i, "x", hooks.Tensor{DType: x.DType, Shape: x.Shape, Data: buffer}))
		clear(buffer)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sameAsFired(t, open(t, path), want)
}

// headerLength reads the length N that the file starts with.
func headerLength(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(binary.LittleEndian.Uint64(b))
}

// The reserve that HeaderBytes adds up to is enough, and what it leaves is within the promised tenth.
func TestReserve(t *testing.T) {
	events := slices.Repeat(some, 40)
	reserve := 0
	for i := range events {
		events[i].Pass = i / len(some) * 20
		e := events[i]
		reserve += capture.HeaderBytes(capture.Key(e.Pass, e.Name, 1), e.Tensor.DType, e.Tensor.Shape)
	}
	path := filepath.Join(t.TempDir(), "run.safetensors")
	w := create(t, path, capture.Manifest{}, reserve)
	before := headerLength(t, path+capture.Suffix)
	for i := range events {
		events[i].Pass = i / len(some)
	}
	fire(t, w, events...)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if after := headerLength(t, path); after != before {
		t.Errorf("the header has %d bytes, %d were reserved", after, before)
	}
	sameAsFired(t, open(t, path), events)
}

// A header without room is copied into larger ones, which a reader of the unfinished file does not notice. The data
// stay aligned.
func TestHeaderOverflow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	w := create(t, path, capture.Manifest{}, 0)
	var events []hooks.Event
	lengths := map[int]bool{}
	for i := range 60 {
		events = append(events, event(i/7, "name."+strconv.Itoa(i), tensor(i, hooks.F32, i%4, 3)))
		fire(t, w, events[i])
		n := headerLength(t, path+capture.Suffix)
		if lengths[n] = true; n%8 != 0 {
			t.Errorf("a header of %d bytes puts the data at an odd place", n)
		}
		sameAsFired(t, open(t, path+capture.Suffix), events)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sameAsFired(t, open(t, path), events)
	if len(lengths) < 3 || len(lengths) > 6 {
		t.Errorf("header lengths %v: want a few, each twice the one before", lengths)
	}
}

func TestHeaderLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	_, err := capture.Create(path, capture.Manifest{Prompt: strings.Repeat("x", 100_000_000)}, 0)
	wantError(t, "a prompt of 100 MB", err, "safetensors allows 100000000; capture less")
	if left := remains(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWrongEvents(t *testing.T) {
	x := tensor(0, hooks.F32, 2)
	for _, c := range []struct {
		what, want string
		event      hooks.Event
	}{
		{"no name", "the name is empty", event(0, "", x)},
		{"slash", "'/' or '#'", event(0, "a/b", x)},
		{"number sign", "'/' or '#'", event(0, "a#1", x)},
		{"metadata", "keeps this name", event(0, "__metadata__", x)},
		{"bytes", "not valid UTF-8", event(0, "a\xff", x)},
		{"no dtype", "no dtype", event(0, "a", hooks.Tensor{})},
		{"too few bytes", "needs 8 bytes, has 7", event(0, "a", hooks.Tensor{DType: hooks.F32, Shape: []int{2}, Data: x.Data[:7]})},
		{"negative size", "not possible", event(0, "a", hooks.Tensor{DType: hooks.F32, Shape: []int{-2}, Data: x.Data})},
		{"overflow", "not possible", event(0, "a", hooks.Tensor{DType: hooks.F32, Shape: []int{math.MaxInt, 3}})},
		{"backwards", "pass 0 after pass 1", event(0, "a", x)},
	} {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		w := create(t, path, capture.Manifest{}, 0)
		first := event(1, "first", x)
		fire(t, w, first)
		if c.what != "backwards" {
			c.event.Pass = 1
		}
		err := w.Observe(c.event)
		wantError(t, c.what, err, c.want)
		// The error sticks, ends up in the status, and what was right before it stays readable.
		if again := w.Observe(event(1, "b", x)); again != err {
			t.Errorf("%s: the next tensor gives %v, want the first error", c.what, again)
		}
		if closed := w.Close(); closed != err {
			t.Errorf("%s: Close gives %v, want the first error", c.what, closed)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the failed run has its final name: %v", c.what, err)
		}
		tr := open(t, path+capture.Suffix)
		sameAsFired(t, tr, []hooks.Event{first})
		if why, failed := tr.Status().Failure(); !failed || !strings.Contains(why, c.want) {
			t.Errorf("%s: status %q", c.what, tr.Status())
		}
	}
}

func TestFail(t *testing.T) {
	for _, c := range []struct{ why, want string }{
		{"no space left on device", "no space left on device"},
		{`hook "a": C:\x` + "\n\x00", `hook 'a': C:/x`},
		{"größe 木", "größe 木"},
		{"broken \xff", "broken ?"},
		{strings.Repeat("é", 500), strings.Repeat("é", (capture.StatusWidth-len("failed: "))/2)},
		{"x" + strings.Repeat("é", 500), "x" + strings.Repeat("é", (capture.StatusWidth-len("failed: x"))/2)},
	} {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		w := create(t, path, capture.Manifest{}, 0)
		fire(t, w, some...)
		if err := w.Fail(errors.New(c.why)); err != nil {
			t.Fatal(err)
		}
		tr := open(t, path+capture.Suffix)
		sameAsFired(t, tr, some)
		why, failed := tr.Status().Failure()
		if !failed || why != c.want || !utf8.ValidString(why) {
			t.Errorf("%q: status %q", c.why, tr.Status())
		}
		wantError(t, "observing afterwards", w.Observe(some[0]), "the trace is closed")
		wantError(t, "closing afterwards", w.Close(), "the trace is closed")
		if left := remains(t, path); !slices.Equal(left, []string{"run.safetensors.part"}) {
			t.Errorf("left behind: %v", left)
		}
	}
}

// Fail after Close is what a deferred Fail is on the good path.
func TestFailAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	w := create(t, path, capture.Manifest{}, 0)
	fire(t, w, some...)
	if err := errors.Join(w.Close(), w.Fail(errors.New("too late"))); err != nil {
		t.Fatal(err)
	}
	if tr := open(t, path); tr.Status() != capture.StatusComplete {
		t.Errorf("status %q", tr.Status())
	}
	wantError(t, "a second Close", w.Close(), "the trace is closed")
}

// Two runs never write one trace: the second is refused and harms neither the first nor an older trace.
func TestTwoWriters(t *testing.T) {
	old := []hooks.Event{event(0, "old", tensor(0, hooks.F32, 2))}
	path := write(t, capture.Manifest{}, 0, old...)
	first := create(t, path, capture.Manifest{}, 0)
	fire(t, first, some[:3]...)
	_, err := capture.Create(path, capture.Manifest{}, 0)
	wantError(t, "a second writer", err, "another run is writing it: wait for that run to end, or name another file")
	sameAsFired(t, open(t, path), old)
	fire(t, first, some[3:]...)
	_, err = capture.Create(path, capture.Manifest{}, 0)
	wantError(t, "a third writer", err, "another run is writing it")
	if !capture.Busy(path) {
		t.Error("a trace that is being written is not busy")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	sameAsFired(t, open(t, path), some)
	if capture.Busy(path) {
		t.Error("a trace that is written is busy")
	}
	create(t, path, capture.Manifest{}, 0) // and now the way is free
}

// What an interrupted run left blocks nobody, even if it is no trace at all.
func TestStalePart(t *testing.T) {
	for _, stale := range []string{"", "no trace"} {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		for _, name := range []string{".part", ".part.new", ".lock"} {
			if err := os.WriteFile(path+name, []byte(stale), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		w := create(t, path, capture.Manifest{}, 0)
		fire(t, w, some...)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		sameAsFired(t, open(t, path), some)
		if left := remains(t, path); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// full is a disk with so much room; its files fail with errFull behind it.
type full struct {
	capture.OSDisk
	room *int64
}

var errFull = errors.New("no space left")

type fullFile struct {
	capture.File
	room *int64
}

func (d full) Create(path string) (capture.File, error) {
	f, err := d.OSDisk.Create(path)
	return fullFile{f, d.room}, err
}

func (d full) Open(path string) (capture.File, error) {
	f, err := d.OSDisk.Open(path)
	return fullFile{f, d.room}, err
}

func (f fullFile) WriteAt(p []byte, off int64) (int, error) {
	if off > *f.room {
		return 0, errFull
	}
	n := min(int64(len(p)), *f.room-off)
	written, err := f.File.WriteAt(p[:n], off)
	if err == nil && written < len(p) {
		err = errFull
	}
	return written, err
}

// When the disk is full, in the data or while the header is being copied, the trace keeps the tensors before, says
// why it ends, and its writer does not pretend.
func TestFullDisk(t *testing.T) {
	for room := int64(1500); room < 4000; room += 100 {
		path := filepath.Join(t.TempDir(), "run.safetensors")
		w, err := capture.CreateOn(full{room: &room}, path, capture.Manifest{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var written []hooks.Event
		for i := 0; err == nil; i++ {
			e := event(0, "x", tensor(i, hooks.F32, i, 8))
			if err = w.Observe(e); err == nil {
				written = append(written, e)
			}
		}
		if !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) {
			t.Fatalf("room %d: error %v", room, err)
		}
		tr := open(t, path+capture.Suffix)
		sameAsFired(t, tr, written)
		if why, failed := tr.Status().Failure(); !failed || !strings.Contains(why, "no space left") {
			t.Errorf("room %d: status %q", room, tr.Status())
		}
		if left := remains(t, path); !slices.Equal(left, []string{"run.safetensors.part"}) {
			t.Errorf("room %d: left behind: %v", room, left)
		}
	}
}

func TestCreateErrors(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		what, path, want string
		m                capture.Manifest
	}{
		{"no directory", "none/run.safetensors", "no such file", capture.Manifest{}},
		{"prompt", "p", "manifest, tracediff.prompt: not valid UTF-8", capture.Manifest{Prompt: "\xff"}},
		{"config", "c", "manifest, tracediff.config: not JSON", capture.Manifest{Config: []byte("{")}},
		{"dtype", "d", "manifest, tracediff.dtype: dtype(99) is not a dtype", capture.Manifest{DType: 99}},
		{"scope", "s", "scope has level 0", capture.Manifest{Scope: capture.Scope{Tensors: []string{"*"}}}},
		{"passes", "n", "-1 passes", capture.Manifest{Passes: -1}},
	} {
		_, err := capture.Create(filepath.Join(dir, c.path), c.m, 0)
		wantError(t, c.what, err, c.want)
	}
	if left := remains(t, filepath.Join(dir, "x")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A run writes thousands of tensors while a model waits for it: none of them is to cost an allocation.
func TestObserveDoesNotAllocate(t *testing.T) {
	w := create(t, filepath.Join(t.TempDir(), "run.safetensors"), capture.Manifest{}, 1<<20)
	e := event(0, "layers.3.self_attn.q_norm", tensor(0, hooks.BF16, 1, 4, 8))
	allocations := testing.AllocsPerRun(500, func() {
		e.Pass++
		if err := w.Observe(e); err != nil {
			t.Error(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations for each tensor", allocations)
	}
}

// The same events make the same bytes, whatever the machine.
func TestDeterministic(t *testing.T) {
	var files [2][]byte
	for i := range files {
		b, err := os.ReadFile(write(t, declared, 100, some...))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = b
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two runs, two files")
	}
}
