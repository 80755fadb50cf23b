package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A small comparison reads no embedded checkpoint: what a process takes to start does not grow with what is embedded.
func TestSmallComparisonIsSmall(t *testing.T) {
	args := append([]string{"tracediff"}, tenTensors(t)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var out, errOut strings.Builder
	if code := run(args, strings.NewReader(""), &out, &errOut); code != exitMatch {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
	}
	runtime.ReadMemStats(&after)
	const most = 3 << 20
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("comparing ten small tensors allocates %d bytes, want %d at most", got, most)
	}
}

// tenTensors writes two small traces and returns the arguments that compare them.
func tenTensors(t testing.TB) []string {
	dir := t.TempDir()
	var names []string
	for k := range 10 {
		names = append(names, fmt.Sprintf("t%d", k))
	}
	list, local, reference := filepath.Join(dir, "order.txt"), filepath.Join(dir, "local.safetensors"), filepath.Join(dir, "reference.safetensors")
	must(t, os.WriteFile(list, []byte(strings.Join(names, "\n")), 0o666))
	writeSparse(t, local, names, len(names)<<14)
	writeSparse(t, reference, names, len(names)<<14)
	return []string{"compare", "--order", list, local, reference}
}

// built is the program as a person has it.
func built(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// spent is what one process took.
type spent struct{ wall, cpu, resident float64 }

// process runs a program to its end, which has to be exit 0.
func process(b *testing.B, program string, args ...string) spent {
	return processIn(b, "", program, args...)
}

// processIn runs a program with a folder for what it keeps; the user's own for no folder. With a folder the program may find a mismatch.
func processIn(b *testing.B, cache, program string, args ...string) spent {
	cmd := exec.Command(program, args...)
	if cache != "" {
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall, used := time.Since(start), cmd.ProcessState
	if err != nil && (cache == "" || used == nil || used.ExitCode() != exitMismatch) {
		b.Fatalf("%v: %v\n%s", args, err, out)
	}
	return spent{wall.Seconds(), (used.UserTime() + used.SystemTime()).Seconds(), float64(used.SysUsage().(*syscall.Rusage).Maxrss) / 1024}
}

// processes measures as many whole processes as the benchmark has rounds, and reports medians: -benchtime 5x takes five. The first and every
// later one find the same: args, which is called for each, names a new folder where a process keeps what it makes.
func processes(b *testing.B, program string, args func() []string) {
	var all []spent
	for b.Loop() {
		all = append(all, process(b, program, args()...))
	}
	median := func(of func(spent) float64) float64 {
		var x []float64
		for _, s := range all {
			x = append(x, of(s))
		}
		slices.Sort(x)
		return x[len(x)/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1000*median(func(s spent) float64 { return s.wall }), "ms")
	b.ReportMetric(1000*median(func(s spent) float64 { return s.cpu }), "ms-of-cpu")
	b.ReportMetric(median(func(s spent) float64 { return s.resident }), "MiB-resident")
}

// BenchmarkStart is what the program takes to start: its help, and two traces of ten tensors.
func BenchmarkStart(b *testing.B) {
	program, ten := built(b), tenTensors(b)
	b.Run("help", func(b *testing.B) { processes(b, program, func() []string { return []string{"--help"} }) })
	b.Run("ten-tensors", func(b *testing.B) { processes(b, program, func() []string { return ten }) })
}

// BenchmarkModel is `compare --isolate` of a trace at level 3, and the walk, of the checkpoint that TRACEDIFF_E2B names, as whole
// processes: fixtures/e2b.py makes it. The trace is the built-in model's in bfloat16. TRACEDIFF_TOKENS is the length of the prompt,
// 16 if it is not set, or several.
func BenchmarkModel(b *testing.B) {
	model := os.Getenv("TRACEDIFF_E2B")
	if model == "" {
		b.Skip("needs TRACEDIFF_E2B: the checkpoint that python fixtures/e2b.py makes")
	}
	lengths := strings.Fields(os.Getenv("TRACEDIFF_TOKENS"))
	if len(lengths) == 0 {
		lengths = []string{"16"}
	}
	program := built(b)
	for _, length := range lengths {
		n, err := strconv.Atoi(length)
		must(b, err)
		ids := make([]string, n)
		for k := range ids {
			ids[k] = strconv.Itoa(2 + k*k*97%4000)
		}
		tokens := strings.Join(ids, ",")
		dir := b.TempDir()
		process(b, program, "capture", "--quiet", "--side", "local", "--model", model, "--dtype", "bfloat16", "--tokens", tokens, "--level", "3", "--dir", dir)
		b.Run("isolate/tokens="+length, func(b *testing.B) {
			processes(b, program, func() []string {
				return []string{"compare", "--isolate", filepath.Join(dir, "local.safetensors"), "--model", model, "--quiet"}
			})
		})
		b.Run("walk/tokens="+length, func(b *testing.B) {
			processes(b, program, func() []string { // a walk that is kept is not made again
				return []string{"capture", "--quiet", "--side", "reference", "--reference", "go", "--model", model, "--dtype", "bfloat16", "--tokens", tokens, "--level", "2", "--dir", b.TempDir()}
			})
		})
	}
}

// BenchmarkRecorded is `compare --isolate` of one trace by the hand-written order and by the program that was recorded beside it, in
// turns, as whole processes. TRACEDIFF_E2B names the checkpoint, TRACEDIFF_RECORDED the trace that python -m tracediff.hf has
// written of it without an order. The first time the program has to give every tensor of its own run before it may accuse, as the order
// has to give what is embedded; that is kept, and the first-* figures are those of a process that finds nothing kept.
func BenchmarkRecorded(b *testing.B) {
	model, trace := os.Getenv("TRACEDIFF_E2B"), os.Getenv("TRACEDIFF_RECORDED")
	if model == "" || trace == "" {
		b.Skip("needs TRACEDIFF_E2B and TRACEDIFF_RECORDED: a checkpoint, and a recorded trace of it")
	}
	program, cache := built(b), b.TempDir()
	bare := filepath.Join(b.TempDir(), "trace.safetensors") // no program lies beside it
	must(b, os.Link(trace, bare))
	user, err := os.UserCacheDir()
	must(b, err)
	must(b, os.Mkdir(filepath.Join(cache, "tracediff"), 0o777))
	if known, err := os.ReadFile(filepath.Join(user, "tracediff", "digests.json")); err == nil { // of the weights, which would be hashed
		must(b, os.WriteFile(filepath.Join(cache, "tracediff", "digests.json"), known, 0o666))
	}
	isolate := func(args ...string) spent {
		return processIn(b, cache, program, append([]string{"compare", "--isolate", "--model", model, "--quiet"}, args...)...)
	}
	recorded := []string{bare, "--program", strings.TrimSuffix(trace, ".safetensors") + ".program.json"}
	isolate(bare) // weights that nobody hashed before are hashed by no process that is measured
	var ratios, walls, firsts, firstWalls []float64
	for b.Loop() {
		if err := os.Remove(filepath.Join(cache, "tracediff", "cleared.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.Fatal(err)
		}
		hand, first, kept := isolate(bare), isolate(recorded...), isolate(recorded...)
		ratios, walls = append(ratios, kept.cpu/hand.cpu), append(walls, kept.wall/hand.wall)
		firsts, firstWalls = append(firsts, first.cpu/hand.cpu), append(firstWalls, first.wall/hand.wall)
	}
	b.ReportMetric(0, "ns/op")
	for name, all := range map[string][]float64{"times-the-cpu": ratios, "times-the-wall": walls, "first-times-the-cpu": firsts, "first-times-the-wall": firstWalls} {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name)
	}
}
