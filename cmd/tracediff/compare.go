package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "find the first tensor at which the two sides differ, and say whether that is a bug or rounding",
		ArgsUsage: "[LOCAL [REFERENCE]]",
		Description: `Without arguments it captures your port again, with the settings of the last capture or compare, and compares it with the
reference: the one that --reference names, else a stored trace of transformers, else a golden, else the float64 walk. A command
with --model, --prompt or --tokens ignores the last settings. Without these three, the flags that you type change the last
settings, even if the command fails or is interrupted. If nothing was captured and no input is named, there is nothing to
compare: exit status 2. If no model is named, the built-in model runs, and the last line says so; with CI=true it does not run.

Two trace files are compared as they are. One file with --isolate is checked without a reference: every entry is computed again from its
own inputs and the checkpoint. With --ab the files are two runs of one model, A and B, and neither is the reference; the entries that
--expect-different names must differ, and all others must match.

Every entry is verified from your port's own inputs: EXACT, ROUNDING, UNIDENTIFIED or BUG. A BUG is a mismatch
even if the error is within its limit. An error over its limit is drift, not a mismatch, if every operation from the token
ids to that entry is correct. For an UNIDENTIFIED entry the limit decides; --require-certified does not accept it.

Limits come from --rtol, --atol and --tolerances; else from the noise floor, which is the error that rounding makes for
this prompt; else from a table by dtype.

Exit status: 0 everything in scope was compared and matches, 1 it does not or is incomplete, 2 it cannot be compared.

Examples:
  tracediff compare --prompt "Hello world"
  tracediff compare --level 3 --layers 0-2
  tracediff compare --reference hf --python venv/bin/python
  tracediff compare --report junit=out.xml --report json=out.json
  tracediff compare mine.safetensors reference.safetensors --report github
  tracediff compare --local 'exec:./port --tokens {tokens} --out {out}' --prompt "Hello world"
  tracediff compare local.safetensors reference.safetensors --all
  tracediff compare local.safetensors reference.safetensors --require-certified
  tracediff compare --baseline baseline.toml
  tracediff compare --isolate local.safetensors --model ./gemma-3n-E2B
  tracediff compare --isolate local.safetensors --model ./Qwen3-0.6B --weights model.Q8_0.gguf
  tracediff compare --ab before.safetensors after.safetensors
  tracediff compare off.safetensors on.safetensors --expect-different 'layers.*.self_attn.*' --all`,
		Flags: append(slices.Concat(jobFlags(), isolationFlags(), limitFlags(), reportFlags(), abFlags()),
			baselineFlag(),
			&cli.BoolFlag{Name: helpAll, Usage: "show every flag"},
			&cli.BoolFlag{Name: "all", Category: catCompare, Usage: "go on after the first divergence"},
			&cli.BoolFlag{Name: "partial", Category: catCompare, Usage: "accept traces of unfinished runs; the comparison then never succeeds"},
			fusedFlag(),
			&cli.BoolFlag{Name: "strict-dtype", Category: catCompare, Usage: "treat every difference in dtype as a mismatch"}),
		CustomHelpTemplate: compareHelp,
		Action: func(c *cli.Context) error {
			if c.Bool(helpAll) {
				return allFlags(c)
			}
			out, err := readOutputs(c)
			if err != nil {
				return err
			}
			defer out.close()
			pictures := out.pictures()
			result, err := compareArguments(c, out, pictures)
			one := newRun("", result, err)
			one.Since, one.Pictures = out.since, pictures
			return out.publish(c, report.NewDocument(version(), one), err)
		},
	}
}

// compareArguments chooses the kind of comparison by the number of arguments.
func compareArguments(c *cli.Context, out *outputs, pictures *picture.Set) (*compare.Result, error) {
	if asksAB(c) {
		if err := checkAB(c); err != nil {
			return nil, err
		}
	}
	switch c.NArg() {
	case 0:
		return compareAgain(c, out, pictures)
	case 1:
		return isolateFile(c, out, pictures, c.Args().First())
	case 2:
		return compareFiles(c, out, pictures, c.Args().Get(0), c.Args().Get(1))
	}
	return nil, hint.Add(fmt.Errorf("compare takes two traces or none, not %d arguments", c.NArg()), "tracediff compare LOCAL REFERENCE")
}

