package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/session/orders"
)

const inspectHint = "tracediff inspect FILE [NAME], or two files and a NAME"

func inspectCommand() *cli.Command {
	const catLook = "WHAT TO SHOW"
	return &cli.Command{
		Name:      "inspect",
		Usage:     "look into a trace, or any safetensors file: shapes, statistics, histograms, single values",
		ArgsUsage: "FILE [NAME] | A B NAME",
		Description: `With only a file, or with a pattern such as 'layers.*.mlp.*', it lists tensors with their statistics. With a NAME it shows one
tensor: statistics, percentiles, a histogram, each head and AltUp stream, the channels that stand out, and for logits the
tokens that they choose. With two files it shows one tensor of both, side by side, and the difference.

NaN, infinities and values that stand for -Inf in a mask are counted and left out of statistics. Nothing is judged:
"tracediff compare" does that.

Exit status: 0 it was shown, 2 a file or a name cannot be used.

Examples:
  tracediff inspect .tracediff/local.safetensors
  tracediff inspect .tracediff/local.safetensors 'layers.3.*' --pass 0
  tracediff inspect local.safetensors layers.3.self_attn.probs --slice '0,0,:8,:8'
  tracediff inspect local.safetensors logits --top 10
  tracediff inspect model.safetensors model.layers.0.mlp.up_proj.weight --slice ':4,:8' --top 10
  tracediff inspect port.npz reference.safetensors layers.3.mlp.act_fn --map map.toml`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "pass", Category: catLook, Usage: "only these forward `PASSES`, such as 0 or 1-3: 0 is the prefill (default: all in a list; for one tensor the first pass that has it)"},
			&cli.StringFlag{Name: "slice", Category: catLook, Usage: "show the values of `SLICE`, in Python's syntax: an index or start:stop:step for each axis, as in '0,:8,-1'"},
			&cli.IntFlag{Name: "axis", Category: catLook, DefaultText: "heads and streams", Usage: "statistics of each index of axis `N`; -1 is the last"},
			&cli.IntFlag{Name: "row", Category: catLook, DefaultText: "the last", Usage: "show what row `N` of the logits chooses"},
			&cli.IntFlag{Name: "top", Category: catLook, Value: 5, Usage: "list `N` channels and tokens"},
			&cli.BoolFlag{Name: "header", Category: catLook, Usage: "list only names, shapes and dtypes: no data are read"},
			&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` whose tokenizer has the texts of token ids, and whose config.json gives the order if the file has none (default: the one that the file names, if it exists)"},
			lookMapFlag(catInput),
			&cli.StringFlag{Name: "format", Category: catReport, Value: "text", Usage: "`FORMAT`: text, or json"},
		}, talkFlags()...),
		Action: inspectFiles,
	}
}

// inspectFiles inspects the files that the arguments name.
func inspectFiles(c *cli.Context) error {
	o, err := inspectOptions(c)
	if err != nil {
		return err
	}
	args := c.Args().Slice()
	if len(args) == 0 || len(args) > 3 {
		return hint.Add(fmt.Errorf("inspect takes a file, or a file and the name of a tensor, or two files and a name, not %s", amount.Of(len(args), "argument")), inspectHint)
	}
	files := args[:1]
	if len(args) == 3 {
		files = args[:2]
	}
	if len(args) > 1 {
		o.Name = args[len(args)-1]
		if o.Name == "" {
			return hint.Add(errors.New("the name is empty"), "leave it out for a list of all tensors")
		}
	}
	var traces []*capture.Trace
	for _, path := range files {
		t, err := openInspected(path)
		if err != nil {
			return err
		}
		defer t.Close()
		traces = append(traces, t)
	}
	result, err := inspectTraces(c, traces, o)
	if err != nil {
		if _, isFile := os.Stat(o.Name); len(args) == 2 && isFile == nil && errors.As(err, new(*inspect.OptionError)) {
			return hint.Add(err, "two files are compared for one tensor: tracediff inspect A B NAME")
		}
		return err
	}
	if c.String("format") == "json" {
		return report.InspectionJSON(c.App.Writer, version(), result)
	}
	return text.Inspection(c.App.Writer, result)
}

// inspectTraces inspects one trace, or two.
func inspectTraces(c *cli.Context, traces []*capture.Trace, o inspect.Options) (*inspect.Result, error) {
	first, last := traces[0], traces[len(traces)-1]
	list, err := orders.OfTraces(first, last)
	if err != nil { // with an unknown configuration, only the names of axes are missing
		fmt.Fprintf(notes(c), "note: no order: %v\n", err)
	}
	o.Order = list
	if o.TokenText, err = session.TraceTexts(c.String("model"), traces...); err != nil {
		return nil, err
	}
	if dir := c.String("model"); c.IsSet("model") {
		named, err := orders.OfModel(dir, "")
		if err != nil && (o.TokenText == nil || errors.As(err, new(*files.Error))) {
			return nil, err
		}
		if o.Order == nil {
			o.Order = named
		}
	}
	if traces, err = lookMapped(c, o.Order, traces...); err != nil {
		return nil, err
	}
	first, last = traces[0], traces[len(traces)-1]
	progress := newProgress(c, "statistics", "tensor", nil)
	defer progress.Done()
	o.Step = func(at, of int) { progress.Step(0, 1, at, of) }
	defer func(started time.Time) { detail(c, "read in %s", amount.Since(started)) }(time.Now())
	if len(traces) == 1 {
		return inspect.Run(c.Context, first, o)
	}
	return inspect.Pair(c.Context, first, last, o)
}

// inspectOptions reads the flags.
func inspectOptions(c *cli.Context) (inspect.Options, error) {
	o := inspect.Options{Header: c.Bool("header"), Slice: c.String("slice"), Top: c.Int("top")}
	if err := checkTalk(c); err != nil {
		return o, err
	}
	passes, err := capture.ParseRanges(c.String("pass"))
	if err != nil {
		return o, hint.Add(fmt.Errorf("--pass: %w", err), rangesHint)
	}
	o.Passes = passes
	for name, into := range map[string]**int{"axis": &o.Axis, "row": &o.Row} {
		if c.IsSet(name) {
			n := c.Int(name)
			*into = &n
		}
	}
	if err := checkValue(c, "format"); err != nil {
		return o, err
	}
	switch {
	case o.Top < 1:
		return o, fmt.Errorf("--top is %d, want at least 1", o.Top)
	case c.IsSet("slice") && o.Slice == "":
		return o, hint.Add(errors.New("--slice is empty"), "want an index or start:stop:step for each axis, as in '0,:8,-1'")
	case c.NArg() == 1 && (o.Slice != "" || o.Axis != nil || o.Row != nil):
		return o, hint.Add(errors.New("--slice, --axis and --row need the name of one tensor"), inspectHint)
	}
	return o, nil
}

// openInspected opens a file for reads at any offset, which excludes standard input.
func openInspected(path string) (*capture.Trace, error) {
	if path == "-" {
		return nil, hint.Add(errors.New("inspect cannot read standard input: it reads a tensor several times, wherever it lies in the file"), "write it to a file and name that")
	}
	t, err := foreign.Look(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(err, inspectHint)
	}
	return t, hint.Default(err, dump.Next)
}
