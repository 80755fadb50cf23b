package compare

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
)

// Result is the outcome of a comparison as data: the complete content of a report, without its layout. It marshals
// to JSON.
type Result struct {
	Reference Side `json:"reference,omitzero"` // nil for a single trace
	Local     Side `json:"local"`
	Alone     bool `json:"alone,omitempty"` // there is one trace: only what isolation says is tested
	AB        bool `json:"ab,omitempty"`    // neither is the one that is right: Local is A, Reference is B
	Given     bool `json:"given,omitempty"` // the local trace is a file that a person gave: nothing captures it again

	// Map is what gave the tensors of the local side their names and layouts.
	Map *Map `json:"map,omitempty"`
	// Differences says in what A and B were declared to differ, a line each; see [AB].
	Differences []string `json:"differences,omitempty"`

	// Demo is the built-in model, if the sides ran it because no model was named; else empty.
	Demo string `json:"demo,omitempty"`
	// NotIsolated says why nothing was certified; empty where it was.
	NotIsolated string `json:"not_isolated,omitempty"`
	// Uncertified says why nothing was certified although nobody declined it: a match then only means an error
	// within its limit.
	Uncertified string `json:"uncertified,omitempty"`

	Typed  capture.Scope `json:"typed"`  // the scope asked for at the comparison; Level 0 is no limit
	Inputs []Input       `json:"inputs"` // the token ids of every pass that was walked
	Rows   []Row         `json:"rows"`   // in the order of the walk

	// Decided says in words which of the two verdicts decided the outcome, for the first divergence or for a
	// comparison without one.
	Decided string `json:"decided"`
	Stopped bool   `json:"stopped,omitempty"` // the walk ended at the first divergence: later entries were not compared

	Divergence *Divergence `json:"divergence,omitempty"` // the first; nil where nothing diverges
	Mismatches int         `json:"mismatches"`           // rows that do not match and are neither allowed nor expected to, derived ones apart
	Missing    []Missing   `json:"missing,omitempty"`    // declared and absent
	Allowed    []Allowed   `json:"allowed,omitempty"`    // the allow-list, line by line, and what each accepted
	Baseline   *Baseline   `json:"baseline,omitempty"`   // the known divergences, and what became of each; nil without a baseline
	Incomplete []string    `json:"incomplete,omitempty"` // why this is no complete comparison, a sentence each
	// CommonPasses are the passes common to both sides, in the syntax of --passes. It is empty if both sides have
	// the same passes, if the scope excludes the other passes, or if nothing was compared.
	CommonPasses string `json:"common_passes,omitempty"`

	Roots     []string   `json:"roots,omitempty"`     // keys of mismatches that are the fault of their own operation
	Final     *Final     `json:"final,omitempty"`     // the next token; nil where no logits were compared
	Isolation *Isolation `json:"isolation,omitempty"` // what certifying found; nil where nothing was certified
	// Sight is which of the usual mistakes this run would have shown; nil where nobody asked, nothing was
	// certified, or something is wrong.
	Sight      *detectable.Sight `json:"sight,omitempty"`
	Unverified []string          `json:"unverified,omitempty"` // keys of rows that were not judged
	Untested   []string          `json:"untested,omitempty"`   // keys of rows that match and test nothing: see Vacuous
	Layouts    []string          `json:"layouts,omitempty"`    // other layouts, which are no mistakes, a sentence each
	Expected   []Expectation     `json:"expected,omitempty"`   // what Options.Different came to
	Notes      []string          `json:"notes,omitempty"`      // oddities that decide nothing
	Same       string            `json:"same,omitempty"`       // why the two sides are no two: one file, or one a copy of the other; empty where they are
	Coverage   Coverage          `json:"coverage"`
}

// ExitCode is 0 when everything in scope was compared and matches, else 1: a divergence, a missing tensor, an incomplete
// comparison, one in which nothing was tested, nothing different that was expected to be, or a line of the baseline that no longer
// holds.
func (r *Result) ExitCode() int {
	if r.Mismatches > 0 || r.unmetExpectation() || len(r.Baseline.Failing()) > 0 || len(r.Missing) > 0 || len(r.Incomplete) > 0 || r.Coverage.Tested == 0 {
		return 1
	}
	return 0
}

// Name is the name of one side of a comparison, in every form the sentences of a report use. Renderers choose no
// words of their own.
type Name struct {
	Label  string `json:"label"`  // "local", "reference"; "A", "B"
	Side   string `json:"side"`   // in a sentence: "your port", "the reference", "A"
	Trace  string `json:"trace"`  // its trace in a sentence: "your port's trace", "trace A"
	Tensor string `json:"tensor"` // one of its tensors in a sentence: "your port's tensor", "A"
}

// Side is one of the two traces.
type Side struct {
	Name     Name             `json:"name"`
	Path     string           `json:"path"`
	Label    string           `json:"label,omitempty"` // what the caller calls it: "golden"
	Producer capture.Producer `json:"producer"`
	Model    string           `json:"model,omitempty"`
	DType    string           `json:"dtype,omitempty"`
	Device   string           `json:"device,omitempty"`
	Weights  string           `json:"weights,omitempty"`
	Status   capture.Status   `json:"status,omitempty"`
	Passes   int              `json:"passes"`
	Scope    capture.Scope    `json:"scope"` // Level 0: undeclared
	Manifest capture.Manifest `json:"-"`     // the whole metadata of the trace
}

