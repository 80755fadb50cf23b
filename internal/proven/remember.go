package proven

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/cpu"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/notebook"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// certificatesFolder is in the user's cache folder.
const certificatesFolder = "certificates"

// Remember gives the isolator of a large trace a memory, which identifies certificates by the bits of tensors, weights, order, program and processor. The
// next run certifies again the entries for which one of these has changed. There is no memory if a digest cannot be had.
func Remember(ctx context.Context, e *settings.Env, io *isolate.Options, local *capture.Trace, list *order.List, ck *checkpoint.Checkpoint) {
	size := ck.Size()
	for _, r := range local.Records() {
		size += r.Size
	}
	dir, err := os.UserCacheDir()
	if err != nil || size <= checkpoint.Large || list.IsRecorded() {
		return
	}
	weights, err := origin.Digest(ctx, e, ck, ck.Scheme())
	if err != nil {
		return
	}
	program, err := e.Process.Sum()
	if err != nil {
		return
	}
	text, err := json.Marshal(list)
	if err != nil {
		return
	}
	io.Of = fmt.Sprintf("program %s\nprocessor %v %v\norder %x\nconfig %x\nweights %s\n", program, cpu.X86, cpu.ARM64, sha256.Sum256(text), sha256.Sum256(ck.Config()), weights)
	io.Memory = memory{notebook.Open(filepath.Join(dir, "tracediff", certificatesFolder), io.Of)}
}

// memory is a store as isolators use one.
type memory struct{ *notebook.Store }

func (m memory) Load(k isolate.Key, into any) bool { return m.Store.Load(k, into) }
func (m memory) Keep(k isolate.Key, found any)     { m.Store.Keep(k, found) }

// Keep writes the memory of a comparison. A memory that cannot be written is no error: the next run certifies the entries again.
func Keep(e *settings.Env, o compare.Options) {
	if o.Isolator == nil {
		return
	}
	m, ok := o.Isolator.Options().Memory.(memory)
	if !ok {
		return
	}
	if n := m.Found(); n > 0 {
		e.Detail("%d results come from an earlier run of the same tensors, weights and program", n)
	}
	if err := m.Save(); err != nil {
		e.Detail("%v", err)
	}
}
