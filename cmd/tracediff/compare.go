package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/order"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "walk TENSOR_ORDER over both traces and stop at the first divergence",
		ArgsUsage: "[LOCAL [REFERENCE]]",
		Description: `Without arguments it captures the local side again, with the settings of the last capture, and compares it with
the reference: without --reference a stored trace of transformers, else a golden, else the float64 walk, stored or
run now. A command that names its input (--model, --prompt or --tokens) stands alone; otherwise flags change the last
capture's settings. With two trace files it compares those; with one and --isolate, every entry of it is computed from its
own inputs and the checkpoint. With --ab the two are runs of one model, A and B, of which neither is the reference: the
same walk, with the entries that --expect-different names expected to differ and all others to match.

Every entry that is visited is certified by itself, from the local side's own inputs: EXACT, ROUNDING or BUG. An entry past
its accumulated limit on an unbroken chain of right operations has drifted and is no bug; an operation that is wrong by
itself is one, within any limit.

Accumulated errors are limited by --rtol, --atol and --tolerances, else by a multiple of the noise floor: what the dtype's
rounding alone does to this prompt, which the walk measures. Where neither is known, a table by dtype decides.

Exit status: 0 everything in scope was compared and matches, 1 it does not or is incomplete, 2 it cannot be compared.

Examples:
  tracediff compare --prompt "Hello world"
  tracediff compare --level 3 --layers 0-2
  tracediff compare --reference hf --python venv/bin/python
  tracediff compare --report junit=out.xml --report json=out.json
  tracediff compare --local 'exec:./port --tokens {tokens} --out {out}' --prompt "Hello world"
  tracediff compare local.safetensors reference.safetensors --all
  tracediff compare --isolate local.safetensors --model ./gemma-3n-E2B
  tracediff compare --ab before.safetensors after.safetensors
  tracediff compare off.safetensors on.safetensors --expect-different 'layers.*.self_attn.*' --all`,
		Flags: append(slices.Concat(jobFlags(), isolationFlags(), limitFlags(), reportFlags(), abFlags()),
			&cli.BoolFlag{Name: "all", Category: catCompare, Usage: "go on after the first divergence"},
			&cli.BoolFlag{Name: "partial", Category: catCompare, Usage: "accept traces of runs that did not finish; such a comparison never succeeds"},
			&cli.BoolFlag{Name: "strict-dtype", Category: catCompare, Usage: "every difference of dtype is a mismatch"}),
		Action: func(c *cli.Context) error {
			out, err := readOutputs(c)
			if err != nil {
				return err
			}
			defer out.close()
			result, err := compareArguments(c, out)
			return out.publish(c, report.NewDocument(version(), newRun("", result, err)), err)
		},
	}
}

// compareArguments compares what the arguments name.
func compareArguments(c *cli.Context, out *outputs) (*compare.Result, error) {
	if asksAB(c) {
		if err := checkAB(c); err != nil {
			return nil, err
		}
	}
	switch c.NArg() {
	case 0:
		return compareAgain(c, out)
	case 1:
		return isolateFile(c, out, c.Args().First())
	case 2:
		return compareFiles(c, out, c.Args().Get(0), c.Args().Get(1))
	}
	return nil, hinted(fmt.Errorf("compare takes two traces or none, not %d arguments", c.NArg()), "tracediff compare LOCAL REFERENCE")
}

// compareAgain captures the local side and compares it with the reference that fits.
func compareAgain(c *cli.Context, out *outputs) (*compare.Result, error) {
	s := defaults()
	if !namesInput(c) {
		last, found, err := lastSettings(c.String("dir"))
		if err != nil {
			return nil, err
		}
		if found {
			s = last
		}
	}
	s, err := readFlags(c, s)
	if err != nil {
		return nil, err
	}
	limits, err := readLimits(c)
	if err != nil {
		return nil, err
	}
	return compareSettings(c, out, s, limits)
}

