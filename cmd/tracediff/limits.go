package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// limitFlags say how far accumulated errors may go.
func limitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "rtol", Category: catCompare, Usage: "relative `L2` that every tensor may be off, in place of multiples of the prompt's noise floor"},
		&cli.Float64Flag{Name: "atol", Category: catCompare, Usage: "root mean square that every tensor may be off beside --rtol, in its own `UNITS`"},
		&cli.StringFlag{Name: "tolerances", Category: catCompare, Usage: "TOML `FILE` with [[tolerance]] by pattern, the first that matches decides, and [[allow]] with reasons"},
	}
}

// limit adds to the options of a comparison the limits of accumulated errors: the person's own, and the noise floor of the
// prompt. stored is where the reference comes from, nil for one that is not of the store. list and ck may be nil.
func limit(c *cli.Context, o *compare.Options, limits *compare.Limits, local, ref *capture.Trace, stored *reference.Entry, list *order.List, ck *checkpoint.Checkpoint) (err error) {
	if o.Limits = limits; o.Alone {
		return nil
	}
	if o.Noise, err = noiseFloor(c, local, ref, stored, list, ck); errors.Is(err, context.Canceled) {
		return errors.New("interrupted while the noise floor was measured")
	}
	if err != nil {
		fmt.Fprintf(notes(c), "note: the table of limits decides, there is no noise floor: %v\n", err)
	}
	return nil
}

// readLimits reads the flags and the file that they name: once, as it may be a stream, and before anything runs.
func readLimits(c *cli.Context) (*compare.Limits, error) {
	l := &compare.Limits{}
	if path := c.String("tolerances"); path != "" {
		var err error
		if l, err = openLimits(path); err != nil {
			return nil, hinted(fmt.Errorf("--tolerances %w", onPath(path, err)), "tracediff compare --help and docs/tolerance.md say what the file may hold")
		}
	} else if c.IsSet("tolerances") {
		return nil, hinted(errors.New("--tolerances is empty"), "leave the flag out for limits by the noise floor")
	}
	if c.IsSet("rtol") || c.IsSet("atol") {
		l.Default = &compare.Tolerance{RTol: c.Float64("rtol"), ATol: c.Float64("atol")}
		if err := l.Default.Check(); err != nil {
			return nil, hinted(fmt.Errorf("--%w", err), "--rtol 1e-3 is a limit for float32, 2e-2 one for bfloat16; without it the noise floor of the prompt decides")
		}
	}
	return l, nil
}

func openLimits(path string) (*compare.Limits, error) {
	text, _, err := files.ReadStream(path, compare.MaxLimits)
	if err != nil {
		return nil, err
	}
	return compare.ParseLimits(text)
}

// maxFloorFile bounds what is read of a stored floor.
const maxFloorFile = 1 << 28

// maxWalk bounds the walks for which a comparison measures a floor by itself, in bytes of weights times tokens: a fraction
// of a second. A capture stores the floor of a larger model beside its reference.
const maxWalk = 1 << 27

// noiseFloor returns the floor of the reference's prompt in the coarser dtype of the two traces: the stored one, or one
// that is measured now and kept, where that costs next to nothing; nil where there is none.
func noiseFloor(c *cli.Context, local, ref *capture.Trace, stored *reference.Entry, list *order.List, ck *checkpoint.Checkpoint) (*compare.NoiseFloor, error) {
	dtype, ok := coarser(local, ref)
	if !ok {
		return nil, nil
	}
	if stored != nil && stored.Floor {
		f, err := readFloor(stored.FloorPath())
		if err != nil || f.DType == dtype.String() {
			return f, err
		}
	}
	if ck == nil || list == nil || list.Config == nil {
		return nil, nil
	}
	passes, err := ref.IDs()
	if err != nil || !cheap(ck, list, dtype, passes) {
		return nil, nil // ids that are missing, or too much: the report says that the table decided
	}
	w := reference.Wanted{Config: list.Config.Canonical(), Weights: ck.Digest(), DType: dtype, Passes: passes}
	if w.Order, err = reference.OrderDigest(list); err != nil {
		return nil, err
	}
	all := capture.Scope{Level: 3}
	key := reference.NewKey(w, all, reference.Runner{Name: "floor", Version: reference.WalkRunner().Version})
	dir := filepath.Join(c.String("dir"), "floors")
	if _, err := os.Stat(c.String("dir")); err != nil { // two files that are compared leave nothing behind
		if dir, err = os.MkdirTemp("", "tracediff-*"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	path := filepath.Join(dir, key.String()+".json")
	if f, err := readFloor(path); err == nil {
		return f, nil
	}
	job := reference.Job{Checkpoint: ck, List: list, DType: dtype, Passes: passes, Manifest: capture.Manifest{Scope: all}}
	if err := writeFloor(c.Context, job, path); err != nil {
		return nil, err
	}
	return readFloor(path)
}

// coarser is the dtype whose rounding limits how near the traces can be; false where it is not one that the walk knows.
func coarser(local, ref *capture.Trace) (hooks.DType, bool) {
	d, r := local.Manifest().DType, ref.Manifest().DType
	if d.Float() && r.Float() {
		d = floats.Coarser(d, r)
	}
	return d, slices.Contains([]hooks.DType{hooks.F32, hooks.BF16, hooks.F16}, d)
}

func cheap(ck *checkpoint.Checkpoint, list *order.List, dtype hooks.DType, passes [][]int) bool {
	const data = 64 << 20 // of both traces, which are written and read again
	var tokens []int
	sum := 0
	for _, ids := range passes {
		tokens = append(tokens, len(ids))
		sum += len(ids)
	}
	return sum > 0 && int64(sum) <= maxWalk/max(ck.Size(), 1) && capture.DataBytes(list, capture.Scope{Level: 3}, dtype, tokens) <= data
}

func readFloor(path string) (*compare.NoiseFloor, error) {
	text, err := files.Read(path, maxFloorFile)
	if err != nil {
		return nil, err
	}
	floor, err := compare.ParseNoiseFloor(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return floor, nil
}
