package capture

import (
	"encoding/json"
	"strings"

	"github.com/tracediff/tracediff/hooks"
)

// Manifest describes the run of a trace. The zero value of a field is undeclared: the field is not written, and no
// comparison counts the field as a difference. The texts have to be valid UTF-8.
type Manifest struct {
	Side     string            // "local" or "reference"
	Producer Producer          // the program that ran the model
	Model    string            // what was run, for people: a path or a name
	Config   json.RawMessage   // a JSON object: the config with every default resolved
	Weights  string            // a digest, "sha256:…" or "chunks:…", or "unknown"
	Port     Port              // the file of a port that replaced the model's own weights; File is empty for the model's own weights
	Program  string            // "sha256:" and the digest of the recorded program, NAME.program.json in the folder of the trace
	Scope    Scope             // what was asked for; Level 0 is undeclared
	Entries  []string          // the names of one pass in scope, in order; nil is undeclared
	Derived  []string          // the entries that the capturing side recomputed from other tensors
	Fused    []string          // the modules with attention in one kernel, or patterns of them; see [order.List.Unmade]
	Prompt   string            // the text that was tokenized
	DType    hooks.DType       // the model's; a tensor may differ
	Device   string            // "cpu", "cuda:0"
	Passes   int               // how many forward calls the run makes
	Axes     map[string]string // the axes, by name, that differ from the order: "b t h d"
	Status   Status            // what Open found; Create does not look at it
}

// Port is the file of a port whose weights replaced the model's own weights in a run.
type Port struct {
	File  string `json:"file"`
	Wrong string `json:"wrong,omitempty"` // the differences from the model's weights other than rounding to codes: "1 tensor is wrong, first …"
}

// Producer is a program that ran a model: "transformers" 5.23.0. Details are the parts of the machine on which the
// numbers depend (torch, python, cpu, cpu_flags, threads).
type Producer struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Details map[string]string `json:"details,omitempty"`
}

// OtherWeights reports whether two digests of manifests show that the weights differ. Digests of two kinds, and unknown digests, show
// nothing.
func OtherWeights(a, b string) bool {
	kind := func(digest string) string { before, _, _ := strings.Cut(digest, ":"); return before }
	known := func(digest string) bool { return digest != "" && digest != "unknown" }
	return a != b && known(a) && known(b) && kind(a) == kind(b)
}
