// Package reference makes and keeps the reference of a comparison. A reference comes from the float64 walk over
// TENSOR_ORDER, from transformers in the embedded runner, from a command that writes a trace, or from a golden, which is a
// trace by transformers of an embedded checkpoint. The store keeps references for later comparisons.
//
// A reference either fits or is refused with a reason. A trace of another model, other token ids or another dtype is never
// compared. A runner counts as successful only if it ended well and left a complete trace.
package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Wanted describes the reference that a comparison needs.
type Wanted struct {
	Config    json.RawMessage
	Model     string    // a path or name; the last element distinguishes models with unknown weights
	Weights   string    // a digest, or "unknown"
	Changed   time.Time // the last change of the weights, used for unknown weights
	Order     string    // the digest of the list to record, see OrderDigest
	DType     hooks.DType
	Passes    [][]int       // the token ids of each pass of the input; the reference chooses the ids of decoded passes
	NewTokens int           // further passes wanted, one token each
	Scope     capture.Scope // the scope of the comparison
	Entries   []string      // the names in scope
	// Recorded: no order describes the model. The trace has the names of the program recorded in the same run, and declares
	// no configuration: the digest of the program ties the trace to the program.
	Recorded bool
}

// Fits returns the token ids of the wanted passes, or an error that says why the trace cannot be the reference.
func (w Wanted) Fits(t *capture.Trace) ([][]int, error) {
	if err := w.SameModel(t); err != nil {
		return nil, err
	}
	m := t.Manifest()
	switch {
	case t.Status() != capture.StatusComplete:
		return nil, fmt.Errorf("it is not complete (%s)", t.Status())
	case w.Recorded && m.Program == "":
		return nil, errors.New("no program was recorded with it")
	case m.Config == nil && !w.Recorded:
		return nil, errors.New("it does not name its configuration")
	case m.DType != w.DType:
		return nil, fmt.Errorf("it was computed in %s, not in %s", m.DType, w.DType)
	case !(known(m.Weights) && known(w.Weights)) && path.Base(m.Model) != path.Base(w.Model):
		return nil, fmt.Errorf("it is of %s, and weights of this size are not compared", m.Model)
	}
	if err := w.covered(m); err != nil {
		return nil, err
	}
	passes, err := t.IDs()
	if err != nil {
		return nil, err
	}
	return w.Match(passes)
}

// SameModel returns an error for a trace that declares another configuration or other weights. A missing declaration is
// no difference.
func (w Wanted) SameModel(t *capture.Trace) error {
	m := t.Manifest()
	switch {
	case m.Config != nil && !order.SameConfig(m.Config, w.Config):
		return errors.New("it is of a model with another configuration")
	case capture.OtherWeights(m.Weights, w.Weights):
		return errors.New("it is of other weights")
	}
	return nil
}

// Match returns the first passes of a trace, as many as are wanted, or an error for other token ids or too few passes.
func (w Wanted) Match(passes [][]int) ([][]int, error) {
	n := len(w.Passes) + w.NewTokens
	if len(passes) < n {
		return nil, fmt.Errorf("its number of passes is %d, %d are wanted", len(passes), n)
	}
	for i, ids := range passes[:n] {
		switch {
		case i < len(w.Passes) && !slices.Equal(ids, w.Passes[i]):
			return nil, errors.New("it has other token ids")
		case i >= len(w.Passes) && len(ids) != 1:
			return nil, fmt.Errorf("its pass %d has %d tokens, a decode step has one", i, len(ids))
		}
	}
	return passes[:n], nil
}

// covered returns an error for wanted tensors that were not captured, or were captured in another order.
func (w Wanted) covered(m capture.Manifest) error {
	if len(m.Scope.Passes) > 0 && m.Scope.Passes.String() != w.Scope.Passes.String() {
		return fmt.Errorf("it was captured for passes %s only", m.Scope.Passes)
	}
	if len(m.Scope.Positions) > 0 && m.Scope.Positions.String() != w.Scope.Positions.String() {
		return fmt.Errorf("it was captured for positions %s only", m.Scope.Positions)
	}
	place := make(map[string]int, len(m.Entries))
	for i, name := range m.Entries {
		place[name] = i
	}
	var missing []string
	last := -1
	for _, name := range w.Entries {
		at, has := place[name]
		switch {
		case !has:
			missing = append(missing, name)
		case at < last:
			return fmt.Errorf("its tensors are in another order: %s comes before %s", name, m.Entries[last])
		default:
			last = at
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("its scope (level %d) leaves out %d of the %d tensors wanted, %s first", m.Scope.Level, len(missing), len(w.Entries), missing[0])
	}
	return nil
}

func known(digest string) bool { return digest != "" && digest != "unknown" }

// Golden returns the first golden that fits among the traces golden/CHECKPOINT/*.safetensors of fsys; checkpoint is a
// name or a pattern. It returns nil if no golden fits. A golden that cannot be read is an error.
func Golden(fsys fs.FS, checkpoint string, w Wanted) (*capture.Trace, [][]int, error) {
	names, err := fs.Glob(fsys, "golden/"+checkpoint+"/*.safetensors")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		// The dtype is in the file name, so a search opens only traces of the wanted dtype.
		if dtype := strings.TrimPrefix(path.Ext(strings.TrimSuffix(name, ".safetensors")), "."); dtype != w.DType.String() {
			continue
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, nil, err
		}
		t, err := capture.OpenReader(name, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, nil, err
		}
		if passes, err := w.Fits(t); err == nil {
			return t, passes, nil
		}
	}
	return nil, nil, nil
}
