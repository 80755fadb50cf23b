package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/lanes"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// block is the number of elements that one worker measures at a time, and that a sum is cut into.
const block = 1 << 16

// noise is a tensor of n elements near each other on both sides, with what is not finite, masked or zero among them.
func noise(seed uint64, n int) (l, r []float64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	l, r = make([]float64, n), make([]float64, n)
	for i := range r {
		r[i] = 5 + rng.NormFloat64()
		l[i] = r[i] * (1 + 1e-4*rng.NormFloat64())
		switch rng.IntN(500) {
		case 0:
			l[i], r[i] = math.NaN(), math.NaN()
		case 1:
			l[i] = math.Inf(1)
		case 2:
			l[i], r[i] = low32, low32
		case 3:
			l[i], r[i] = math.Copysign(0, -1), 0
		}
	}
	return l, r
}

// many are two traces of tensors of several unequal blocks: rows that end within a block, rows longer than one, rows of
// a single element, one row of all, a tensor without elements, and every way of comparing.
func many(t testing.TB) (l, r *capture.Trace, names []string) {
	t.Helper()
	var left, right []hooks.Event
	add := func(name string, d hooks.DType, shape ...int) {
		n, _ := hooks.Elements(shape)
		a, b := noise(uint64(len(names)), max(n, 1))
		if d == hooks.I64 {
			for i := range a {
				a[i], b[i] = float64(i), float64(i-i%70000/69999)
			}
		}
		names = append(names, name)
		left, right = append(left, fire(name, d, shape, a...)), append(right, fire(name, d, shape, b...))
	}
	add("rows", hooks.F32, 1, 75, 2051)
	add("scalar", hooks.F32)
	add("long_rows", hooks.BF16, 2, 3*block/2+7)
	add("heads", hooks.F16, 2, 3, 200, 64)
	add("column", hooks.F32, 2, block+9, 1)
	add("one_row", hooks.F64, 2*block+1)
	add("ids", hooks.I64, 3, block)
	add("nothing", hooks.F32, 4, 0)
	add("logits", hooks.F32, 2, 70001)
	add("mask", hooks.F32, 1, 1, 300, 301)
	add("scores", hooks.F32, 1, 2, 300, 301)
	add("float8", hooks.F8E4M3, 5, 30011)
	return build(t, manifest("local", hooks.F32), left...), build(t, manifest("reference", hooks.F32), right...), names
}

