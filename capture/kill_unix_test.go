//go:build unix && !race

// A writer is for one goroutine, so the race detector has nothing to find here, and it makes each of the hundreds of
// processes start a hundred times more slowly.

package capture_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// The environment of a child of TestKill: where to write, how long to live and how to end.
const (
	killPath = "TRACEDIFF_TEST_KILL_PATH"
	killLife = "TRACEDIFF_TEST_KILL_LIFE"
	killEnd  = "TRACEDIFF_TEST_KILL_END"
)

func TestMain(m *testing.M) {
	path := os.Getenv(killPath)
	if path == "" {
		os.Exit(m.Run())
	}
	life, err := strconv.ParseInt(os.Getenv(killLife), 10, 64)
	if err == nil {
		err = victim(&mortal{life: life}, path, os.Getenv(killEnd), func() {})
	}
	// Whoever gets here was not killed, or died before its time.
	fmt.Fprintln(os.Stderr, "the victim lives:", err)
	os.Exit(3)
}

// victims are the tensors that every victim fires: of all sizes, in several passes, and with names long enough to
// use up the header's room twice.
func victims() []hooks.Event {
	var events []hooks.Event
	for i := range 24 {
		name := fmt.Sprintf("layers.%d.größe.%0*d", i%8, 1+i%3*20, i)
		d := []hooks.DType{hooks.F32, hooks.BF16, hooks.I64}[i%3]
		events = append(events, event(i/8, name, tensor(i, d, i%5, 1+i*i)))
	}
	return append(events, event(3, "again", tensor(1, hooks.Bool)), event(3, "again", tensor(2, hooks.Bool)))
}

// victim writes the trace of victims at path, and completes it or, with the end "fail", lets it fail. It calls
// done after creating the trace and after every tensor.
func victim(d *mortal, path, end string, done func()) error {
	w, err := capture.CreateOn(d, path, capture.Manifest{Side: "local", Prompt: "Hello world"}, 800)
	if err != nil {
		return err
	}
	done()
	for _, e := range victims() {
		if err := w.Observe(e); err != nil {
			return err
		}
		done()
	}
	if end == "fail" {
		return w.Fail(errors.New("größe 木 of the layer is wrong"))
	}
	return w.Close()
}

// A mortal disk takes one unit of life for each byte that is written and for each other step. When none is left
// the process is killed, in the middle of a write if need be: the bytes before that point are on the disk then.
type mortal struct {
	capture.OSDisk
	life  int64
	lived int64
	steps []step // what it did: where each step started and what it cost
}

type step struct{ start, cost int64 }

// spend takes the cost of a step. A write that costs more than is left is made for the part that is left.
func (d *mortal) spend(cost int64, partly func(int64)) {
	d.steps = append(d.steps, step{d.lived, cost})
	if cost > d.life-d.lived {
		partly(d.life - d.lived)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	d.lived += cost
}

func (d *mortal) Create(path string) (capture.File, error) {
	d.spend(1, func(int64) {})
	f, err := d.OSDisk.Create(path)
	return mortalFile{f, d}, err
}

func (d *mortal) Open(path string) (capture.File, error) {
	d.spend(1, func(int64) {})
	f, err := d.OSDisk.Open(path)
	return mortalFile{f, d}, err
}

func (d *mortal) Rename(from, to string) error {
	d.spend(1, func(int64) {})
	return d.OSDisk.Rename(from, to)
}

type mortalFile struct {
	capture.File
	disk *mortal
}

func (f mortalFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.spend(int64(len(p)), func(n int64) { _, _ = f.File.WriteAt(p[:n], off) })
	return f.File.WriteAt(p, off)
}

func (f mortalFile) Sync() error {
	f.disk.spend(1, func(int64) {})
	return f.File.Sync()
}

func (f mortalFile) Close() error {
	f.disk.spend(1, func(int64) {})
	return f.File.Close()
}

// life is what a victim that nobody kills does.
type life struct {
	total   int64
	created int64   // when Create returned
	listed  []int64 // when each tensor's entry was written
	steps   []step
}

func fullLife(t *testing.T, end string) life {
	t.Helper()
	d := &mortal{life: math.MaxInt64}
	var done []int64
	path := filepath.Join(t.TempDir(), "run.safetensors")
	if err := victim(d, path, end, func() { done = append(done, d.lived) }); err != nil {
		t.Fatal(err)
	}
	return life{total: d.lived, created: done[0], listed: done[1:], steps: d.steps}
}

// points are the ages at which victims are killed: at the start, in the middle and before the last byte of every
// step, and evenly in between.
func (l life) points() []int64 {
	var points []int64
	for _, s := range l.steps {
		points = append(points, s.start, s.start+s.cost/2, s.start+max(0, s.cost-1))
	}
	for i := range int64(40) {
		points = append(points, i*l.total/40)
	}
	slices.Sort(points)
	return slices.Compact(points)
}

// kill runs a victim for so long and returns where it wrote.
func kill(t *testing.T, age int64, end string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.safetensors")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), killPath+"="+path, killLife+"="+strconv.FormatInt(age, 10), killEnd+"="+end)
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the victim was not killed: %v\n%s", err, out)
	}
	return path
}

