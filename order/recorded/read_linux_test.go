package recorded_test

import (
	"bytes"
	"cmp"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/tracediff/tracediff/order/recorded"
)

// BenchmarkRead reads a program and expands its entries: the file that TRACEDIFF_PROGRAM names, or a small one.
// cpu-ms is the time of all processors, which a busy machine does not change much.
func BenchmarkRead(b *testing.B) {
	data, err := os.ReadFile(cmp.Or(os.Getenv("TRACEDIFF_PROGRAM"), "../../fixtures/programs/qwen3-tiny.bfloat16.program.json"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	entries := 0
	before := processors(b)
	for b.Loop() {
		p, err := recorded.Read(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		passes, err := p.Entries()
		if err != nil {
			b.Fatal(err)
		}
		entries = 0
		for _, all := range passes {
			entries += len(all)
		}
	}
	b.ReportMetric(float64(entries), "entries")
	b.ReportMetric((processors(b)-before).Seconds()*1000/float64(b.N), "cpu-ms")
}

// processors is the time that this process has used.
func processors(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
