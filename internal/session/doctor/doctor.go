// Package doctor checks the input, the weights, the settings and the machine: what a person should look at before the arithmetic.
// Its checks add lines, each with a next step; what is printed of them, and how, is for who runs them.
package doctor

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// general is for errors that say themselves what is wrong: the general hint sends people here.
const general = "the line says what is wrong; tracediff doctor --help says what each flag wants"

// Hint is the next step of an error that the checklist has met.
func Hint(err error) string {
	if h := advice.Hint(err); h != advice.GeneralHint {
		return h
	}
	return general
}

// Patient is the setup under examination. The checks run in order, and each check may use the findings of earlier
// checks.
type Patient struct {
	settings.Settings
	Dir     string // of traces
	Python  health.Interpreter
	Port    string // the port's checkpoint; empty: it is not named
	Full    bool   // look at everything, however long it takes
	Version string // of the program

	// Example runs this program with the given arguments and returns its output; a mismatch is not an error.
	Example func(ctx context.Context, words ...string) ([]byte, error)

	model  model
	input  job.Input // no passes when the ids are not known
	tok    *tokenizer.Tokenizer
	failed bool // there is an error in the model or in the input
}

// Checks is the list that grows: a check is a name and a function that adds lines. It is the order in which a person
// should look: most wrong outputs come of the wrong ids, then of the wrong weights, and only then of arithmetic. What a
// capture needs besides comes last.
func (p *Patient) Checks() []health.Check {
	return []health.Check{
		{Section: "machine", Run: func(_ context.Context, s *health.Section) { health.Machine(s, "tracediff "+p.Version) }},
		{Section: "model", Run: p.noting(p.checkModel)},
		{Section: "input", Run: p.noting(p.checkInput)},
		{Section: "weights", Run: p.noting(p.checkWeights)},
		{Section: "decode", Run: p.noting(p.checkDecode)},
		{Section: "example", Run: p.checkExample},
		{Section: "python", Run: func(ctx context.Context, s *health.Section) { health.Python(ctx, s, p.Python) }},
		{Section: "disk", Run: p.checkDisk},
		{Section: "store", Run: p.checkStore},
	}
}

// noting makes a check note its errors.
func (p *Patient) noting(run func(context.Context, *health.Section)) func(context.Context, *health.Section) {
	return func(ctx context.Context, s *health.Section) {
		run(ctx, s)
		p.failed = p.failed || slices.ContainsFunc(s.Lines, func(l health.Line) bool { return l.Status == health.Error })
	}
}

// Pins are the versions that the goldens were made with, of what the transformers runner uses.
func Pins() ([]health.Pin, error) {
	versions, err := reference.Pins()
	if err != nil {
		return nil, err
	}
	var list []health.Pin
	for _, name := range []string{"torch", "transformers", "tokenizers", "safetensors", "numpy"} {
		list = append(list, health.Pin{Name: name, Version: versions[name]})
	}
	return list, nil
}
