package doctor

import (
	"context"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/order"
)

// checkDisk compares the estimated size of the input's traces with the free space.
func (p *Patient) checkDisk(_ context.Context, s *health.Section) {
	disk, err := health.DiskOf(p.Dir)
	if err != nil {
		s.Fail("choose another folder with --dir", "%v", err)
		return
	}
	free := "free space unknown"
	if disk.Free >= 0 {
		free = amount.Bytes(disk.Free) + " free"
	}
	if p.model.list == nil || p.input.Passes == nil {
		s.OK("%s at %s; what a trace takes depends on the model", free, disk.Folder)
		return
	}
	dtype, err := p.ComputedIn(p.model.config.DType)
	if err != nil {
		return // said of the model
	}
	// If a complete reference would be too large to keep, its capture has the requested scope.
	tokens := p.input.Lengths()
	limit := amount.Bytes(reference.MaxStored)
	all, why := capture.Scope{Level: 3}, ", which is kept up to "+limit
	if capture.DataBytes(p.model.list, all, dtype, tokens) > reference.MaxStored {
		all, why = p.Scope, ", since level 3 takes more than "+limit
	}
	local := TraceBytes(p.model.list, p.Scope, dtype, tokens)
	stored := TraceBytes(p.model.list, all, dtype, tokens)
	what := fmt.Sprintf("about %s for your port's trace (level %d, %s) and %s for a stored reference (level %d%s); %s at %s",
		amount.Bytes(local), p.Scope.Level, dtype, amount.Bytes(stored), all.Level, why, free, disk.Folder)
	need := saturate(float64(local) + float64(stored))
	const less = "a lower --level, fewer --layers or --positions at the capture take less; --dir names another disk"
	switch {
	case disk.Free >= 0 && need > disk.Free:
		s.Fail(less, "the traces do not fit: %s", what)
	case disk.Free >= 0 && need > disk.Free/2:
		s.Warn(less, "the traces take more than half of the free space: %s", what)
	default:
		s.OK("%s", what)
	}
}

// TraceBytes estimates the size of a trace: the data to the byte, the header with the room that a writer reserves. tokens
// has those of each forward call. A sum beyond int64 is its maximum.
func TraceBytes(list *order.List, scope capture.Scope, dtype hooks.DType, tokens []int) int64 {
	passes, all := 0, 0
	for pass, n := range tokens {
		all += n
		if scope.Passes.Has(pass) {
			passes++
		}
	}
	one := scope
	one.Passes = nil
	header := capture.Reserve(list, one, []int{all}) // of one pass; the keys of others are a little longer
	return saturate(capture.DataBytes(list, scope, dtype, tokens) + float64(passes)*float64(header))
}

func saturate(n float64) int64 {
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}
