package compare

import (
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
)

// Result is what a comparison found, as data: everything that a report says is here, and nothing of how it looks. The
// value marshals to JSON.
type Result struct {
	Reference Side `json:"reference,omitzero"` // of a trace alone there is none
	Local     Side `json:"local"`
	Alone     bool `json:"alone,omitempty"` // there is one trace: only what isolation says is tested
	AB        bool `json:"ab,omitempty"`    // neither is the one that is right: Local is A, Reference is B
	Given     bool `json:"given,omitempty"` // the local trace is a file that a person gave: nothing captures it again

	// Map is what gave the tensors of the local side their names and layouts.
	Map *Map `json:"map,omitempty"`
	// Differences says in what A and B were declared to differ, a line each; see Options.AB.
	Differences []string `json:"differences,omitempty"`

	// Demo is the model that is embedded in the program, where the sides ran it since no other was named; else empty.
	Demo string `json:"demo,omitempty"`
	// NotIsolated says why nothing was certified; empty where it was.
	NotIsolated string `json:"not_isolated,omitempty"`
	// Uncertified says why nothing was certified though nobody declined it: what matches is within its limits, and nothing
	// more is known of it.
	Uncertified string `json:"uncertified,omitempty"`

	Typed  capture.Scope `json:"typed"`  // the scope asked for at the comparison; Level 0 is no limit
	Inputs []Input       `json:"inputs"` // the token ids of every pass that was walked
	Rows   []Row         `json:"rows"`   // in the order of the walk

	// Decided says in words which of the two verdicts the outcome rests on: of the first divergence, or of there being none.
	Decided string `json:"decided"`
	Stopped bool   `json:"stopped,omitempty"` // the walk ended at the first divergence: what lies behind was not compared

	Divergence *Divergence `json:"divergence,omitempty"` // the first; nil where nothing diverges
	Mismatches int         `json:"mismatches"`           // rows that do not match and are neither allowed nor expected to, derived ones apart
	Missing    []Missing   `json:"missing,omitempty"`    // declared and absent
	Allowed    []Allowed   `json:"allowed,omitempty"`    // the allow-list, line by line, and what each accepted
	Baseline   *Baseline   `json:"baseline,omitempty"`   // the known divergences, and what became of each; nil without a baseline
	Incomplete []string    `json:"incomplete,omitempty"` // why this is no complete comparison, a sentence each
	// CommonPasses are the passes that both sides have, as --passes takes them. It is empty where both sides have the same passes, the
	// scope leaves the others out, or nothing was compared.
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
}

// Map is a map of names: docs/maps.md.
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

// Input is the token ids of one pass, as far as they are in scope.
type Input struct {
	Pass      int      `json:"pass"`
	Local     []int64  `json:"local"`
	Reference []int64  `json:"reference,omitempty"`
	Texts     []string `json:"texts,omitempty"` // of Local
	Match     bool     `json:"match"`
	Edits     []Edit   `json:"edits,omitempty"` // how to get from Reference to Local, where they differ
}

// Verdict is the outcome for one entry.
type Verdict string

// The verdicts.
const (
	Match    Verdict = "MATCH"
	Mismatch Verdict = "MISMATCH"
	// Unverified: the reference is the walk, and an operation that leads to the entry has not reproduced transformers.
	// Whatever differs, it accuses nobody; and what agrees shows nothing. Or one side is a text of rounded numbers: it agrees
	// as far as they say, which shows nothing.
	Unverified Verdict = "UNVERIFIED"
	// Recomputed: of a trace alone, what the capturing side recomputed. Nothing was computed again or compared.
	Recomputed Verdict = "DERIVED"
)

