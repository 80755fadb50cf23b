package isolate_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// Small models are gone through thousands of times, with a heap of some MiB: a third of the processor's time would be that of the
// garbage collector. GOGC, where it is set, has its way.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