// TestWorkersDoNotMatter compares whole Results, bit for bit, of several workers and with and without vectors.
func TestWorkersDoNotMatter(t *testing.T) {
	l, r, list := many(t)
	results := map[int]string{}
	named := names(t, list...)
	for i := range named.Entries {
		switch e := &named.Entries[i]; e.Name {
		case "mask":
			e.Compare = order.Pattern
		case "scores":
			e.Compare = order.Allowed
		}
	}
	for _, workers := range []int{1, 2, 7, 16} {
		res := run(t, l, r, compare.Options{Order: named, All: true, Workers: workers})
		if len(res.Rows) != len(list) {
			t.Fatalf("%d workers: %d rows of %d", workers, len(res.Rows), len(list))
		}
		data, err := json.MarshalIndent(res, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		results[workers] = string(data)
		if diff := cmp.Diff(results[1], results[workers]); diff != "" {
			t.Errorf("%d workers:\n%s", workers, diff)
		}
	}
	undo := lanes.SetVectors(false)
	defer undo()
	data, err := json.MarshalIndent(run(t, l, r, compare.Options{Order: named, All: true}), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(results[1], string(data)); diff != "" {
		t.Errorf("without vectors:\n%s", diff)
	}
}

// The same with certificates, of a trace with a fault, one with another engine's arithmetic, where entries are held against each
// other, and both sides' where an error that accumulated is excused: several entries are certified at a time.
func TestWorkersDoNotMatterToCertificates(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := ordertest.Embedded(t, dir)
	healthy := testengine.OpenGolden(t, "golden/"+dir+"/hello.bfloat16.safetensors")
	faulty := testengine.Tampered(t, healthy, func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
		if key != "layers.2.mlp.act_fn" && key != "layers.5.self_attn.q_proj" {
			return nil, 0
		}
		return append([]float64{data[0] + 1}, data[1:]...), hooks.BF16
	})
	passes, err := healthy.IDs()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	own := testengine.Style("keras", testengine.DrawKernels(rng, hooks.BF16), rng)
	engine := &testengine.Engine{Name: "another", DType: hooks.BF16, Choose: func(*order.Entry, int) testengine.Arithmetic { return own }}
	other := engine.Start(t, ordertest.Case{Checkpoint: ck, List: list, Passes: passes}, engine.Choose, nil).Trace()
	exact := testengine.OpenGolden(t, "golden/"+dir+"/hello.float32.safetensors")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	isolator := func(of *capture.Trace) *compare.Isolator {
		i, err := compare.NewIsolator(of, list, reference.Weights(ck, of.Manifest().DType), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	for _, c := range []struct {
		what  string
		local *capture.Trace
		ref   *capture.Trace
		shows func(*compare.Result) bool
	}{
		{"faulty", faulty, healthy, func(r *compare.Result) bool { return r.Isolation.Bugs >= 2 }},
		{"another arithmetic", other, healthy, func(r *compare.Result) bool { return len(r.Isolation.Findings) > 0 }},
		{"drift", healthy, exact, func(r *compare.Result) bool { return r.Isolation.Drift > 0 }},
		{"alone", other, nil, func(r *compare.Result) bool { return len(r.Isolation.Findings) > 0 }},
	} {
		t.Run(c.what, func(t *testing.T) {
			first := ""
			for _, workers := range []int{1, 2, 7, 16} {
				runtime.GOMAXPROCS(workers) // as many entries, and as many rows of a weight, are computed at a time
				o := compare.Options{Order: list, All: true, Workers: workers}
				o.Isolator = isolator(c.local)
				if c.ref != nil {
					o.ReferenceIsolator = isolator(c.ref)
				}
				res := run(t, c.local, c.ref, o)
				if res.Isolation.Certified < 380 || !c.shows(res) {
					t.Fatalf("%+v does not show what is to be tested", res.Isolation)
				}
				data, err := json.MarshalIndent(res, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				if first == "" {
					first = string(data)
				}
				if diff := cmp.Diff(first, string(data)); diff != "" {
					t.Errorf("%d workers:\n%s", workers, diff)
				}
			}
		})
	}
}

// counted counts what is read of a file.
type counted struct {
	io.ReaderAt
	mu    sync.Mutex
	bytes int64
	stop  func() // called when a read begins, if there is one
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += int64(n)
	if c.stop != nil {
		c.stop()
	}
	return n, err
}

// watched opens a trace again, by a reader that counts.
func watched(t testing.TB, tr *capture.Trace) (*capture.Trace, *counted) {
	t.Helper()
	f, err := os.Open(tr.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{ReaderAt: f}
	again, err := capture.OpenReader(tr.Path(), c, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return again, c
}

// large are two traces of many tensors of a few blocks, of which the local ones differ from one on.
func large(t testing.TB, tensors, from int) (l, r *capture.Trace, list []string) {
	t.Helper()
	var left, right []hooks.Event
	for i := range tensors {
		name := "t" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		list = append(list, name)
		x := 1.0
		if i >= from {
			x = 2
		}
		left, right = append(left, fire(name, hooks.F32, []int{64, 4096}, x)), append(right, fire(name, hooks.F32, []int{64, 4096}, 1))
	}
	return build(t, manifest("local", hooks.F32), left...), build(t, manifest("reference", hooks.F32), right...), list
}

// TestStopsReading has a divergence in the third of 60 tensors of 1 MiB: what is measured ahead of the walk is bounded.
func TestStopsReading(t *testing.T) {
	l, r, list := large(t, 60, 2)
	l, read := watched(t, l)
	opened := read.bytes
	const workers = 2
	res := run(t, l, r, compare.Options{Order: names(t, list...), Workers: workers})
	if res.Divergence == nil || res.Divergence.Row.Name != list[2] || len(res.Rows) != 3 {
		t.Fatalf("divergence %+v, %d rows", res.Divergence, len(res.Rows))
	}
	// Twice as many blocks as there are workers, and two readers, beside the three tensors.
	const most = 3<<20 + 2*(workers+2)*4*block
	if got := read.bytes - opened; got < 3<<20 || got > most {
		t.Errorf("read %d bytes, want 3 MiB to %d", got, most)
	}
}

// TestCancelledRun stops in the middle of the data, and leaves nobody who reads.
func TestCancelledRun(t *testing.T) {
	l, r, list := large(t, 30, 30)
	l, read := watched(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read.stop = func() {
		if read.bytes > 5<<20 {
			cancel()
		}
	}
	if res, err := compare.Traces(ctx, l, r, compare.Options{Order: names(t, list...), Workers: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("result %v, error %v", res, err)
	}
	if read.bytes > 15<<20 {
		t.Errorf("read %d bytes after it was cancelled at 5 MiB", read.bytes)
	}
}

// short is a file that ends before its size.
type short struct {
	io.ReaderAt
	end int64
}

func (s short) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > s.end {
		return 0, io.EOF
	}
	return s.ReaderAt.ReadAt(p, off)
}

// shrunk opens a trace again, by a file that has lost all data from an offset on.
func shrunk(t *testing.T, tr *capture.Trace, end int64) *capture.Trace {
	t.Helper()
	f, err := os.Open(tr.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	cut := &short{f, info.Size()}
	again, err := capture.OpenReader("cut", cut, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	cut.end = end
	return again
}

// TestFileThatShrinks has the error of the first tensor that cannot be read, whoever found it first.
func TestFileThatShrinks(t *testing.T) {
	l, r, list := large(t, 20, 20)
	again := shrunk(t, l, 10<<20)
	var first string
	for _, workers := range []int{1, 2, 7} {
		_, err := compare.Traces(context.Background(), again, r, compare.Options{Order: names(t, list...), Workers: workers})
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d workers: %v", workers, err)
		}
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("%d workers: %v, with one: %s", workers, err, first)
		}
	}
}

// TestFileThatShrinksToNothing has workers that meet errors while further tensors are prepared: no run may race, which -race reports.
func TestFileThatShrinksToNothing(t *testing.T) {
	l, r, list := large(t, 20, 20)
	again := shrunk(t, l, 0)
	for range 50 {
		if _, err := compare.Traces(context.Background(), again, r, compare.Options{Order: names(t, list...), Workers: 7}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
}