// inspect opens what a victim left and checks it against what it had done by that age.
func inspect(t *testing.T, path string, age int64, l life) (status capture.Status) {
	t.Helper()
	tr, err := capture.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		tr, err = capture.Open(path + capture.Suffix)
	}
	if errors.Is(err, fs.ErrNotExist) && age < l.created {
		return "" // killed before there was a trace, and nothing half made is in its place
	}
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	// An entry is whole but for its last byte, which closes the header and not the entry.
	whole := 0
	for whole < len(l.listed) && l.listed[whole]-1 <= age {
		whole++
	}
	sameAsFired(t, tr, victims()[:whole])
	if tr.Status() == capture.StatusComplete && whole < len(victims()) {
		t.Errorf("complete, with %d of %d tensors", whole, len(victims()))
	}
	return tr.Status()
}

// TestKill kills a writing process at hundreds of points and opens what is left.
func TestKill(t *testing.T) {
	l := fullLife(t, "close")
	points := l.points()
	if len(points) < 200 {
		t.Fatalf("only %d points to kill at", len(points))
	}
	var mu sync.Mutex
	seen := map[capture.Status]int{}
	t.Run("at", func(t *testing.T) {
		for i, age := range points {
			t.Run(strconv.FormatInt(age, 10), func(t *testing.T) {
				t.Parallel()
				path := kill(t, age, "close")
				status := inspect(t, path, age, l)
				mu.Lock()
				seen[status]++
				mu.Unlock()
				if i%10 == 0 {
					runAgain(t, path)
				}
			})
		}
	})
	t.Logf("%d points in %d bytes and steps left traces of status %v", len(points), l.total, seen)
	if seen[capture.StatusOpen] < 150 || seen[capture.StatusComplete] == 0 {
		t.Errorf("the points are not spread over the life of a writer: %v", seen)
	}
}

// runAgain writes the trace anew where a victim died.
func runAgain(t *testing.T, path string) {
	t.Helper()
	w := create(t, path, capture.Manifest{}, 0)
	fire(t, w, victims()...)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sameAsFired(t, open(t, path), victims())
	if left := remains(t, path); len(left) != 1 {
		t.Errorf("a complete run leaves %v behind", left)
	}
}

// TestKillFailing kills at every byte of the text that says why a run failed, inside its runes too.
func TestKillFailing(t *testing.T) {
	l := fullLife(t, "fail")
	status := l.steps[len(l.steps)-3] // before the sync and the close
	for age := status.start; age < status.start+50; age++ {
		t.Run(strconv.FormatInt(age, 10), func(t *testing.T) {
			t.Parallel()
			path := kill(t, age, "fail")
			if got := inspect(t, path, age, l); got == capture.StatusComplete {
				t.Error("a run that failed is complete")
			}
		})
	}
}
