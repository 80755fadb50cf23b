package session

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/baseline"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

// BaselineName is the file that divergences are accepted to where no other is named.
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
		return nil, hint.Add(OnPath(path, err), "tracediff accept REPORT.json --reason TEXT --until DATE writes one")
	}
	var lines []baseline.Line
	if err == nil {
		lines, err = baseline.Parse(text)
	}
	if err != nil {
		return nil, hint.Add(OnPath(path, err), "docs/baseline.md has the keys; tracediff accept writes them")
	}
	return &Baseline{name, lines}, nil
}

// Of checks that every line is of a prompt that there is, or of all.
func (b *Baseline) Of(prompts []string) error {
	for _, l := range b.Lines {
		if l.Run != "" && !slices.Contains(prompts, l.Run) {
			return hint.Add(fmt.Errorf("%s: %q is for prompt %q, which does not exist", b.File, l.Key, l.Run), "correct the name of the prompt, or remove the section")
		}
	}
	return nil
}

// known are the lines about a run; nil where there is no baseline.
func (a *Asked) known(e *Env) *compare.KnownDivergences {
	if a.Baseline == nil {
		return nil
	}
	k := &compare.KnownDivergences{File: a.Baseline.File, Today: time.Now().UTC().Format(baseline.Date)}
	for _, l := range a.Baseline.Lines {
		if l.Run == "" || l.Run == a.Run {
			k.Lines = append(k.Lines, l)
		}
	}
	if n := len(a.Baseline.Lines) - len(k.Lines); n > 0 && a.Run == "" {
		what := "1 section of a prompt of a gate is"
		if n > 1 {
			what = fmt.Sprintf("%d sections of prompts of a gate are", n)
		}
		fmt.Fprintf(e.Notes, "note: %s: %s not used here\n", k.File, what)
	}
	return k
}