// compareSettings captures the local side by settings and compares it with the reference that fits. The settings become
// those of the last capture, unless they are a gate's.
func compareSettings(c *cli.Context, out *outputs, s settings, limits *compare.Limits) (*compare.Result, error) {
	gate := c.Command.Name == gateName
	if err := out.spare(s.files(c.String("dir"))...); err != nil {
		return nil, err
	}
	j, err := openJob(s, c.String("dir"))
	if err != nil {
		return nil, err
	}
	defer j.ck.Close()
	if err := j.checkLocal(c); err != nil {
		return nil, err
	}
	ref, err := j.findReference(c, false)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	j.replay(ref.passes)
	if err := j.checkPasses(); err != nil {
		return nil, err
	}
	j.noteInput(notes(c))
	if !gate {
		if err := j.save(); err != nil {
			return nil, err
		}
	}
	local, _, err := j.local(c)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	o := compare.Options{
		// A gate is about everything at the level asked for, whatever the port says that it can show.
		Order: j.record, Named: j.Order != "" || gated(c), Scope: j.compared(ref.Trace, gate || c.IsSet("level")), ReferenceLabel: ref.label, TokenText: j.text,
	}
	if err := isolate(c, &o, local, ref.Trace, j.list, j.ck); err != nil {
		return nil, err
	}
	if err := limit(c, &o, limits, local, ref.Trace, ref.entry, j.list, j.ck); err != nil {
		return nil, err
	}
	return runCompare(c, local, ref.Trace, o)
}

// compared is the scope of the comparison: the job's, and of a reference that went on decoding the passes asked for. A
// level that nobody typed does not ask a reference for more than it has.
func (j *job) compared(ref *capture.Trace, levelTyped bool) capture.Scope {
	s := j.Scope
	if has := ref.Manifest().Scope.Level; !levelTyped && has > 0 {
		s.Level = min(s.Level, has)
	}
	if asked := len(j.passes) + j.further; len(s.Passes) == 0 && ref.Manifest().Passes > asked {
		s.Passes = capture.Ranges{{From: 0, To: asked - 1}}
	}
	return s
}

// compareFiles compares two traces as they are.
func compareFiles(c *cli.Context, out *outputs, localFile, referenceFile string) (*compare.Result, error) {
	s, err := fileSettings(c, "nothing is run: the traces are compared as they are")
	if err != nil {
		return nil, err
	}
	limits, err := readLimits(c)
	if err != nil {
		return nil, err
	}
	local, err := openTrace(localFile)
	if err != nil {
		return nil, err
	}
	defer local.Close()
	ref, err := openTrace(referenceFile)
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	o := compare.Options{ReferenceLabel: "given"}
	if asksAB(c) {
		o = abOptions(c, local, ref)
	} else if err := notGated(c, ref); err != nil {
		return nil, err
	}
	o.Limits = limits
	return compareTraces(c, out, s, local, ref, o)
}

// compareTraces compares open traces by the order of the model that they declare.
func compareTraces(c *cli.Context, out *outputs, s settings, local, ref *capture.Trace, o compare.Options) (*compare.Result, error) {
	if err := out.spare(append(s.files(""), modelFiles(local.Manifest().Model, ref.Manifest().Model)...)...); err != nil {
		return nil, err
	}
	whole, err := traceOrder(local, ref)
	if err != nil {
		return nil, err
	}
	if whole == nil && s.Model != "" && !o.AB {
		if whole, err = namedOrder(s.Model, local, ref); err != nil {
			return nil, err
		}
	}
	if o.Order, err = picked(whole, s.Order); err != nil {
		return nil, err
	}
	if o.Order != nil {
		if err := checkScope(s.Scope, o.Order); err != nil {
			return nil, err
		}
	}
	o.Named, o.Scope, o.TokenText = s.Order != "" || gated(c) && !o.AB, s.Scope, traceTexts(s.Model, local, ref)
	var ck *checkpoint.Checkpoint
	if !o.AB || sameModel(local, ref) { // of two models there is no one noise floor
		if ck, err = commonCheckpoint(s.Model, local, ref); err != nil {
			return nil, err
		}
	}
	if ck != nil {
		defer ck.Close()
	}
	if !o.AB {
		if err := isolate(c, &o, local, ref, whole, ck); err != nil {
			return nil, err
		}
	}
	if err := limit(c, &o, o.Limits, local, ref, nil, whole, ck); err != nil {
		return nil, err
	}
	return runCompare(c, local, ref, o)
}

