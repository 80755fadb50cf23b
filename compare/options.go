package compare

import (
	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Options say how to compare. The zero value compares everything that both traces declare, in the order in which the
// reference was computed, and stops at the first divergence.
type Options struct {
	Order *order.List // nil: the reference trace's own, if it is one of execution
	// Scope is the requested scope; Level 0 is no limit. The result notes entries outside it. Entries in it but
	// missing from a trace make the comparison incomplete.
	Scope capture.Scope
	All   bool // go on after the first divergence

	Sides
	Judging
	Certification
	Reporting

	// Workers is the number of tensor blocks measured at a time; 0 is the number of processors, at most 16. No
	// result depends on it.
	Workers int
	// Progress is told before each entry how far the walk is: the pass, of how many, and the entry, of how many. It may be nil.
	Progress func(pass, passes, entry, entries int)
	// Observe is shown each pair of tensors of one shape after its row is decided, in the order of the walk. An error ends the
	// comparison. It may not change the row. nil: nothing is shown.
	Observe func(Pair) error

	mode sides.Mode
}

// Sides holds facts about the two traces beyond their manifests.
type Sides struct {
	// Named says that a user asked for the entries of Order by name. An absent entry is then MISSING even in a
	// trace without a declared scope. The same holds for a plain list of names and for a comparison without an
	// Order. Otherwise a trace without a declared scope promises only its own tensors.
	Named bool
	// Partial accepts traces that are not complete; such a comparison never succeeds.
	Partial bool
	// Given says that a user's own program made the local trace. No flag of tracediff captures a missing tensor;
	// the user's program has to dump it.
	Given bool
	// Parity requires that the two sides come from different programs: identical sides make the comparison
	// incomplete.
	Parity bool
	// Stored is the dtype of a local dump, for a port with a wider dtype of computation; 0: the dump has the
	// computed values.
	Stored hooks.DType
	// Fused are further modules of the local side with fused attention: those of its manifest count anyway.
	Fused []string
	// Flaws are the reasons why the local trace cannot prove the port right, a sentence each: they make the
	// comparison incomplete.
	Flaws []string
}

// Judging is what tensors are held to.
type Judging struct {
	// Limits are a person's own, in place of those of the noise floor and the table; nil: none.
	Limits *gate.Limits
	// Noise is the noise floor of this prompt. It limits the pairs computed in its dtype. If it is nil, the table
	// of limits applies.
	Noise *gate.NoiseFloor
	// StrictDType makes every difference of dtype a mismatch. Without it a trace has a mismatch of dtype if its
	// tensor has less range than the order's dtype in a model of the trace's own dtype, or numbers with more
	// digits. More digits in the local trace are accepted if the operation is right on its own inputs.
	StrictDType bool
	// Baseline has the known divergences. They do not fail the comparison, and the walk continues after them. It
	// may be nil.
	Baseline *KnownDivergences
	// Different are patterns of the names of entries that are expected to differ, in the syntax of [hooks.Match]; see
	// [Expectation].
	Different []string
}

// Certification configures the certification of entries from the inputs of their own trace.
type Certification struct {
	// Certified, if not nil, says that the reference is the walk, and lists the walk's operations that may produce
	// a BUG. An entry computed with any other operation is not judged. It is nil for a reference without a need for
	// certification, such as transformers.
	Certified isolate.Certified
	// Isolator certifies every entry that is visited, from the local trace's own inputs. nil: nothing is certified, and
	// NotIsolated says why, for the report.
	Isolator    *Isolator
	NotIsolated string
	Certifying  Certifying // whether that was asked for
	// Confirmer tells whether a constant tensor of the local trace is the constant of the order. If it is nil, the
	// Isolator does. Confirming never produces a BUG, so it also runs without certification. Without both, constant
	// tensors stay untested.
	Confirmer *isolate.Isolator
	// ReferenceIsolator certifies the reference from its own inputs, where an error that accumulated is to be excused: both
	// sides have to be right by themselves. nil: nothing is excused.
	ReferenceIsolator *Isolator
	// Sight asks for the usual mistakes detectable by this run: see [Result.Sight]. No verdict depends on it.
	Sight bool
}

// Reporting is what goes into the report and decides nothing.
type Reporting struct {
	LocalLabel     string // what to call the sides in addition to their producers: "golden"
	ReferenceLabel string
	// Demo is the built-in model, if the sides ran it because no model was named.
	Demo string
	// Map is the map used to name the local tensors; nil without a map.
	Map *Map
	// Code says what computes a tensor of a pass, for the first divergence; nil where nothing was recorded.
	Code func(name string, pass int) *Code
	// Remarks are notes, a sentence each.
	Remarks []string
	// TokenTexts returns a function from token ids to texts. It is called at the end: a caller can read the tokenizer while entries are compared. Its error is that of the comparison.
	// If TokenTexts is nil or returns nil, ids have no texts.
	TokenTexts func() (func(id int) string, error)
}

// Certifying is what somebody said about certificates.
type Certifying int

// What may be said about them.
const (
	IfPossible Certifying = iota // no requirement: without certificates, [Result.Uncertified] says why
	Demanded                     // a comparison that has none is incomplete
	Required                     // a comparison is incomplete unless every entry that counts is EXACT or ROUNDING
	Declined
)