// Map is a map of names: docs/ports.md.
type Map struct {
	File     string   `json:"file"`              // empty where there is no map, and most tensors of the dump have names of their own
	Patterns int      `json:"patterns"`          // lines that gave names
	Changes  []string `json:"changes,omitempty"` // the names with another layout, and what was left out, a sentence each
	// Open counts the tensors of the dump that have no line and no name of the order.
	Open int `json:"open,omitempty"`
	// Examples are names of some of these tensors, which differ in more than numbers.
	Examples []string `json:"examples,omitempty"`
	// Absent has the line of each name that the map gives and no tensor of the dump has.
	Absent map[string]string `json:"absent,omitempty"`
	// Unproven has the line of each name that no value says is right.
	Unproven map[string]string `json:"unproven,omitempty"`
}

// Input is the token ids of one pass, restricted to the scope.
type Input struct {
	Pass      int      `json:"pass"`
	Local     []int64  `json:"local"`
	Reference []int64  `json:"reference,omitempty"`
	Texts     []string `json:"texts,omitempty"` // of Local
	Match     bool     `json:"match"`
	Edits     []Edit   `json:"edits,omitempty"` // how to get from Reference to Local, where they differ
}

// Allowed is a line of the allow-list with the mismatches it accepted in this comparison. A line without mismatches
// was not needed, up to the end of the walk.
type Allowed struct {
	Tensors string       `json:"tensors"`
	Passes  string       `json:"passes,omitempty"`
	Classes []gate.Class `json:"classes"`
	Reason  string       `json:"reason"`
	Keys    []string     `json:"keys,omitempty"`
}

// Missing is an entry that was declared and is not there.
type Missing struct {
	Pass int    `json:"pass"`
	Name string `json:"name"`
	Side string `json:"side"` // "both", or the label of the one, see [Name]
}

// Coverage counts entries, each once a pass; derived ones apart.
type Coverage struct {
	Compared       int `json:"compared"` // match or mismatch
	Tested         int `json:"tested"`   // of those, neither vacuous nor the token ids, which say nothing about a model
	Entries        int `json:"entries"`  // of the order, times the passes of either side
	Derived        int `json:"derived"`  // compared
	DerivedEntries int `json:"derived_entries"`
	Layers         int `json:"layers"`
	LayersComplete int `json:"layers_complete"` // all their entries compared in all passes
	Passes         int `json:"passes"`
	Unknown        int `json:"unknown"` // tensors that the order does not know: not compared
}

// The two sides, as indexes.
const (
	local     = sides.Local
	reference = sides.Reference
)

func newSide(t *capture.Trace, name sides.Name, label string) Side {
	m := t.Manifest()
	s := Side{
		Name: Name(name), Path: t.Path(), Label: label, Producer: m.Producer, Model: m.Model, Device: m.Device, Weights: m.Weights,
		Status: m.Status, Passes: sides.Passes(t), Scope: m.Scope, Manifest: m,
	}
	if m.DType != hooks.DType(0) {
		s.DType = m.DType.String()
	}
	return s
}

// A single trace is walked as both sides, because the walk finds, reads and counts entries in pairs. The
// measurements between the trace and itself mean nothing, and no report shows them.

// strip removes the results about two sides from the result of a single trace. Each row keeps the statistics of its
// tensor.
func (r *Result) strip() {
	if !r.Alone {
		return
	}
	r.Reference = Side{}
	for i := range r.Inputs {
		r.Inputs[i].Reference = nil
	}
	for i := range r.Rows {
		r.Rows[i].strip()
	}
	if r.Divergence != nil {
		r.Divergence.Row.strip()
	}
}

// Contradiction returns an error for a result with counts in contradiction to its rows, as in an edited or
// hand-made report. It returns nil for every result of a comparison.
func (r *Result) Contradiction() error {
	compared, tested, failing, bugs := map[string]bool{}, 0, 0, 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Tested && row.Allowed == "" {
			tested++
		}
		if row.Isolated != nil && row.Isolated.Outcome == isolate.Bug {
			bugs++
		}
		compared[capture.Key(row.Pass, row.Name, 0)] = true
		if row.Verdict == Mismatch && !row.Derived && row.Allowed == "" && row.Excused == "" && !row.has(Expected) {
			failing++
		}
	}
	certified := 0
	if r.Isolation != nil {
		certified = r.Isolation.Bugs
	}
	for _, in := range r.Inputs {
		if bothSay := len(in.Local) > 0 && len(in.Reference) > 0; bothSay && (!in.Match || !slices.Equal(in.Local, in.Reference)) && r.Mismatches == 0 {
			return fmt.Errorf("the token ids of pass %d differ, and no mismatch is counted", in.Pass)
		}
	}
	for _, c := range []struct {
		what       string
		says, rows int
	}{
		{"mismatches", r.Mismatches, failing},
		{"compared entries", r.Coverage.Compared + r.Coverage.Derived, len(compared)},
		{"tested entries", r.Coverage.Tested, tested},
		{"bugs", certified, bugs},
	} {
		if c.says != c.rows {
			return fmt.Errorf("it counts %d %s, and its rows have %d", c.says, c.what, c.rows)
		}
	}
	return nil
}
