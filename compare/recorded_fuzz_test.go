package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	dumps "github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
)

// FuzzRecordedModels compares dumps of recorded architectures with the run that they were made of, through the maps that are proposed for them:
// nothing panics, whatever the dump has.
func FuzzRecordedModels(f *testing.F) {
	models := mappingtest.Models(f, "../fixtures/programs")
	for model := range models {
		f.Add(uint8(model), uint64(1))
	}
	f.Fuzz(func(t *testing.T, model uint8, seed uint64) {
		r := rand.New(rand.NewPCG(seed, uint64(model)))
		m := &models[int(model)%len(models)]
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		run, err := healthyRun(ctx, m, r, 1+r.IntN(3))
		if err != nil {
			t.Skip(err)
		}
		manifest := capture.Manifest{DType: hooks.F32}
		ref, err := capture.Assemble("reference", run, manifest, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		dump, err := capture.Assemble("dump", mappingtest.Dump(r, run), manifest, false, nil, nil)
		if err != nil {
			return
		}
		list := m.List.Named()
		fitted, err := dumps.Fit(dump, list)
		if err != nil {
			return
		}
		p, err := propose.Map(ctx, dump, fitted, list, ref, propose.Options{})
		if errors.Is(err, propose.ErrNoTokens) || ctx.Err() != nil {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.Lines) > 0 {
			var text bytes.Buffer
			if err := p.Write(&text, "dump", "reference"); err != nil {
				t.Fatal(err)
			}
			lines, err := mapping.Parse("map.toml", text.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			a, err := lines.Apply(dump, list)
			if err != nil {
				return
			}
			if fitted, err = dumps.Fit(a.Trace, list); err != nil {
				return
			}
		}
		o := compare.Options{Order: m.List, All: r.IntN(2) == 0, Certification: compare.Certification{Sight: true}}
		if o.Isolator, err = compare.NewIsolator(fitted, m.List, drawnWeights, isolate.Options{}); err != nil {
			o.Isolator = nil
		}
		res, err := compare.Traces(ctx, fitted, ref, o)
		if err != nil {
			return
		}
		if _, err := json.Marshal(res); err != nil {
			t.Error(err)
		}
	})
}
