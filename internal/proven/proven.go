// Package proven finds the operations that have reproduced transformers and so may produce a BUG: in the goldens,
// in stored traces, and in the recording runs of programs. It caches slow results: references that cleared every
// operation, and certificates of large traces.
package proven

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// ByGoldens isolates the goldens of a model's family: every form of an operation reproduced there may produce a
// BUG. For a form absent from the family's goldens, such as a scaling of the rotary embedding, the goldens of other
// families decide. Only goldens of the given dtype are used, or all goldens if the dtype has none of its own.
func ByGoldens(ctx context.Context, e *settings.Env, list *order.List, dtype hooks.DType) (isolate.Certified, error) {
	own, others, err := goldensOf(list, "*."+dtype.String())
	if err == nil && len(own) == 0 {
		own, others, err = goldensOf(list, "*")
	}
	if err != nil {
		return nil, err
	}
	into, elsewhere := isolate.Certified{}, isolate.Certified{}
	for _, name := range own {
		if err := certifyBy(ctx, e, into, name); err != nil {
			return nil, fmt.Errorf("certifying the operations of the walk: %w", err)
		}
	}
	for _, name := range others {
		if into.Knows(list) {
			return into, nil
		}
		if err := certifyBy(ctx, e, elsewhere, name); err != nil {
			return nil, fmt.Errorf("certifying the operations of the walk: %w", err)
		}
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

// goldensOf lists the goldens with a matching name: own has the goldens of the list's family, others the rest.
func goldensOf(list *order.List, pattern string) (own, others []string, err error) {
	all, err := fs.Glob(fixtures.Files, "golden/*/"+pattern+".safetensors")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range all {
		data, err := fs.ReadFile(fixtures.Files, path.Base(path.Dir(name))+"/"+checkpoint.ConfigFile)
		if err != nil {
			return nil, nil, err
		}
		config, err := order.ReadConfig(data)
		if err != nil {
			return nil, nil, err
		}
		if config.ModelType == list.Config.ModelType {
			own = append(own, name)
		} else {
			others = append(others, name)
		}
	}
	return own, others, nil
}

// certifyBy adds the operations certified by a golden. Goldens are embedded in the program, so the result is
// computed once per process.
func certifyBy(ctx context.Context, e *settings.Env, into isolate.Certified, name string) error {
	own, err := settings.Once(e.Process, name, func() (isolate.Certified, error) { return certifiedBy(ctx, name) })
	if err != nil {
		return err
	}
	into.Also(own)
	return nil
}

// certifiedBy isolates one golden.
func certifiedBy(ctx context.Context, name string) (isolate.Certified, error) {
	dir := path.Base(path.Dir(name))
	files, err := fs.Sub(fixtures.Files, dir)
	if err != nil {
		return nil, err
	}
	ck, err := checkpoint.OpenFS(dir, files)
	if err != nil {
		return nil, err
	}
	config, err := order.ReadConfig(ck.Config())
	if err != nil {
		return nil, err
	}
	list, err := order.New(config)
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(fixtures.Files, name)
	if err != nil {
		return nil, err
	}
	t, err := capture.OpenReader(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	own := isolate.Certified{}
	return own, own.Add(ctx, t, list, reference.Weights(ck, t.Manifest().DType))
}
