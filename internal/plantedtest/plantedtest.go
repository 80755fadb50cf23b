// Package plantedtest reads the runs of transformers with a mistake in each, which fixtures/plant.py makes.
//
// Only tests import the package.
package plantedtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// variable names the folder of the runs. A test without it is skipped: the runs need transformers, which a checkout may
// not have.
const variable = "TRACEDIFF_FAULTS"

// Fault is an element of faults.json: a run of transformers with a planted mistake.
type Fault struct {
	Name       string  `json:"name"`
	What       string  `json:"what"`
	Checkpoint string  `json:"checkpoint"`
	DType      string  `json:"dtype"`
	File       string  `json:"file"`
	Reference  string  `json:"reference"` // the healthy run of the same ids
	Op         string  `json:"op"`        // the kind of the first guilty entry
	Guilty     []Entry `json:"guilty"`    // computed wrongly from their inputs, in order
	Rounding   string  `json:"rounding"`  // how an engine may round that would give the same
	Hidden     string  `json:"hidden"`    // why the run cannot show it
	Benign     string  `json:"benign"`    // why it is no mistake
}

// Entry is an entry of a run.
type Entry struct {
	Pass int    `json:"pass"`
	Name string `json:"name"`
}

// Key is that of the entry's tensor.
func (e Entry) Key() string { return capture.Key(e.Pass, e.Name, 0) }

// GuiltyKeys are the keys of the guilty entries.
func (f Fault) GuiltyKeys() []string {
	var keys []string
	for _, e := range f.Guilty {
		keys = append(keys, e.Key())
	}
	return keys
}

// Folder is the folder of the runs. Without one the test is skipped.
func Folder(t testing.TB) string {
	t.Helper()
	dir, set := os.LookupEnv(variable)
	if !set {
		t.Skipf("needs %s: the folder that python fixtures/plant.py makes", variable)
	}
	return dir
}

// Read reads the list of the runs of a folder.
func Read(t testing.TB, dir string) []Fault {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "faults.json"))
	if err != nil {
		t.Fatal(err)
	}
	var faults []Fault
	if err := json.Unmarshal(data, &faults); err != nil {
		t.Fatal(err)
	}
	return faults
}

// Models keeps the checkpoints of the runs open, by name.
type Models map[string]Model

// Model is a checkpoint with its order.
type Model struct {
	Checkpoint *checkpoint.Checkpoint
	List       *order.List
}

// Open opens a checkpoint, once.
func (m Models) Open(t testing.TB, name string) Model {
	t.Helper()
	if _, ok := m[name]; !ok {
		ck, list := ordertest.Embedded(t, name)
		m[name] = Model{ck, list}
	}
	return m[name]
}
