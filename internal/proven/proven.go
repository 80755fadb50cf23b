// Package proven finds the operations that have reproduced transformers and so may produce a BUG: in the goldens,
// in stored traces, and in the recording runs of programs. It caches slow results: references that cleared every
// operation, and certificates of large traces.
package proven

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

//go:embed goldens.json
var goldens []byte

// ByGoldens returns what the goldens of a model's family have shown of the walk: every form of an operation reproduced
// there may produce a BUG. For a form absent from the family's goldens, such as a scaling of the rotary embedding, the
// goldens of other families decide. Only goldens of the given dtype count, or all goldens if the dtype has none of its
// own in the family. The answers are a table of the program; TestTableIsOfTheGoldens isolates every golden and compares.
func ByGoldens(list *order.List, dtype hooks.DType) (isolate.Certified, error) {
	var table map[string]map[string]isolate.Certified // family, dtype
	if err := json.Unmarshal(goldens, &table); err != nil {
		return nil, fmt.Errorf("the table of goldens: %w", err)
	}
	into, elsewhere := isolate.Certified{}, isolate.Certified{}
	_, has := table[list.Config.ModelType][dtype.String()]
	for family, dtypes := range table {
		for of, forms := range dtypes {
			switch {
			case has && of != dtype.String():
			case family == list.Config.ModelType:
				into.Also(forms)
			default:
				elsewhere.Also(forms)
			}
		}
	}
	if into.Knows(list) {
		return into, nil
	}
	for form, good := range elsewhere {
		if _, seen := into[form]; !seen {
			into[form] = good
		}
	}
	return into, nil
}

// ByStored isolates the stored traces of transformers of this model and dtype. These traces overrule the goldens
// for every form they contain, and decide the forms absent from all goldens.
func ByStored(ctx context.Context, e *settings.Env, into isolate.Certified, list *order.List, ck *checkpoint.Checkpoint, dtype hooks.DType) error {
	entries, err := reference.NewStore(e.Dir).List()
	if err != nil {
		return err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	of := fmt.Sprintf("order %x %s", sha256.Sum256(text), dtype)
	own := isolate.Certified{}
	for i := range entries {
		stored := &entries[i]
		if stored.Key.Name != reference.Transformers || stored.Key.DType != dtype.String() || stored.Intact() != nil {
			continue
		}
		before := LargeTrace(stored.Path, ck)
		t, err := capture.Open(stored.Path)
		if err != nil {
			return err
		}
		m := t.Manifest()
		if m.Config != nil && order.SameConfig(m.Config, list.Config.Canonical()) && origin.NotOf(ck, m) == "" {
			var its isolate.Certified
			c := Clearing{e, of, list, t, before}
			its, err = c.Certified(ctx, ck, func() (isolate.Certified, error) {
				its := isolate.Certified{}
				return its, its.Add(ctx, t, list, reference.Weights(ck, dtype))
			})
			own.Also(its)
		}
		if err = hint.Also(err, t.Close()); err != nil {
			return fmt.Errorf("certifying the operations of the walk: %w", err)
		}
	}
	maps.Copy(into, own)
	return nil
}
