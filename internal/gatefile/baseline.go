package gatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tracediff/tracediff/compare/baseline"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

// BaselineName is the default file for accepted divergences.
const BaselineName = "baseline.toml"

// Baseline is a file of known divergences.
type Baseline struct {
	File  string // as a person calls it
	Lines []baseline.Line
}

// OpenBaseline reads the file at a path, which a person calls name.
func OpenBaseline(path, name string) (*Baseline, error) {
	text, _, err := files.ReadStream(path, baseline.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(advice.OnPath(path, err), "tracediff accept REPORT.json --reason TEXT --until DATE writes one")
	}
	var lines []baseline.Line
	if err == nil {
		lines, err = baseline.Parse(text)
	}
	if err != nil {
		return nil, hint.Add(advice.OnPath(path, err), "docs/verdict.md has the keys; tracediff accept writes them")
	}
	return &Baseline{name, lines}, nil
}

// Of returns an error for a line with an unknown prompt.
func (b *Baseline) Of(prompts []string) error {
	for _, l := range b.Lines {
		if l.Run != "" && !slices.Contains(prompts, l.Run) {
			return hint.Add(fmt.Errorf("%s: %q is for prompt %q, which does not exist", b.File, l.Key, l.Run), "correct the name of the prompt, or remove the section")
		}
	}
	return nil
}
