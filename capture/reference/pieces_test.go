package reference_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A walk whose large tensors are computed and written some rows at a time writes the same file, byte by byte, and chooses the same tokens.
func TestWalkInPieces(t *testing.T) {
	in := 0
	for _, g := range goldens(t, hooks.BF16) {
		for _, c := range []struct {
			name  string
			exact bool
			scope capture.Scope
		}{
			{"all", false, capture.Scope{Level: 3}},
			{"exact", true, capture.Scope{Level: 3}},
			{"level 1", false, capture.Scope{Level: 1}},
			{"level 2", false, capture.Scope{Level: 2}},
			{"some positions", false, capture.Scope{Level: 3, Positions: capture.Ranges{{From: 1, To: 2}, {From: 5, To: 5}}}},
			{"of the first pass", false, capture.Scope{Level: 3, Passes: capture.Ranges{{From: 0, To: 0}}}},
			{"up to the scores", false, capture.Scope{Level: 3, Tensors: []string{"*.scores*"}}},
			{"up to the probabilities", false, capture.Scope{Level: 3, Tensors: []string{"layers.0.*.probs"}}},
		} {
			whole, greedy := g.inPieces(t, c.scope, c.exact, 0, nil)
			pieces := []int64{160 * 100} // of 100 elements
			if c.name == "all" {
				pieces = append(pieces, 1, 160*1000)
			}
			for _, memory := range pieces {
				file, chosen := g.inPieces(t, c.scope, c.exact, memory, nil)
				if !bytes.Equal(file, whole) {
					t.Errorf("%s, %s: another file in pieces with %d bytes", g.Path(), c.name, memory)
				}
				if !slices.Equal(chosen, greedy) {
					t.Errorf("%s, %s: with %d bytes the passes choose %v, want %v", g.Path(), c.name, memory, chosen, greedy)
				}
			}
			in++
		}
	}
	if in < 40 {
		t.Errorf("%d walks", in)
	}
}

// A hook gets a tensor as a whole, and what it puts there is what later steps read, whatever is computed in pieces beside it.
func TestWalkInPiecesWithHooks(t *testing.T) {
	g := goldens(t, hooks.BF16)[0]
	scores, _ := g.list.Lookup("layers.1.self_attn.scores")
	want := scores.Size(order.Pass{Tokens: len(g.passes[0])}, 0)
	hooked := func(memory int64, replace bool) []byte {
		reg := &hooks.Registry{}
		if err := reg.Observe(scores.Name, func(e hooks.Event) error {
			if e.Pass == 0 && !slices.Equal(e.Tensor.Shape, want) {
				t.Errorf("with %d bytes a hook gets %v, want %v", memory, e.Tensor.Shape, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if replace {
			if err := reg.Replace("mask.*", func(e hooks.Event) (hooks.Tensor, error) {
				e.Tensor.Data = make([]byte, len(e.Tensor.Data)) // every key is seen
				return e.Tensor, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		file, _ := g.inPieces(t, capture.Scope{Level: 1}, false, memory, reg)
		return file
	}
	plain, _ := g.inPieces(t, capture.Scope{Level: 1}, false, 0, nil)
	if got := hooked(160*100, false); !bytes.Equal(got, plain) {
		t.Error("another file with a hook")
	}
	if whole, got := hooked(0, true), hooked(160*100, true); bytes.Equal(whole, plain) || !bytes.Equal(got, whole) {
		t.Error("in pieces a mask that is replaced has another effect")
	}
}

// inPieces walks over the passes of a golden and two more. It returns the file, and the tokens that are chosen.
func (g transformersTrace) inPieces(t *testing.T, scope capture.Scope, exact bool, memory int64, reg *hooks.Registry) ([]byte, []int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	out, err := reference.Walk(t.Context(), reference.Job{
		Checkpoint: g.ck, List: g.list, DType: hooks.BF16, Exact: exact, Passes: g.passes, NewTokens: 2, Path: path, Memory: memory, Watch: reference.Watch{Registry: reg},
		Manifest: capture.Manifest{Scope: scope},
	})
	if err != nil {
		t.Fatalf("%s: %v", g.Path(), err)
	}
	if left := must(filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")))(t); len(left) > 0 {
		t.Errorf("%s left %v", g.Path(), left)
	}
	return must(os.ReadFile(path))(t), out.Greedy
}

// What a walk has in memory does not grow with the square of the prompt: neither scores nor probabilities nor masks are there as a whole, whether they are
// written or not. Each of them takes more here than the walk may.
func TestWalkKeepsToItsMemory(t *testing.T) {
	const tokens, memory, most = 1200, 64 << 20, 8 << 20
	ck, list := ordertest.Embedded(t, "gemma3-tiny")
	mask, _ := list.Lookup("mask.full")
	scores, _ := list.Lookup("layers.0.self_attn.scores")
	for _, e := range []*order.Entry{mask, scores} {
		n := 8
		for _, d := range e.Size(order.Pass{Tokens: tokens}, 0) {
			n *= d
		}
		if n <= most {
			t.Fatalf("%s takes %d bytes", e.Name, n)
		}
	}
	ids := make([]int, tokens)
	for k := range ids {
		ids[k] = 2 + k%100
	}
	for level := 1; level <= 3; level++ {
		runtime.GC()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		peak, at := uint64(0), 0
		job := reference.Job{
			Checkpoint: ck, List: list, DType: hooks.BF16, Passes: [][]int{ids}, Path: filepath.Join(t.TempDir(), "walk.safetensors"), Memory: memory,
			Manifest: capture.Manifest{Scope: capture.Scope{Level: level}},
			Watch: reference.Watch{Progress: func(_, _, entry, _ int) { // an entry is there, or its last piece
				runtime.GC()
				if runtime.ReadMemStats(&now); now.HeapAlloc > peak {
					peak, at = now.HeapAlloc, entry
				}
			}},
		}
		if _, err := reference.Walk(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		t.Logf("level %d: %d bytes at entry %d", level, peak-before.HeapAlloc, at)
		if peak > before.HeapAlloc+most {
			t.Errorf("level %d: %d bytes are in memory at entry %d, want %d at most", level, peak-before.HeapAlloc, at, most)
		}
	}
}

// A walk that ends in the middle of a tensor leaves an unfinished trace without it, and no other file.
func TestWalkInPiecesEnds(t *testing.T) {
	g := goldens(t, hooks.BF16)[0]
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	job := reference.Job{
		Checkpoint: g.ck, List: g.list, DType: hooks.BF16, Passes: g.passes[:1], Path: path, Memory: 16000, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
		Watch: reference.Watch{Progress: func(_, _, entry, entries int) {
			if entry == entries-2 { // of the head only lm_head and logits are left
				cancel()
			}
		}},
	}
	if _, err := reference.Walk(ctx, job); !errors.Is(err, context.Canceled) {
		t.Fatalf("the walk ended with %v", err)
	}
	got := must(capture.Open(path + capture.Suffix))(t)
	defer got.Close()
	if _, ok := got.Lookup(0, "logits"); ok {
		t.Error("the trace has logits that were not computed")
	}
	if _, ok := got.Lookup(0, "norm"); !ok {
		t.Error("the trace has not what was computed before")
	}
	if left := must(filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")))(t); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
