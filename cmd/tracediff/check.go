package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/github"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/order"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "look for red flags in one trace: values that are nearly always wrong",
		ArgsUsage: "TRACE",
		Description: `Needs no reference. Looks at probabilities, rotations, the cache, hidden states, logits, gradients and the numbers of every
tensor, with limits that no healthy model comes near; docs/inside.md has them. A trace without a flag may still be wrong: compare it.
TRACE is a trace, complete or not, or a dump with the same names (docs/ports.md). A dump with its own names and layouts needs a
map: --map FILE, and --model DIR if the layouts of the map use sizes of the model.
Exit status: 0 no flag, 1 a flag, 2 the file cannot be checked.

Examples:
  tracediff check .tracediff/local.safetensors
  tracediff check port.npz --map map.toml
  tracediff check training.safetensors --format json
  tracediff check training.safetensors --report html=flags.html
  tracediff check training.safetensors --report github
  tracediff check large.safetensors --magnitude 1e5 --skip narrow-values,dtype-change`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "skip", Usage: "leave out these `KINDS` of flags, by the names in docs/inside.md (repeatable)"},
			&cli.Float64Flag{Name: "magnitude", Value: redflag.DefaultMagnitude, Usage: "raise a flag where half of a tensor is beyond this `NUMBER`; set it higher for models with large values"},
			lookMapFlag(""),
			&cli.StringFlag{Name: "model", Usage: "checkpoint `DIR` whose config.json gives the order, if the trace has none"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: text, or json"},
			&cli.StringSliceFlag{Name: "report", Usage: "also write `FORMAT=FILE`, such as html=flags.html; github writes annotations and a summary of the step (repeatable)"},
			&cli.StringFlag{Name: "color", Value: "auto", Usage: "`WHEN`: auto, always or never"},
		},
		Action: checkTrace,
	}
}

func checkTrace(c *cli.Context) error {
	if c.NArg() != 1 {
		return hint.Add(fmt.Errorf("check takes one trace, not %d arguments", c.NArg()), "tracediff check TRACE; tracediff capture leaves one in .tracediff/local.safetensors")
	}
	style, err := colors(c)
	if err != nil {
		return err
	}
	o, err := checkOptions(c)
	if err != nil {
		return err
	}
	if err := checkValue(c, "format"); err != nil {
		return err
	}
	out, err := checkReports(c)
	if err != nil {
		return err
	}
	defer out.close()
	trace, err := openChecked(c.Args().First())
	if err != nil {
		return err
	}
	defer func() { trace.Close() }()
	if trace, o.Order, err = mapChecked(c, trace); err != nil {
		return err
	}
	p := newProgress(c, "checking", "look", trace.BytesRead)
	o.Progress = func(look, looks int) { p.Step(0, 1, look, looks) }
	r, err := redflag.Check(c.Context, trace, o)
	p.Done()
	if err != nil {
		return hint.Default(err, "the file could be opened, but not read to its end: is it still being written, or is the disk failing?")
	}
	if !slices.ContainsFunc(r.Looked, func(l redflag.Looked) bool { return l.Tensors > 0 }) {
		return hint.Add(fmt.Errorf("%s has no tensor that can be checked", trace.Path()), "check looks at float tensors; docs/inside.md has their names")
	}
	unwritten := out.writeEach(c, func(w io.Writer, format string) error { return checkFormats[format](w, c, trace, r) })
	err = hint.Also(printFlags(c, out, r, style), unwritten)
	if err == nil && len(r.Flags) > 0 {
		err = mismatch{}
	}
	return err
}

// printFlags writes the red flags: the summary of a step first, then standard output.
func printFlags(c *cli.Context, out *outputs, r *redflag.Result, style text.Style) error {
	if err := out.writeSummary(func(w io.Writer, room int) error { return github.CheckSummary(w, r, room) }); err != nil {
		return err
	}
	var err error
	if out.format == "json" {
		err = report.CheckJSON(c.App.Writer, version(), r)
	} else {
		err = text.Check(c.App.Writer, r, style)
	}
	if err != nil {
		return err
	}
	return out.annotations(c, func(w io.Writer) error { return github.CheckAnnotations(w, r, githubFile(c)) })
}

func checkOptions(c *cli.Context) (redflag.Options, error) {
	o := redflag.Options{Magnitude: c.Float64("magnitude")}
	if !(o.Magnitude > 0) || math.IsInf(o.Magnitude, 1) {
		return o, hint.Add(fmt.Errorf("--magnitude is %v", o.Magnitude), "want a positive number, such as 1e5; --skip magnitude leaves the flag out")
	}
	for _, word := range c.StringSlice("skip") {
		for name := range strings.SplitSeq(word, ",") {
			kind := redflag.Kind(strings.TrimSpace(name))
			if !slices.ContainsFunc(redflag.Kinds, func(a redflag.About) bool { return a.Kind == kind }) {
				return o, hint.Add(fmt.Errorf("--skip: %q is not a kind of flag", name), "want "+kindNames())
			}
			o.Skip = append(o.Skip, kind)
		}
	}
	return o, nil
}

// kindNames lists all kinds of flags, for an error.
func kindNames() string {
	var names []string
	for _, a := range redflag.Kinds {
		names = append(names, string(a.Kind))
	}
	return strings.Join(names, ", ")
}

// checkedOrder is the order of a trace's model, or of the model of --model; nil if neither is known.
func checkedOrder(c *cli.Context, t *capture.Trace) (*order.List, error) {
	list, err := orders.OfTraces(t, t)
	if err == nil && list == nil && c.IsSet("model") {
		return orders.OfModel(c.String("model"), "")
	}
	return list, nil // the report names a configuration that cannot be used
}

// mapChecked reads a trace by --map, and returns the order of its model; nil for an unknown model.
func mapChecked(c *cli.Context, t *capture.Trace) (*capture.Trace, *order.List, error) {
	list, err := checkedOrder(c, t)
	if err != nil {
		return t, nil, err
	}
	all, err := lookMapped(c, list, t)
	if err != nil {
		return t, nil, err
	}
	return all[0], list, nil
}

// openChecked opens the file to check.
func openChecked(path string) (*capture.Trace, error) {
	if path == "-" {
		return nil, hint.Add(fmt.Errorf("a trace is read from a file, not from standard input"), "write it to a file first: its header says where in the file each tensor lies")
	}
	trace, err := foreign.Open(path)
	if err == nil && foreign.Printed(trace) {
		err = hint.Add(fmt.Errorf("%s: a text of rounded numbers: nothing in it can be checked", path), "compare it with a trace of transformers: that finds the place of a mismatch")
		return nil, hint.Also(err, trace.Close())
	}
	return trace, hint.Default(err, dump.Next)
}
