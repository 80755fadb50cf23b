package proven_test

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

var update = flag.Bool("update", false, "write goldens.json anew")

// The table that the program has instead of goldens is what isolating every golden shows, by family and dtype.
func TestTableIsOfTheGoldens(t *testing.T) {
	names, err := fs.Glob(ondisk.Files(), "golden/*/*.safetensors")
	if err != nil || len(names) < 50 {
		t.Fatal(len(names), err)
	}
	got := map[string]map[string]isolate.Certified{}
	for _, name := range names {
		golden := testengine.OpenGolden(t, name)
		ck, list := ordertest.Embedded(t, path.Base(path.Dir(name)))
		family, dtype := list.Config.ModelType, golden.Manifest().DType
		if got[family] == nil {
			got[family] = map[string]isolate.Certified{}
		}
		if got[family][dtype.String()] == nil {
			got[family][dtype.String()] = isolate.Certified{}
		}
		if err := got[family][dtype.String()].Add(t.Context(), golden, list, reference.Weights(ck, dtype)); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		text, err := json.MarshalIndent(got, "", "\t")
		if err == nil {
			err = os.WriteFile("goldens.json", append(text, '\n'), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile("goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]isolate.Certified
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("go test ./internal/proven -run TestTableIsOfTheGoldens -update writes it anew (-written +found):\n%s", d)
	}
}
