package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// limit adds to the options of a comparison the limits of accumulated errors: the person's own, and the noise floor of the
// prompt. stored is where the reference comes from, nil for one that is not of the store. list and ck may be nil.
func limit(ctx context.Context, e *Env, a *Asked, o *compare.Options, local, ref *capture.Trace, stored *reference.Entry, list *order.List, ck *checkpoint.Checkpoint) (err error) {
	if o.Limits = a.Limits; o.Alone {
		return nil
	}
	if o.Noise, err = noiseFloor(ctx, e, local, ref, stored, list, ck); errors.Is(err, context.Canceled) {
		return errors.New("interrupted while the noise floor was measured")
	}
	if place := (*files.Error)(nil); errors.As(err, &place) { // what stands there is somebody else's
		return err
	}
	if err != nil {
		fmt.Fprintf(e.Notes, "note: the built-in limits decide (docs/tolerance.md), since there is no noise floor: %v\n", err)
	}
	return nil
}

// maxFloorFile bounds what is read of a stored floor.
const maxFloorFile = 1 << 28

// maxWalk bounds the walks for which a comparison measures a floor by itself, in bytes of weights times tokens: a fraction
// of a second. A capture stores the floor of a larger model beside its reference.
const maxWalk = 1 << 27

// noiseFloor returns the floor of the reference's prompt in the coarser dtype of the two traces: the stored one, or one
// that is measured now and kept, where that costs next to nothing; nil where there is none.
func noiseFloor(ctx context.Context, e *Env, local, ref *capture.Trace, stored *reference.Entry, list *order.List, ck *checkpoint.Checkpoint) (*gate.NoiseFloor, error) {
	dtype, ok, err := coarser(list, local, ref)
	if !ok || err != nil {
		return nil, err
	}
	if stored == nil {
		if stored, err = storedTrace(e, ref.Path()); err != nil {
			return nil, err
		}
	}
	if stored != nil && stored.Floor {
		f, err := readFloor(stored.FloorPath())
		if err != nil || f.DType == dtype.String() {
			return f, err
		}
	}
	if ck == nil || list == nil || list.Config == nil || list.IsRecorded() { // its walk has the rounding of one dtype
		return nil, nil
	}
	passes, err := ref.IDs()
	if err != nil { // the report says that the table decided
		return nil, nil
	}
	if !cheap(ck, list, dtype, passes) {
		return nil, errors.New("the model is too large to measure it at every comparison; tracediff capture --reference hf stores one, and --tolerances FILE takes limits of your own")
	}
	w := reference.Wanted{Config: list.Config.Canonical(), Weights: ck.Digest(), DType: dtype, Passes: passes}
	if w.Order, err = reference.OrderDigest(list); err != nil {
		return nil, err
	}
	all := capture.Scope{Level: 3}
	key := reference.NewKey(w, all, reference.Runner{Name: "floor", Version: reference.WalkRunner().Version})
	dir := filepath.Join(e.Dir, "floors")
	if _, err := os.Stat(e.Dir); err != nil { // two files that are compared leave nothing behind
		if dir, err = files.MkdirTemp("tracediff-*"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	path := filepath.Join(dir, key.String()+".json")
	if f, err := readFloor(path); err == nil {
		return f, nil
	}
	walk := reference.Job{Checkpoint: ck, List: list, DType: dtype, Passes: passes, Memory: e.Memory, Manifest: capture.Manifest{Scope: all}}
	if err := writeFloor(ctx, e, walk, nil, path); err != nil {
		return nil, err
	}
	return readFloor(path)
}

// storedTrace finds the stored reference that holds the trace at a path. It asks the store in the folder of the file, the store that the file is part of, and
// the store of this session. The file of a symbolic link is the one that the link leads to. It returns nil if the trace was not stored.
func storedTrace(e *Env, path string) (*reference.Entry, error) {
	file := path
	if there, err := filepath.EvalSymlinks(path); err == nil {
		file = there
	}
	file, err := filepath.Abs(file) // the folder above "." is not "."
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(file)
	for _, traces := range []string{dir, filepath.Dir(dir), e.Dir} {
		found, err := reference.NewStore(traces).Of(path)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// coarser is the dtype whose rounding limits how near the traces can be; false where it is not one that the walk knows.
func coarser(list *order.List, local, ref *capture.Trace) (d hooks.DType, ok bool, err error) {
	d, err = isolate.ModelDType(list, local, ref)
	if err != nil {
		return 0, false, err
	}
	r, err := isolate.ModelDType(list, ref, local)
	if err != nil {
		return 0, false, err
	}
	if d.Float() && r.Float() {
		d = floats.Coarser(d, r)
	}
	return d, slices.Contains([]hooks.DType{hooks.F32, hooks.BF16, hooks.F16}, d), nil
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

func readFloor(path string) (*gate.NoiseFloor, error) {
	text, err := files.Read(path, maxFloorFile)
	if err != nil {
		return nil, err
	}
	floor, err := gate.ParseNoiseFloor(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return floor, nil
}