// isolateFile certifies every entry of one trace from that trace's own inputs: there is nothing that it is compared with.
func isolateFile(c *cli.Context, out *outputs, file string) (*compare.Result, error) {
	if !c.Bool("isolate") {
		return nil, hinted(errors.New("compare takes two traces or none, not 1 argument"), "tracediff compare LOCAL REFERENCE, or tracediff compare --isolate LOCAL for one trace by itself")
	}
	s, err := fileSettings(c, "nothing is run: the trace is taken as it is")
	if err != nil {
		return nil, err
	}
	limits, err := readLimits(c)
	if err != nil {
		return nil, err
	}
	if err := checkAlone(c, limits); err != nil {
		return nil, err
	}
	t, err := openTrace(file)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return compareTraces(c, out, s, t, t, compare.Options{Alone: true, All: true, Limits: limits})
}

// checkAlone reports what has no meaning for one trace by itself: there is nothing that errors accumulate against, or that a
// dtype or some of the rows would be held to.
func checkAlone(c *cli.Context, limits *compare.Limits) error {
	const hint = "tracediff compare LOCAL REFERENCE compares two; of one, every operation is held to what correct arithmetic can give"
	for _, name := range []string{"rtol", "atol", "positions", "strict-dtype"} {
		if c.IsSet(name) {
			return hinted(fmt.Errorf("--%s has no meaning for one trace by itself", name), hint)
		}
	}
	if len(limits.Rules) > 0 {
		return hinted(fmt.Errorf("--tolerances %s: a [[tolerance]] has no meaning for one trace by itself", c.String("tolerances")), hint+"; a file may have [[allow]] alone")
	}
	return nil
}

// fileSettings reads the flags that have a meaning where traces are given.
func fileSettings(c *cli.Context, hint string) (settings, error) {
	s, err := readFlags(c, settings{DType: "auto", Scope: capture.Scope{Level: 3}})
	if err != nil {
		return s, err
	}
	if !c.IsSet("level") {
		s.Scope.Level = 0 // everything that is there
	}
	for _, name := range []string{"prompt", "tokens", "chat", "dtype", "max-new-tokens", "local", "reference", "python", "gate", "debug"} {
		if c.IsSet(name) {
			return s, hinted(fmt.Errorf("--%s has no meaning where traces are given", name), hint)
		}
	}
	return s, nil
}

func openTrace(path string) (*capture.Trace, error) {
	t, err := capture.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted(err, "compare takes two trace files, or none to capture the local side again")
	}
	return t, hinted(err, "want a trace, or any safetensors file that is whole; tracediff capture writes them")
}

// traceTexts returns the texts of token ids: by the tokenizer of the model that was named, or by the embedded one for
// traces of the embedded checkpoint. Without one, ids are shown alone.
func traceTexts(dir string, traces ...*capture.Trace) func(int) string {
	var files fs.FS
	if dir != "" {
		files = os.DirFS(dir)
	} else {
		sub, err := fs.Sub(fixtures.Files, embedded)
		config, err2 := readModelConfig("")
		if err != nil || err2 != nil {
			return nil
		}
		for _, t := range traces {
			if t.Manifest().Config == nil || !order.SameConfig(t.Manifest().Config, config.Canonical()) {
				return nil
			}
		}
		files = sub
	}
	tok, err := tokenizer.Open(files)
	if err != nil {
		return nil
	}
	return tok.Text
}

// runCompare compares open traces.
func runCompare(c *cli.Context, local, ref *capture.Trace, o compare.Options) (*compare.Result, error) {
	o.All, o.Partial, o.StrictDType = o.All || c.Bool("all"), c.Bool("partial"), c.Bool("strict-dtype")
	started := time.Now()
	result, err := compare.Run(c.Context, local, ref, o)
	if err != nil {
		return nil, err
	}
	detail(c, "compared %d entries in %s", len(result.Rows), took(started))
	return result, nil
}

// colors decides for the writer of the report, not for standard output at large.
func colors(c *cli.Context) (report.Style, error) {
	var f *os.File
	out, ok := c.App.Writer.(*output)
	if ok {
		f, ok = out.Writer.(*os.File)
	}
	on, err := coloured(c.String("color"), ok && isatty.IsTerminal(f.Fd()), os.Getenv)
	return report.NewStyle(on), err
}

// coloured decides by --color, and where that is auto by whether a terminal reads the output and by NO_COLOR and TERM.
func coloured(when string, terminal bool, env func(string) string) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return terminal && env("NO_COLOR") == "" && env("TERM") != "dumb", nil
	}
	return false, fmt.Errorf("--color is %q, want auto, always or never", when)
}
