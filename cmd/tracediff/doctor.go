package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session/doctor"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
)

func doctorCommand() *cli.Command {
	const catMachine = "MACHINE"
	return &cli.Command{
		Name:  "doctor",
		Usage: "check the input, the weights, the settings and the machine, before any tensor is compared",
		Description: `A checklist, in the order in which to look: the machine; the model's configuration; the token ids with their texts, BOS,
chat template, vocabulary; the weights: all there, none cut short, none untrained; the generation settings; an example, end to
end: the built-in model against transformers, then one forward call of this model. Then Python with torch and transformers, the
disk space that traces of the input take, and the files of earlier captures. Every line is ok, a warning, an error or skipped,
with a next step. If no input is named, the input of the last capture is used, as in "tracediff compare". A model of a few GiB
takes seconds.
Exit status: 0 no error, 1 an error, 2 the command cannot be used.

Examples:
  tracediff doctor
  tracediff doctor --model ./gemma-3n-E2B --prompt "Hello world" --level 3
  tracediff doctor --model ./gemma-3n-E2B --weights port.safetensors
  tracediff doctor --python ~/venv/bin/python --format json
  tracediff doctor --clean`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` as Hugging Face writes it (default: the built-in model, a tiny Gemma 3n)"},
			&cli.StringFlag{Name: "prompt", Category: catInput, Usage: "`TEXT` of the input (default: the single token \"What\")"},
			&cli.StringFlag{Name: "tokens", Category: catInput, Usage: "token `IDS` instead of a prompt: 2,513,88; passes separated by ';'"},
			&cli.StringFlag{Name: "program", Category: catInput, Usage: "the recorded program `FILE` of a model that no order describes"},
			&cli.StringFlag{Name: "weights", Category: catInput, Usage: "the port's checkpoint, a `FILE` or a folder: it is compared with the model's, as tracediff weights does"},
			&cli.StringFlag{Name: "map", Category: catInput, Usage: "a `FILE` whose table [weights] has the names and layouts of the port's checkpoint"},
			&cli.StringFlag{Name: "dtype", Category: catInput, Value: "auto", Usage: "`TYPE` to compute in: float32, bfloat16, float16, or auto for the checkpoint's"},
			&cli.BoolFlag{Name: "chat", Category: catInput, Usage: "put the prompt into the model's chat template"},
			&cli.IntFlag{Name: "max-new-tokens", Category: catInput, Usage: "decode `N` tokens, each a pass of its own"},
			&cli.IntFlag{Name: "level", Category: catScope, Value: 2, Usage: "how much would be captured: `N` is 1 for block boundaries, 2 for module outputs, 3 for internals"},
			&cli.StringFlag{Name: "dir", Category: catFiles, Value: settings.DefaultDir, Usage: "`DIR` where traces are kept"},
			&cli.BoolFlag{Name: "clean", Category: catFiles, Usage: "remove traces, files of failed runs and everything else that tracediff has put into DIR, except the stored references"},
			&cli.BoolFlag{Name: "full", Category: catFiles, Usage: "look at every value of every weight, show every id, and run the model however long it takes"},
			&cli.StringFlag{Name: "python", Category: catMachine, Value: "python3", Usage: "the Python to check: a `PATH` or a name"},
			&cli.DurationFlag{Name: "timeout", Category: catMachine, Value: time.Minute, Usage: "kill Python after this `TIME`: importing torch from a network disk can take long"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: text, or json"},
			&cli.StringFlag{Name: "color", Value: "auto", Usage: "`WHEN`: auto, always or never"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			err := examine(c)
			return hint.Add(err, doctor.Hint(err))
		},
	}
}

// examine runs the checks and prints their lines.
func examine(c *cli.Context) error {
	p, err := newPatient(c)
	if err != nil {
		return err
	}
	print, err := linePrinter(c)
	if err != nil {
		return err
	}
	checks := p.Checks()
	if c.Bool("clean") {
		checks = []health.Check{{Section: "store", Run: p.Clean}}
	}
	before, done := announce(c)
	lines, err := health.Run(c.Context, checks, before)
	done()
	if err != nil {
		return errors.New("interrupted")
	}
	if err := print(c.App.Writer, lines); err != nil {
		return err
	}
	for _, l := range lines {
		if l.Status == health.Error {
			return mismatch{} // exit status 1; the errors are printed
		}
	}
	return nil
}

// newPatient reads the flags. A wrong flag is an error of usage, not a line.
func newPatient(c *cli.Context) (*doctor.Patient, error) {
	s, err := settings.SettingsFor(c.String("dir"), namesInput(c))
	if err != nil {
		s = settings.Defaults() // a check prints a line about settings that cannot be read
	}
	if s, err = readFlags(c, s); err != nil {
		return nil, err
	}
	if c.Duration("timeout") <= 0 {
		return nil, fmt.Errorf("--timeout is %v, want a time such as 60s", c.Duration("timeout"))
	}
	if s.Tokens != "" {
		if _, err := job.ParseTokens(s.Tokens); err != nil {
			return nil, err
		}
	}
	p := &doctor.Patient{Settings: s, Dir: c.String("dir"), Port: c.String("weights"), Full: c.Bool("full"), Version: version(), Example: runExample}
	p.Python = health.Interpreter{Path: cmp.Or(s.Python, c.String("python")), Typed: s.Python != "", Timeout: c.Duration("timeout")}
	p.Python.Command = plain.QuoteShell(p.Python.Path)
	p.Python.Pins, err = doctor.Pins()
	return p, err
}

// runExample runs this program like a person and returns its output.
func runExample(ctx context.Context, words ...string) ([]byte, error) {
	var out bytes.Buffer
	ctx = context.WithValue(ctx, verdictAlone{}, true)
	err := newApp(strings.NewReader(""), &out, io.Discard).RunContext(ctx, append([]string{"tracediff"}, words...))
	if errors.As(err, new(mismatch)) {
		err = nil // the output has the verdict
	}
	return out.Bytes(), err
}

// verdictAlone is the key of a context in which only the verdict and the counts of a result are read.
type verdictAlone struct{}

// slow says why a check takes time.
var slow = map[string]string{
	"weights": " (a sample of each; with --full every one is read)",
	"example": " (the model runs: some seconds where its weights have GiB)",
	"python":  " (torch takes seconds to import)",
}

// announce shows the current check, only on a terminal.
func announce(c *cli.Context) (before func(section string), done func()) {
	f, ok := c.App.ErrWriter.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	const clearLine = "\r\x1b[K"
	return func(section string) { fmt.Fprintf(f, "%slooking at: %s%s ...", clearLine, section, slow[section]) }, func() { fmt.Fprint(f, clearLine) }
}
