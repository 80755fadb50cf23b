package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures"
)

// found is a reference trace and where it comes from.
type found struct {
	*capture.Trace
	label  string  // "golden", "stored", "given": for the report's first line
	passes [][]int // the ids to feed the local side, pass by pass
}

// findReference returns the trace to compare the job with: the file that was given, as it is; else the stored one if
// it fits, or a note why it does not; else a golden.
func (j *job) findReference(c *cli.Context) (*found, error) {
	switch j.Reference.Kind {
	case kindFile:
		return j.givenReference(j.Reference.Text, c.Bool("partial"))
	case kindExec:
		if err := j.runCommand(c, j.Reference, "reference", j.path("reference")); err != nil {
			return nil, err
		}
		f, err := j.givenReference(j.path("reference"), false)
		if f != nil {
			f.label = "exec"
		}
		return f, err
	}
	notes := notes(c)
	w := j.wanted()
	t, err := capture.Open(j.path("reference"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		fmt.Fprintf(notes, "note: %s is passed over: %v\n", j.path("reference"), err)
	default:
		passes, err := w.Fits(t)
		if err == nil && j.weights == "unknown" {
			err = j.fresh(t)
		}
		if err == nil {
			return &found{t, "stored", passes}, nil
		}
		fmt.Fprintf(notes, "note: %s is passed over: %v\n", j.path("reference"), err)
		if err := t.Close(); err != nil {
			return nil, err
		}
	}
	t, passes, err := reference.Golden(fixtures.Files, w)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, j.noReference()
	}
	return &found{t, "golden", passes}, nil
}

// fresh reports weights that were changed after a reference was made of them. It is what can be said of weights that are
// too large to be hashed at every run.
func (j *job) fresh(t *capture.Trace) error {
	info, err := os.Stat(t.Path())
	if err != nil {
		return err
	}
	if changed := j.ck.Changed(); changed.After(info.ModTime()) {
		return fmt.Errorf("the weights of %s were changed after it was made", j.ck.Name())
	}
	return nil
}

// givenReference opens a file as it is. When its ids start with those of the input, the local side is fed its further
// passes; when they do not, the comparison will say so.
func (j *job) givenReference(path string, partial bool) (*found, error) {
	t, err := capture.Open(path)
	if err != nil {
		return nil, hinted(fmt.Errorf("reading the reference: %w", err), "--reference wants a trace file, as tracediff capture and python -m tracediff.hf write them")
	}
	ids, err := t.IDs()
	if err == nil {
		err = j.suitable(t, "reference", partial)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	f := &found{t, "given", j.passes}
	if passes, err := j.wanted().Match(ids); err == nil {
		f.passes = passes
	}
	return f, nil
}

// suitable reports at once what the comparison would refuse after the run.
func (j *job) suitable(t *capture.Trace, side string, partial bool) error {
	if s := t.Status(); s != "" && s != capture.StatusComplete && !partial {
		return hinted(fmt.Errorf("%s is not complete, its status is %q", t.Path(), s), "make it again, or compare what is there with --partial")
	}
	if err := j.wanted().SameModel(t); err != nil {
		return hinted(fmt.Errorf("%s cannot be the %s of %s: %w", t.Path(), side, j.ck.Name(), err), "capture both sides from the same checkpoint")
	}
	return nil
}

// noReference is the error when nothing fits: the command that makes a reference, to the letter.
func (j *job) noReference() error {
	model, name, flag := "fixtures/"+embedded, "the embedded checkpoint", ""
	if j.Model != "" {
		model, name, flag = j.Model, j.Model, " --model "+quoteShell(j.Model)
	}
	order := filepath.Join(j.dir, "order.json")
	steps := ""
	if j.further > 0 {
		steps = fmt.Sprintf(" --max-new-tokens %d", j.further)
	}
	hint := fmt.Sprintf(`make one with transformers, in a checkout of tracediff (pip install -r hooks/python/requirements.txt), then repeat this command:
  mkdir -p %s && tracediff order%s --format json > %s
  PYTHONPATH=hooks/python python3 -m tracediff.hf --model %s --order %s --tokens '%s'%s --dtype %s --out %s
or capture the local side alone with --side local`,
		quoteShell(j.dir), flag, quoteShell(order), quoteShell(model), quoteShell(order), formatTokens(j.passes), steps, j.dtype, quoteShell(j.path("reference")))
	return hinted(fmt.Errorf("no reference: neither a stored trace nor a golden is of %s, these token ids and %s", name, j.dtype), hint)
}

// quoteShell quotes a word for a POSIX shell where it has to be.
func quoteShell(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@", r)
	}
	if s != "" && strings.TrimFunc(s, safe) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// store copies a reference to where compare looks for it. The file appears whole or not at all.
func (j *job) store(f *found, given string) error {
	to := j.path("reference")
	if f.label == "stored" || f.label == "exec" {
		return nil
	}
	if err := os.MkdirAll(j.dir, 0o777); err != nil {
		return fmt.Errorf("storing the reference: %w", err)
	}
	var from io.ReadCloser
	var err error
	if f.label == "golden" {
		from, err = fixtures.Files.Open(f.Path())
	} else {
		from, err = os.Open(given)
	}
	if err != nil {
		return err
	}
	defer from.Close()
	if given != "" && sameFile(given, to) {
		return nil
	}
	tmp, err := os.CreateTemp(j.dir, "reference-*.part")
	if err != nil {
		return fmt.Errorf("storing the reference: %w", err)
	}
	_, err = io.Copy(tmp, from)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("storing the reference: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}
