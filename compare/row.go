package compare

import (
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
)

// Verdict is the outcome for one entry.
type Verdict string

// The verdicts.
const (
	Match    Verdict = "MATCH"
	Mismatch Verdict = "MISMATCH"
	// Unverified: the row is not judged, for one of two reasons. The reference is the walk, and an operation before
	// the entry has not reproduced transformers. Or one side is a text of rounded numbers, and the tensors agree
	// within the rounding.
	Unverified Verdict = "UNVERIFIED"
	// Recomputed, for a single trace: a tensor recomputed by the recorder. It was neither computed again nor
	// compared.
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
	Metrics *measure.Metrics `json:"metrics,omitempty"` // nil for different shapes, and for a single trace
	Gate    *gate.Gate       `json:"gate,omitempty"`
	// Overflow says that the local dtype cannot hold the reference's values; nil if other elements differ, too.
	Overflow *Overflow      `json:"overflow,omitempty"`
	Stats    *measure.Stats `json:"stats,omitempty"` // for a single trace: the numbers of its tensor
	// Isolated is the certificate of the entry. If it is nil, NotIsolated has the reason, unless nobody asked for
	// certificates.
	Isolated    *Isolated `json:"isolated,omitempty"`
	NotIsolated string    `json:"not_isolated,omitempty"`
	// Gap, for a mismatch over its limit that is not wrong on its own inputs, says where the chain of right
	// operations back to the token ids is broken, or why this is unknown. With an unbroken chain the row would be a
	// drift instead of a mismatch.
	Gap   string `json:"gap,omitempty"`
	Blame Blame  `json:"blame,omitempty"` // of a mismatch
	// Needs, for a mismatch of Unknown blame, says how to capture the tensors between the entry and the input.
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
	// NoteConfirmed: the tensor is constant, and the order computes the same constant from inputs that vary.
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
	// Drift: over the accumulated limit, but every operation from the token ids to this entry is right on its own
	// inputs.
	Drift NoteKind = "drift"
	// OtherLayout: the same values in other numbers, or with keys in another order, without a mistake; see
	// [chain.Reparametrisation].
	OtherLayout NoteKind = "layout"
	// Expected: the row differs, and was expected to; see [Expectation].
	Expected NoteKind = "expected"
	// OpUnverified: the row was not judged, see [Unverified].
	OpUnverified NoteKind = "op unverified"
	// NotePrinted: one side is a printed text; the note says how much of the tensor it has.
	NotePrinted NoteKind = "printed"
	// Floored: the reference is much smaller than its operands, so the error is relative to the operands.
	Floored NoteKind = "floor"
)

func (r *Row) strip() {
	if r.Metrics != nil {
		own := r.Metrics.Local
		r.Stats = &own
	}
	r.Ref, r.Metrics, r.Gate, r.Growth = Tensor{}, nil, nil, 0
}
