package capture

import (
	"encoding/json"
	"strings"

	"github.com/tracediff/tracediff/hooks"
)

// Manifest says what a trace is a trace of. A field's zero value is undeclared: it is not written, and no
// comparison counts it as a difference. The texts have to be valid UTF-8.
type Manifest struct {
	Side     string            // "local" or "reference"
	Producer Producer          // the program that ran the model
	Model    string            // what was run, for people: a path or a name
	Config   json.RawMessage   // a JSON object: the config with every default resolved
	Weights  string            // a digest, "sha256:…" or "chunks:…", or "unknown"
	Port     Port              // whose weights stood in for the model's own; File is empty where none did
	Program  string            // "sha256:" and the digest of the recorded program beside the trace, NAME.program.json
	Scope    Scope             // what was asked for; Level 0 is undeclared
	Entries  []string          // the names of one pass that are in scope, in order; nil is undeclared
	Derived  []string          // those of them that the capturing side recomputed itself
	Fused    []string          // the modules whose attention was one kernel, or patterns of them; see [order.List.Unmade]
	Prompt   string            // the text that was tokenized
	DType    hooks.DType       // the model's; a tensor may differ
	Device   string            // "cpu", "cuda:0"
	Passes   int               // how many forward calls the run makes
	Axes     map[string]string // by name, where they are not those of the order: "b t h d"
	Status   Status            // what Open found; Create does not look at it
}

// Port is the file of a port whose weights a model was run with, in the place of its own.
type Port struct {
	File  string `json:"file"`
	Wrong string `json:"wrong,omitempty"` // what keeps them from being the model's, beside rounding to codes: "1 tensor is wrong, first …"
}

// Producer is a program that ran a model: "transformers" 5.23.0, with what its numbers depend on as Details
// (torch, python, cpu, cpu_flags, threads).
type Producer struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Details map[string]string `json:"details,omitempty"`
}

// OtherWeights reports whether two digests of manifests show that the weights are others. Digests of two kinds, or of which one is not known,
// show nothing.
func OtherWeights(a, b string) bool {
	kind := func(digest string) string { before, _, _ := strings.Cut(digest, ":"); return before }
	known := func(digest string) bool { return digest != "" && digest != "unknown" }
	return a != b && known(a) && known(b) && kind(a) == kind(b)
}
