package noise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// maxWalk bounds the walks for which a comparison measures a missing floor, in bytes of weights times tokens: a
// fraction of a second. A capture stores the floor of a larger model next to its reference.
const maxWalk = 1 << 27

// Traces are the two traces of a comparison and the known facts about their model.
type Traces struct {
	Local, Ref *capture.Trace
	Stored     *reference.Entry       // the reference's place in the store; nil if it is not stored
	List       *order.List            // nil where the order is not known
	Checkpoint *checkpoint.Checkpoint // nil where it is not known
}

// Floor returns the noise floor of the reference's prompt, in the coarser dtype of the two traces. It reads a
// stored floor, or measures and stores one if the cost is small. Otherwise it returns nil.
func (t Traces) Floor(ctx context.Context, e *settings.Env) (*gate.NoiseFloor, error) {
	ref, list, ck, stored := t.Ref, t.List, t.Checkpoint, t.Stored
	dtype, ok, err := Coarser(list, t.Local, ref)
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
	if _, err := os.Stat(e.Dir); err != nil { // a comparison of two files without a folder of traces leaves no files
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
	if err := Write(ctx, e, walk, nil, path); err != nil {
		return nil, err
	}
	return readFloor(path)
}

// storedTrace finds the stored reference that holds the trace at a path. It asks the store in the folder of the file, the store that the file is part of, and
// the store of this session. The file of a symbolic link is the one that the link leads to. It returns nil if the trace was not stored.
func storedTrace(e *settings.Env, path string) (*reference.Entry, error) {
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

// Coarser returns the dtype whose rounding limits the agreement of the traces. ok is false if the walk does not
// support the dtype.
func Coarser(list *order.List, local, ref *capture.Trace) (d hooks.DType, ok bool, err error) {
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
