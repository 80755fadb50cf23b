package propose_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
)

// FuzzRecordedModels proposes maps for dumps of recorded architectures, and applies them: what is proposed can be read, and the tensors that it
// makes can be read, whatever the dump has.
func FuzzRecordedModels(f *testing.F) {
	models := mappingtest.Models(f, "../../../fixtures/programs")
	for model := range models {
		for seed := range uint64(4) {
			f.Add(uint8(model), seed)
		}
	}
	f.Fuzz(func(t *testing.T, model uint8, seed uint64) {
		r := rand.New(rand.NewPCG(seed, uint64(model)))
		m := models[int(model)%len(models)]
		list, run := m.List.Named(), m.Run(r)
		ref, err := capture.Assemble("reference", run, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		dump, err := capture.Assemble("dump", mappingtest.Dump(r, run), capture.Manifest{}, false, nil, nil)
		if err != nil {
			return
		}
		fitted, err := foreign.Fit(dump, list)
		if err != nil {
			return
		}
		if r.IntN(4) == 0 {
			ref = nil
		}
		p, err := propose.Map(t.Context(), dump, fitted, list, ref, propose.Options{})
		switch {
		case errors.Is(err, propose.ErrNoTokens):
			return
		case err != nil:
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := p.Write(&text, "dump", "reference"); err != nil {
			t.Fatal(err)
		}
		if len(p.Lines) == 0 {
			return
		}
		lines, err := mapping.Parse("map.toml", text.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, text.Bytes())
		}
		a, err := lines.Apply(dump, list)
		if err != nil {
			return
		}
		if a.Trace, err = foreign.Fit(a.Trace, list); err != nil {
			return
		}
		for _, rec := range a.Trace.Records() {
			if _, err := a.Trace.Read(rec); err != nil {
				t.Fatal(err)
			}
		}
	})
}
