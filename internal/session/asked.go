package session

import (
	"fmt"
	"time"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/baseline"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// Asked holds the options of a comparison other than its two sides. A session reads Asked and never changes it.
type Asked struct {
	Limits        *gate.Limits
	Certification Certification
	Known         Known
	AB            *AB      // neither side is the reference; nil: the second is
	All           bool     // do not stop at the first divergence
	StrictDType   bool     // every difference of dtype is a mismatch
	Fused         []string // modules of the local side, or patterns of modules, with a fused attention kernel
	LevelTyped    bool     // the level was asked for: a reference that has less is incomplete
	Keep          bool     // the settings and the traces become those of the last capture; else the traces go to [tracefolder.GateFolder]

	Observe func(compare.Pair) error // is shown each pair of tensors, see [compare.Options]; nil: nothing is shown

	// Mistake changes the configuration by which the built-in model computes, but not the configuration in the local
	// trace's manifest: the run then looks like a port with a misread setting. Nil: the built-in model computes by
	// config.json.
	Mistake func(*order.Config)
}

// Certification says how entries are certified, and which have to be.
type Certification struct {
	Isolate  isolate.Options // the arithmetic and the bound
	Demanded bool            // every entry is to be certified: that none can be is an error
	Required bool            // every entry that counts is to be EXACT or ROUNDING: else the comparison is incomplete
	Declined bool            // nothing is to be certified
}

// AB asks for a comparison of two runs, A and B, where neither run is the reference.
type AB struct {
	Different []string // patterns of what has to differ between A and B
}

// Known are the divergences that are known.
type Known struct {
	Baseline *gatefile.Baseline // nil: none is known
	Run      string             // the prompt of a gate that is compared; empty outside of one
}

// lines are the lines about the run that is compared; nil where there is no baseline.
func (k Known) lines(e *settings.Env) *compare.KnownDivergences {
	if k.Baseline == nil {
		return nil
	}
	known := &compare.KnownDivergences{File: k.Baseline.File, Today: time.Now().UTC().Format(baseline.Date)}
	for _, l := range k.Baseline.Lines {
		if l.Run == "" || l.Run == k.Run {
			known.Lines = append(known.Lines, l)
		}
	}
	if n := len(k.Baseline.Lines) - len(known.Lines); n > 0 && k.Run == "" {
		what := "1 section for a prompt of a gate is"
		if n > 1 {
			what = fmt.Sprintf("%d sections for prompts of a gate are", n)
		}
		fmt.Fprintf(e.Notes, "note: %s: %s not used here\n", known.File, what)
	}
	return known
}
