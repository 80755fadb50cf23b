package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
)

const (
	catInput   = "INPUT"
	catScope   = "SCOPE (limits the work, not only the output)"
	catSides   = "SIDES"
	catFiles   = "FILES"
	catCompare = "COMPARISON"
	catReport  = "REPORT"
)

// jobFlags are the flags of every command that runs the model.
func jobFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` as Hugging Face writes it (default: the built-in model, a tiny Gemma 3n)"},
		&cli.StringFlag{Name: "prompt", Category: catInput, Usage: "`TEXT` to tokenize, after BOS where the model has one (default: the single token \"What\" without BOS)"},
		&cli.StringFlag{Name: "tokens", Category: catInput, Usage: "token `IDS` instead of a prompt: 2,513,88; passes separated by ';' are replayed one by one"},
		&cli.BoolFlag{Name: "chat", Category: catInput, Usage: "put the prompt into the model's chat template"},
		&cli.StringFlag{Name: "dtype", Category: catInput, Value: "auto", Usage: "`TYPE` to compute in: float32, bfloat16, float16, or auto for the checkpoint's"},
		&cli.IntFlag{Name: "max-new-tokens", Category: catInput, Usage: "decode `N` tokens greedily, each captured as a pass of its own"},
		&cli.IntFlag{Name: "level", Category: catScope, Value: 2, Usage: "how much is captured: `N` is 1 for block boundaries, 2 for module outputs, 3 for internals"},
		&cli.StringFlag{Name: "layers", Category: catScope, Usage: "only these `LAYERS`, such as 0-3,7; the run stops after the last one"},
		&cli.StringSliceFlag{Name: "tensors", Category: catScope, Usage: "only names that match `PATTERN`, such as '*.mlp.*' (repeatable)"},
		&cli.StringFlag{Name: "passes", Category: catScope, Usage: "only these forward `PASSES`: 0 is the prefill"},
		&cli.StringFlag{Name: "positions", Category: catScope, Usage: "only the rows of these token `POSITIONS` are written"},
		&cli.StringFlag{Name: "order", Category: catScope, Usage: "a `FILE` with one tensor name per line, in place of TENSOR_ORDER"},
		&cli.StringFlag{Name: "program", Category: catScope, Usage: "a recorded program `FILE` in place of TENSOR_ORDER, or of the one that was recorded with the reference"},
		&cli.StringFlag{Name: "map", Category: catScope, Usage: "a `FILE` that says how the names and layouts of your port's dump map to the order's: tracediff map proposes one"},
		&cli.StringFlag{Name: "weights", Aliases: []string{"weights-from"}, Category: catInput, Usage: "the port's own checkpoint, a `FILE` or a folder, quantised or not: the reference is run, and operations are verified, with these weights"},
		&cli.StringFlag{Name: "dir", Category: catFiles, Value: settings.DefaultDir, Usage: "`DIR` where traces are kept"},
		&cli.StringFlag{Name: "local", Category: catSides, Value: settings.KindGo, Usage: "`RUNNER` of your port: go, a trace FILE as it is, or exec:COMMAND with {prompt}, {tokens}, {model}, {order}, {out} filled in"},
		&cli.StringFlag{Name: "reference", Category: catSides, Value: "auto", Usage: "`RUNNER` of the reference: a trace FILE as it is, exec:COMMAND, go for the float64 walk, hf for transformers, or auto for the best available"},
		&cli.StringFlag{Name: "python", Category: catSides, Value: "python3", Usage: "Python `INTERPRETER` that has torch and transformers, for --reference hf"},
		&cli.BoolFlag{Name: "gate", Category: catSides, Usage: "the reference has to be transformers: the float64 walk is refused unless --reference go asks for it (implied by CI=true; --gate=false turns it off)"},
	}, append(talkFlags(), debugFlag())...)
}

// talkFlags control the remarks beyond the result.
func talkFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Category: catFiles, Usage: "print only the verdict: no report, no progress and no notes"},
		&cli.BoolFlag{Name: "verbose", Category: catFiles, Usage: "print the numbers that the verdict rests on, which files are used and how long each step takes"},
	}
}

func checkTalk(c *cli.Context) error {
	if c.Bool("quiet") && c.Bool("verbose") {
		return hint.Add(errors.New("--quiet and --verbose were both given"), "leave one of them out")
	}
	return nil
}

// inputFlags name the input. A command line with one of these flags ignores the last settings. Without them, the
// settings of the last capture apply, and typed flags change the settings.
var inputFlags = []string{"model", "prompt", "tokens"}

func namesInput(c *cli.Context) bool {
	return slices.ContainsFunc(inputFlags, c.IsSet)
}

// readFlags overrides s with the typed flags.
func readFlags(c *cli.Context, s settings.Settings) (settings.Settings, error) {
	var errs []error
	ranges := func(name string, into *capture.Ranges) {
		if !c.IsSet(name) {
			return
		}
		r, err := capture.ParseRanges(c.String(name))
		if err != nil {
			errs = append(errs, hint.Add(fmt.Errorf("--%s: %w", name, err), rangesHint))
		}
		*into = r
	}
	if err := cmp.Or(checkTalk(c), checkDebug(c)); err != nil {
		return s, err
	}
	for _, name := range []string{"model", "tokens", "order", "program", "map", "weights", "dir", "local", "reference", "python"} {
		if c.IsSet(name) && c.String(name) == "" {
			return s, hint.Add(fmt.Errorf("--%s is empty", name), "leave the flag out for the default")
		}
	}
	errs = append(errs, checkPython(c), readSources(c, &s))
	texts := map[string]*string{"model": &s.Model, "tokens": &s.Tokens, "dtype": &s.DType, "order": &s.Order, "program": &s.Program, "map": &s.Map, "weights": &s.Weights, "python": &s.Python}
	for name, into := range texts {
		if c.IsSet(name) {
			*into = c.String(name)
		}
	}
	if c.IsSet("prompt") {
		text := c.String("prompt")
		s.Prompt = &text
	}
	if c.IsSet("chat") {
		s.Chat = c.Bool("chat")
	}
	if c.IsSet("max-new-tokens") {
		s.NewTokens = c.Int("max-new-tokens")
	}
	if c.IsSet("level") {
		s.Scope.Level = c.Int("level")
	}
	if c.IsSet("tensors") {
		s.Scope.Tensors = c.StringSlice("tensors")
	}
	ranges("layers", &s.Scope.Layers)
	ranges("passes", &s.Scope.Passes)
	ranges("positions", &s.Scope.Positions)
	errs = append(errs, s.Check())
	for _, err := range errs {
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// rangesHint is the hint for a text that is not a list of numbers and ranges.
const rangesHint = "numbers count from 0: 3 is one, 0-3,7 are five, and 5- is everything from 5 on"

// checkPython returns an error for an interpreter that is not a program, even if no interpreter runs.
func checkPython(c *cli.Context) error {
	path := c.String("python")
	if path == filepath.Base(path) { // a name, to find in PATH
		return nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return hint.Add(fmt.Errorf("--python: %s is %s, not a program", path, files.Kind(info.Mode())), "name the interpreter itself, such as venv/bin/python")
	}
	return nil
}

// readSources overrides s with --local and --reference. The token ids of a trace file are the input, unless
// --prompt or --tokens is typed.
func readSources(c *cli.Context, s *settings.Settings) error {
	for name, into := range map[string]*settings.Source{"local": &s.Local, "reference": &s.Reference} {
		if !c.IsSet(name) {
			continue
		}
		var err error
		if *into, err = settings.ParseSource(name, c.String(name)); err != nil {
			return err
		}
		if into.Kind == settings.KindFile && !c.IsSet("prompt") && !c.IsSet("tokens") {
			s.Prompt, s.Tokens, s.Chat, s.NewTokens = nil, "", false, 0
		}
	}
	return nil
}

// gated reports whether only transformers may be the reference: in tracediff gate, by --gate, or in a CI.
func gated(c *cli.Context) bool {
	if c.Command.Name == gateName {
		return true
	}
	if c.IsSet("gate") {
		return c.Bool("gate")
	}
	return inCI()
}

// inCI reports whether a CI runs the program. Most CIs set CI to true, some to 1 or to their name.
func inCI() bool {
	ci := os.Getenv("CI")
	return ci != "" && ci != "0" && ci != "false"
}

// fusedFlag declares that your port computes attention in one kernel.
func fusedFlag() cli.Flag {
	return &cli.BoolFlag{Name: "fused-attention", Category: catSides, Usage: "your port computes attention in one kernel: missing rotated queries, scores and probabilities are not a gap"}
}