// compareAgain captures your port and compares it with the reference that fits.
func compareAgain(c *cli.Context, out *outputs, pictures *picture.Set) (*compare.Result, error) {
	s, a, err := readComparison(c)
	if err != nil {
		return nil, err
	}
	a.Keep, a.Observe = true, pictures.Observer()
	e := env(c, out)
	r, err := session.Compare(c.Context, e, s, *a)
	if err != nil {
		return r, err
	}
	out.remember(c, s.Local, r)
	tracefolder.RemoveLeftovers(e, s)
	return r, nil
}

// remember notes how the first divergence moved since the last comparison of the same sides by the same input. An error is shown only with
// --verbose, since it does not change the comparison.
func (o *outputs) remember(c *cli.Context, local settings.Source, r *compare.Result) {
	if r == nil {
		return
	}
	since, err := tracefolder.Since(c.String("dir"), local, r)
	if err != nil {
		detail(c, "%s", err)
	}
	o.since = since
}

// compareFiles compares two traces; no model runs.
func compareFiles(c *cli.Context, out *outputs, pictures *picture.Set, localFile, referenceFile string) (*compare.Result, error) {
	s, err := fileSettings(c, "nothing is run: the traces are compared as they are")
	if err != nil {
		return nil, err
	}
	a, err := readAsked(c)
	if err != nil {
		return nil, err
	}
	a.Observe = pictures.Observer()
	r, err := session.CompareFiles(c.Context, env(c, out), s, *a, localFile, referenceFile)
	out.remember(c, settings.Source{Kind: settings.KindFile, Text: localFile}, r)
	return r, err
}

// isolateFile certifies every entry of one trace from that trace's own inputs.
func isolateFile(c *cli.Context, out *outputs, pictures *picture.Set, file string) (*compare.Result, error) {
	if !c.Bool("isolate") {
		return nil, hint.Add(errors.New("compare takes two traces or none, not 1 argument"), "tracediff compare LOCAL REFERENCE, or tracediff compare --isolate LOCAL for one trace")
	}
	s, err := fileSettings(c, "nothing is run: the trace is taken as it is")
	if err != nil {
		return nil, err
	}
	a, err := readAsked(c)
	if err != nil {
		return nil, err
	}
	if err := checkAlone(c, a.Limits); err != nil {
		return nil, err
	}
	a.Observe = pictures.Observer()
	return session.Alone(c.Context, env(c, out), s, *a, file)
}

// checkAlone returns an error for flags that do not apply to one trace. One trace has no accumulated errors, and no second
// side for a dtype or for rows.
func checkAlone(c *cli.Context, limits *gate.Limits) error {
	const next = "tracediff compare LOCAL REFERENCE compares two traces; in one trace, every operation is checked against correct arithmetic"
	for _, name := range []string{"rtol", "atol", "positions", "strict-dtype"} {
		if c.IsSet(name) {
			return hint.Add(fmt.Errorf("--%s does not apply to one trace", name), next)
		}
	}
	if len(limits.Rules) > 0 {
		return hint.Add(fmt.Errorf("--tolerances %s: a [[tolerance]] does not apply to one trace", c.String("tolerances")), next+"; a file may have only [[allow]]")
	}
	return nil
}

// fileSettings reads the flags of a comparison of trace files. Flags of a run are an error.
func fileSettings(c *cli.Context, next string) (settings.Settings, error) {
	s, err := readFlags(c, settings.Settings{DType: "auto", Scope: capture.Scope{Level: 3}})
	if err != nil {
		return s, err
	}
	if !c.IsSet("level") {
		s.Scope.Level = 0 // everything in the files
	}
	for _, name := range []string{"prompt", "tokens", "chat", "dtype", "max-new-tokens", "local", "reference", "python", "debug"} {
		if c.IsSet(name) {
			return s, hint.Add(fmt.Errorf("--%s does not apply to trace files", name), next)
		}
	}
	return s, nil
}

// colors returns the style for the writer of the report, which may differ from standard output.
func colors(c *cli.Context) (text.Style, error) {
	on, err := inColour(c)
	return text.NewStyle(on), err
}

// inColour reports whether the output has colours.
func inColour(c *cli.Context) (bool, error) {
	if err := checkValue(c, "color"); err != nil {
		return false, err
	}
	var f *os.File
	out, ok := c.App.Writer.(*output)
	if ok {
		f, ok = out.Writer.(*os.File)
	}
	return coloured(c.String("color"), ok && isatty.IsTerminal(f.Fd()), os.Getenv), nil
}

// coloured decides by --color; auto depends on whether a terminal reads the output, on NO_COLOR and on TERM.
func coloured(when string, terminal bool, env func(string) string) bool {
	return when == "always" || when == "auto" && terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
}