// Row is one entry of one pass.
type Row struct {
	Name    string           `json:"name"`
	Pass    int              `json:"pass"`
	Firing  int              `json:"firing,omitempty"`
	Layer   int              `json:"layer"`            // −1 outside the layers
	Behind  bool             `json:"behind,omitempty"` // behind the last layer of the order
	Op      string           `json:"op,omitempty"`
	Derived bool             `json:"derived,omitempty"` // recomputed by a capturing side: shown, never gated
	Verdict Verdict          `json:"verdict"`
	Class   gate.Class       `json:"class,omitempty"`
	Detail  string           `json:"detail,omitempty"`  // a mismatch in words
	Decided Decider          `json:"decided,omitempty"` // which of the two verdicts made it a mismatch
	Facts   Facts            `json:"facts"`             // what the verdict was made from; see [Judge]
	Tested  bool             `json:"tested,omitempty"`  // it counts as tested
	Excused Excuse           `json:"excused,omitempty"` // why a mismatch does not fail the comparison, by the baseline
	Allowed string           `json:"allowed,omitempty"` // why a mismatch is accepted, in words; empty: it is not
	Local   Tensor           `json:"local"`
	Ref     Tensor           `json:"reference,omitzero"`
	Metrics *measure.Metrics `json:"metrics,omitempty"` // nil where the shapes differ, and of a trace alone
	Gate    *gate.Gate       `json:"gate,omitempty"`
	// Overflow says that the local dtype cannot hold what the reference has; nil where other elements differ, too.
	Overflow *Overflow      `json:"overflow,omitempty"`
	Stats    *measure.Stats `json:"stats,omitempty"` // of a trace alone: the numbers of its tensor
	// Isolated is the entry by itself; nil where it is not isolated, and NotIsolated says why if there is more to say
	// than that nobody asked.
	Isolated    *Isolated `json:"isolated,omitempty"`
	NotIsolated string    `json:"not_isolated,omitempty"`
	// Gap says of a mismatch that is past its limit, and not wrong by itself, where the chain of right operations back to the token
	// ids is broken, or why nothing is known of it. Unbroken, it would be a drift and no mismatch.
	Gap   string `json:"gap,omitempty"`
	Blame Blame  `json:"blame,omitempty"` // of a mismatch
	// Needs says what would have captured what was between it and the input; of a mismatch whose Blame is Unknown.
	Needs  string         `json:"needs,omitempty"`
	Growth measure.Number `json:"growth,omitempty"` // of a mismatch: its relative L2 over the largest of its compared ancestors'
	Notes  []Note         `json:"notes,omitempty"`
}

// Key is the row's key in both traces.
func (r *Row) Key() string { return capture.Key(r.Pass, r.Name, r.Firing) }

func (r *Row) has(kind NoteKind) bool {
	return slices.ContainsFunc(r.Notes, func(n Note) bool { return n.Kind == kind })
}

// Tensor is one side of a row.
type Tensor struct {
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

func describe(r capture.Record) Tensor { return Tensor{r.DType.String(), r.Shape} }

// Note is a remark on a row, no verdict.
type Note struct {
	Kind NoteKind `json:"kind"`
	Text string   `json:"text"`
}

// NoteKind is what a note is about.
type NoteKind string

// The kinds of notes.
const (
	// Vacuous: the sides agree, but are constant, zero or empty, and nothing says that they have to be. Such rows are listed in
	// Result.Untested, and the comparison is incomplete.
	Vacuous NoteKind = "vacuous"
	// NoteConfirmed: the tensor is constant, and the order gives that constant from what is not.
	NoteConfirmed NoteKind = "confirmed"
	// BothNaN: both sides are NaN, or overflowed to +Inf, in the same places. Nothing was tested there, and the comparison
	// is incomplete. −Inf on both sides is a mask.
	BothNaN NoteKind = "nan"
	// Tie: the most likely token differs, by less than the limit allows the logits to be off.
	Tie NoteKind = "tie"
	// Greedy: the most likely token differs by more than that.
	Greedy NoteKind = "greedy"
	// MixedDType: the sides have different dtypes and were compared in the coarser.
	MixedDType NoteKind = "dtype"
	// LongAxis: an axis has more indexes than are measured one by one.
	LongAxis NoteKind = "axis"
	// Drift: past the accumulated limit, and every operation from the token ids to here is right by itself.
	Drift NoteKind = "drift"
	// OtherLayout: the same in other numbers, or with keys in another order, which is no mistake; see [chain.Reparametrisation].
	OtherLayout NoteKind = "layout"
	// Expected: the row differs, and was expected to; see [Expectation].
	Expected NoteKind = "expected"
	// OpUnverified: the row was not judged, see [Unverified].
	OpUnverified NoteKind = "op unverified"
	// NotePrinted: of one side there is a text alone; how much of the tensor it has.
	NotePrinted NoteKind = "printed"
	// Floored: the reference is so much smaller than its operands that the error is relative to these.
	Floored NoteKind = "floor"
)

// Allowed is a line of the allow-list, and the mismatches that it accepted in this comparison; none: it is not needed, as
// far as the walk came.
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
	local = iota
	reference
)

func newSide(t *capture.Trace, name Name, label string) Side {
	m := t.Manifest()
	s := Side{
		Name: name, Path: t.Path(), Label: label, Producer: m.Producer, Model: m.Model, Device: m.Device, Weights: m.Weights,
		Status: m.Status, Passes: Passes(t), Scope: m.Scope,
	}
	if m.DType != hooks.DType(0) {
		s.DType = m.DType.String()
	}
	return s
}

// Passes is how many forward calls a trace has: what it declares, or what it holds if that is more.
func Passes(t *capture.Trace) int {
	n := max(t.Manifest().Passes, 1)
	for _, r := range t.Records() {
		n = max(n, r.Pass+1)
	}
	return n
}
