// Read reads files by positioned reads of 1 MiB, as many at a time as there are processors, and does nothing else: the rate at which
// anything that reads them can run.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

const chunk = 1 << 20

func main() {
	for _, path := range os.Args[1:] {
		if err := read(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
}

func read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make([]error, runtime.GOMAXPROCS(0))
	for w := range failed {
		all.Go(func() {
			buffer := make([]byte, chunk)
			for {
				off := (next.Add(1) - 1) * chunk
				if off >= info.Size() {
					return
				}
				if _, err := f.ReadAt(buffer, off); err != nil && err != io.EOF {
					failed[w] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
