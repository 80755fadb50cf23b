package compare_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
)

// BenchmarkRun is the whole comparison of two traces in the page cache, of many small tensors and of few large ones,
// all of whose elements differ and none of whose verdicts does. MB/s are those of both sides; "of-read" is that rate over
// the rate at which as many workers read the same files and do nothing else, measured before and after.
func BenchmarkRun(b *testing.B) {
	for _, d := range []hooks.DType{hooks.F32, hooks.BF16} {
		for _, size := range []struct {
			name    string
			tensors int
			shape   []int
		}{
			{"small", 100, []int{1, 256, 1024}},
			{"large", 2, []int{1, 8192, 2048}},
		} {
			b.Run(fmt.Sprintf("%s/%s", d, size.name), func(b *testing.B) {
				list, paths := writeLarge(b, d, size.tensors, size.shape)
				order := names(b, list...)
				l, r := open(b, paths[0]), open(b, paths[1])
				before, total := readRate(b, paths)
				b.SetBytes(total)
				b.ReportAllocs()
				for b.Loop() {
					res, err := compare.Traces(context.Background(), l, r, compare.Options{Order: order})
					if err != nil || res.Coverage.Compared != len(list) || res.Mismatches > 0 {
						b.Fatal(err, res)
					}
				}
				rate := float64(total) * float64(b.N) / b.Elapsed().Seconds()
				after, _ := readRate(b, paths)
				b.ReportMetric(rate/max(before, after), "of-read")
			})
		}
	}
}

// writeLarge writes two traces and returns the names in them. The values repeat from tensor to tensor.
func writeLarge(b *testing.B, d hooks.DType, tensors int, shape []int) (list []string, paths [2]string) {
	rng := rand.New(rand.NewPCG(1, 2))
	n, _ := hooks.Elements(shape)
	var data [2][]byte
	for range n {
		r := rng.NormFloat64()
		data[0] = appendValue(data[0], d, r*(1+1e-2*rng.NormFloat64()*map[hooks.DType]float64{hooks.F32: 1e-3, hooks.BF16: 1}[d]))
		data[1] = appendValue(data[1], d, r)
	}
	for i := range tensors {
		list = append(list, fmt.Sprintf("t%d", i))
	}
	for side, name := range []string{"local", "reference"} {
		paths[side] = filepath.Join(b.TempDir(), name+".safetensors")
		w, err := capture.Create(paths[side], manifest(name, d), 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, t := range list {
			if err := w.Observe(hooks.Event{Name: t, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: data[side]}}); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return list, paths
}

// readRate is how many bytes a second all processors read of some files by positioned reads of 1 MiB, and how many they have.
func readRate(b *testing.B, paths [2]string) (perSecond float64, total int64) {
	const chunk = 1 << 20
	type place struct {
		f   *os.File
		off int64
	}
	var places []place
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			b.Fatal(err)
		}
		total += info.Size()
		for off := int64(0); off < info.Size(); off += chunk {
			places = append(places, place{f, off})
		}
	}
	start := time.Now()
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			buffer := make([]byte, chunk)
			for i := w; i < len(places); i += workers {
				if _, err := places[i].f.ReadAt(buffer, places[i].off); err != nil && err != io.EOF {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	return float64(total) / time.Since(start).Seconds(), total
}
