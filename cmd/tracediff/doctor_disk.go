package main

import (
	"context"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/order"
)

// checkInput turns the prompt into ids, so that what follows can be said of them.
func (p *patient) checkInput(_ context.Context, s *health.Section) {
	if p.config == nil {
		return
	}
	if p.passes == nil {
		ids, err := p.encode()
		if err != nil {
			s.Fail("give the ids themselves: --tokens 2,513,88", "%v", err)
			return
		}
		p.passes = [][]int{ids}
	}
	tokens := 0
	for _, ids := range p.passes {
		tokens += len(ids)
	}
	if err := gemma.CheckPasses(p.config, p.passes, p.NewTokens); err != nil {
		s.Fail(hintFor(err), "%v", err)
		return
	}
	further := ""
	if p.NewTokens > 0 {
		further = ", then " + plural(p.NewTokens, "decode step")
	}
	s.OK("%s in %s%s", plural(tokens, "token"), plural(len(p.passes), "forward call"), further)
}

// encode returns the ids of the prompt, or of "What" where there is none. Without a tokenizer any id has the size of
// another.
func (p *patient) encode() ([]int, error) {
	switch {
	case p.tok == nil && p.Prompt != nil:
		return nil, fmt.Errorf("the prompt cannot be turned into ids without a tokenizer")
	case p.tok == nil:
		return []int{0}, nil
	case p.Prompt == nil:
		return p.tok.Encode("What")
	}
	ids, err := p.tok.Encode(*p.Prompt)
	if bos, ok := p.tok.BOS(); ok {
		ids = append([]int{bos}, ids...)
	}
	return ids, err
}

// checkDisk estimates the traces of the input and compares them with the room that there is.
func (p *patient) checkDisk(_ context.Context, s *health.Section) {
	disk, err := health.DiskOf(p.dir)
	if err != nil {
		s.Fail("choose another folder with --dir", "%v", err)
		return
	}
	free := "free space unknown"
	if disk.Free >= 0 {
		free = size(disk.Free) + " free"
	}
	if p.list == nil || p.passes == nil {
		s.OK("%s at %s; what a trace takes depends on the model", free, disk.Folder)
		return
	}
	dtype, err := p.dtype(p.config.DType)
	if err != nil {
		return // said of the model
	}
	local := traceBytes(p.list, p.Scope, dtype, p.passes, p.NewTokens)
	reference := traceBytes(p.list, capture.Scope{Level: 3}, dtype, p.passes, p.NewTokens)
	what := fmt.Sprintf("about %s for the local trace (level %d, %s) and %s for the reference (level 3); %s at %s",
		size(local), p.Scope.Level, dtype, size(reference), free, disk.Folder)
	need := saturate(float64(local) + float64(reference))
	const less = "a lower --level, fewer --layers or --positions at the capture take less; --dir names another disk"
	switch {
	case disk.Free >= 0 && need > disk.Free:
		s.Fail(less, "the traces do not fit: %s", what)
	case disk.Free >= 0 && need > disk.Free/2:
		s.Warn(less, "the traces take more than half of the room: %s", what)
	default:
		s.OK("%s", what)
	}
}

// traceBytes estimates the size of a trace: the data to the byte, the header with the room that a writer reserves. Each
// of further passes has one token. A sum beyond int64 is its maximum.
func traceBytes(list *order.List, scope capture.Scope, dtype hooks.DType, passes [][]int, further int) int64 {
	type form struct{ shape, dtype string }
	window := list.Config.SlidingWindow
	entries, times := map[form]*order.Entry{}, map[form]int{} // thousands of entries have some dozens of shapes
	selected := scope.Select(list)
	for _, e := range selected {
		f := form{fmt.Sprint(e.Shape), e.DType}
		entries[f] = e
		times[f]++
	}
	total, past := 0.0, 0
	for pass := range len(passes) + further {
		tokens := 1
		if pass < len(passes) {
			tokens = len(passes[pass])
		}
		for f, e := range entries {
			total += float64(times[f]) * elementBytes(e, dtype) * elementsOf(e.Size(order.Pass{Past: past, Tokens: tokens}, window))
		}
		past += tokens
	}
	header := capture.Reserve(list, scope, []int{past}) // of one pass; keys of others are a little longer
	return saturate(total + float64(header)*float64(len(passes)+further))
}

func elementBytes(e *order.Entry, dtype hooks.DType) float64 {
	if own, err := hooks.ParseDType(e.DType); err == nil {
		dtype = own
	}
	return float64(dtype.Size())
}

// elementsOf is a product that cannot overflow.
func elementsOf(shape []int) float64 {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}

func saturate(n float64) int64 {
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}
