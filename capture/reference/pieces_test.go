package reference_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
)

// A walk whose large tensors are computed and written some rows at a time writes the same file, byte by byte, and chooses the same tokens.
func TestWalkInPieces(t *testing.T) {
	in := 0
	for _, g := range goldens(t, hooks.BF16) {
		for _, exact := range []bool{false, true} {
			var files [][]byte
			var greedy [][]int
			for _, elements := range []int{0, 100} {
				path := filepath.Join(t.TempDir(), "walk.safetensors")
				job := reference.Job{
					Checkpoint: g.ck, List: g.list, DType: hooks.BF16, Exact: exact, Passes: g.passes, NewTokens: 2, Path: path, Elements: elements,
					Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
				}
				out, err := reference.Walk(t.Context(), job)
				if err != nil {
					t.Fatalf("%s: %v", g.Path(), err)
				}
				greedy = append(greedy, out.Greedy)
				files = append(files, must(os.ReadFile(path))(t))
				if left := must(filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")))(t); len(left) > 0 {
					t.Errorf("%s left %v", g.Path(), left)
				}
			}
			if !bytes.Equal(files[0], files[1]) || len(greedy[0]) != len(greedy[1]) {
				t.Errorf("%s, exact %t: another file in pieces", g.Path(), exact)
			}
			for k, id := range greedy[0] {
				if greedy[1][k] != id {
					t.Errorf("%s: pass %d chooses %d in pieces, and %d as a whole", g.Path(), k, greedy[1][k], id)
				}
			}
			in++
		}
	}
	if in < 10 {
		t.Errorf("%d walks", in)
	}
}

// A walk that ends in the middle of a tensor leaves an unfinished trace without it, and no other file.
func TestWalkInPiecesEnds(t *testing.T) {
	g := goldens(t, hooks.BF16)[0]
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	job := reference.Job{
		Checkpoint: g.ck, List: g.list, DType: hooks.BF16, Passes: g.passes[:1], Path: path, Elements: 100, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
		Progress: func(_, _, entry, entries int) {
			if entry == entries-2 { // of the head only lm_head and logits are left
				cancel()
			}
		},
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
