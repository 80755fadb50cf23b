package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/report/github"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

const (
	// githubFormat is the report with annotations on standard output or standard error, and a summary in a file.
	githubFormat = "github"
	// stepSummary is the environment variable in which GitHub Actions gives the path of a step's summary.
	stepSummary = "GITHUB_STEP_SUMMARY"
)

// addGitHub adds the file of the summary: the file of --report github=FILE, or else the summary of the step.
func (o *outputs) addGitHub(c *cli.Context, path string, named bool) error {
	if o.github {
		return hint.Add(errors.New("--report github was given twice"), "give it once")
	}
	if path == "" && named {
		return hint.Add(errors.New("--report is \"github=\""), "want github, or github=FILE")
	}
	if !named {
		if path = os.Getenv(stepSummary); path == "" {
			return hint.Add(fmt.Errorf("--report github: %s is not set; in GitHub Actions it names the file for the step's summary", stepSummary), "elsewhere name one: --report github=FILE")
		}
	}
	o.github = true
	return o.add(c, githubFormat, path)
}

// annotations writes workflow commands after the result: to standard output with a text report, else to standard error. GitHub
// Actions reads both.
func (o *outputs) annotations(c *cli.Context, write func(io.Writer) error) error {
	if !o.github {
		return nil
	}
	w := c.App.Writer
	if o.format != "text" {
		w = c.App.ErrWriter
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return commands(w, b.Bytes())
}

// appendSummary appends the part that fits to the summary of the step.
func appendSummary(to *files.Target, write func(w io.Writer, room int) error) error {
	room := github.MaxSummary
	if info, err := os.Stat(to.Path); err == nil && info.Mode().IsRegular() {
		room -= int(min(info.Size(), github.MaxSummary))
	}
	var b bytes.Buffer
	if err := write(&b, room); err != nil {
		return err
	}
	if !to.Replaces() {
		return hint.Also(to.Write(b.Bytes()), to.Close())
	}
	f, err := os.OpenFile(to.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return hint.Also(err, f.Close())
}

// githubFile is the file for annotations: the configuration of a gate, or the trace. The path stays as it was typed, since a step
// runs in the root of the repository.
func githubFile(c *cli.Context) string {
	switch path := c.Args().First(); {
	case c.Command.Name == gateName:
		return c.String("config")
	case path != "" && c.Command.Name != mergeName:
		return path
	}
	return ""
}

// writeSummary writes the summary of a step to every file of --report github.
func (o *outputs) writeSummary(write func(w io.Writer, room int) error) error {
	for i := range o.files {
		f := &o.files[i]
		if f.format != githubFormat || f.refused {
			continue
		}
		var err error
		if f.to == nil {
			err = write(f.stream, github.MaxSummary)
		} else {
			err = appendSummary(f.to, write)
		}
		if err != nil {
			return hint.Add(fmt.Errorf("writing the summary: %w", advice.OnPath(f.path, err)), "can files be created in the folder of "+f.path+"?")
		}
	}
	return nil
}
