// Command weights measures the speed and memory of tracediff weights, in comparison with a program that only reads the same files.
//
//	go run ./internal/bench/weights [-gb 2] [-runs 3] [-formats F32,F16] [-profile FILE] DIR
//
// DIR is a folder outside of the tree, where the command makes an original of -gb GB in bfloat16, and a port in each format.
// Existing files are used. A new process compares each format, in turns with the reader. The table has the medians.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracediff/tracediff/internal/portweights"
	"github.com/tracediff/tracediff/internal/settings"
)

func main() {
	flags := flag.NewFlagSet("weights", flag.ExitOnError)
	gb := flags.Float64("gb", 2, "the size of the original, in `GB`")
	runs := flags.Int("runs", 3, "how many `TIMES` each is measured")
	formats := flags.String("formats", "", "which formats, of "+strings.Join(names(), ","))
	profile := flags.String("profile", "", "compare once, in this process, and write where the time goes to `FILE`")
	_ = flags.Parse(os.Args[1:]) // ExitOnError: Parse ends the program
	if flags.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/bench/weights [-gb 2] [-runs 3] [-formats F32,F16] [-profile FILE] DIR")
		os.Exit(2)
	}
	chosen := names()
	if *formats != "" {
		chosen = strings.Split(*formats, ",")
	}
	if err := measure(flags.Arg(0), int64(*gb*1e9), *runs, chosen, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "weights:", err)
		os.Exit(1)
	}
}

func measure(dir string, size int64, runs int, formats []string, profile string) error {
	if err := makeFiles(dir, size, formats); err != nil {
		return err
	}
	if profile != "" {
		return profiled(dir, formats, profile)
	}
	program := filepath.Join(dir, "tracediff")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/tracediff").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	fmt.Printf("%d cores, %s/%s, an original of %.1f GB in bfloat16, medians of %d runs\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, float64(size)/1e9, runs)
	fmt.Println("| port | GB of both | compared, GB/s | merely read, GB/s | ratio | resident, MiB | elements, 10^6/s | processor, s | GB/s of processor time |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, f := range formats {
		var took, read, busy []float64
		peak, all := 0, int64(0)
		for range runs {
			n, seconds, err := readFiles(original(dir), port(dir, f))
			if err != nil {
				return err
			}
			all, read = n, append(read, seconds)
			seconds, cpu, p, err := compared(program, dir, f)
			if err != nil {
				return err
			}
			took, busy, peak = append(took, seconds), append(busy, cpu), max(peak, p)
		}
		t, r, cpu := median(took), median(read), median(busy)
		fmt.Printf("| %s | %.1f | %.2f | %.2f | %.2f | %d | %.0f | %.2f | %.2f |\n", f, float64(all)/1e9, float64(all)/1e9/t, float64(all)/1e9/r, t/r, peak>>10, float64(size)/2/1e6/t, cpu, float64(all)/1e9/cpu)
	}
	return nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// readFiles reads files in pieces of 1 MiB, with as many goroutines as there are cores, and returns their bytes and the seconds.
func readFiles(paths ...string) (int64, float64, error) {
	const piece = 1 << 20
	started := time.Now()
	var all int64
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, "model.safetensors")
		}
		f, err := os.Open(path)
		if err != nil {
			return 0, 0, err
		}
		info, err := f.Stat()
		if err != nil {
			return 0, 0, errors.Join(err, f.Close())
		}
		all += info.Size()
		errs := make([]error, runtime.NumCPU())
		var wg sync.WaitGroup
		for w := range errs {
			wg.Go(func() {
				b := make([]byte, piece)
				for at := int64(w) * piece; at < info.Size(); at += int64(len(errs)) * piece {
					if _, err := f.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
						errs[w] = err
						return
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(append(errs, f.Close())...); err != nil {
			return 0, 0, err
		}
	}
	return all, time.Since(started).Seconds(), nil
}

// highWater is the peak of a process's resident memory, in /proc.
var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// compared runs tracediff weights, and returns the seconds on the clock, the seconds of processor time, and the peak of resident memory in
// KiB: 0 without /proc.
func compared(program, dir, format string) (seconds, busy float64, peak int, err error) {
	cmd := exec.Command(program, "weights", port(dir, format), "--model", original(dir), "--color", "never")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if seconds = time.Since(started).Seconds(); err != nil || !strings.Contains(out.String(), "\nMATCH: ") {
				err = fmt.Errorf("%s: %v\n%s", format, err, out.String())
			}
			busy = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
			return seconds, busy, peak, err
		case <-time.After(10 * time.Millisecond):
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if m := highWater.FindSubmatch(status); m != nil {
				peak, _ = strconv.Atoi(string(m[1])) // digits
			}
		}
	}
}

// profiled compares in this process.
func profiled(dir string, formats []string, path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for _, format := range formats {
		started := time.Now()
		r, err := portweights.Compare(context.Background(), settings.AskedWeights{Local: port(dir, format), Model: original(dir)})
		if err != nil {
			return err
		}
		fmt.Printf("%s: %+v in %.2f s\n", format, r.Counts, time.Since(started).Seconds())
	}
	return nil
}
