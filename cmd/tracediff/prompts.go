package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/internal/ci"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
)

// mostTokens is the default length of the longest prompt to try.
const mostTokens = 512

func promptsCommand() *cli.Command {
	return &cli.Command{
		Name:  "prompts",
		Usage: "propose a few prompts that together show as many of the usual mistakes as possible",
		Description: `Tries prompts of several lengths, each with a decode step, on the float64 walk of the model, and finds which mistakes of
docs/mistakes.md each prompt would show. Prints a few prompts that together show every mistake that any of them shows; leaving one
out loses a mistake. Random ids are enough: every operation is compared on its own inputs, whatever the text says.

Exit status: 0 every usual mistake is shown, 1 some are not, with what would show them, 2 the model cannot be used.

Examples:
  tracediff prompts --model ./gemma-3n-E2B --max-tokens 64
  tracediff prompts --dtype float32
  tracediff prompts --model ./gemma-3n-E2B --format json`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` as Hugging Face writes it (default: the built-in model, a tiny Gemma 3n)"},
			&cli.StringFlag{Name: "dtype", Category: catInput, Value: "auto", Usage: "`TYPE` to compute in: float32, bfloat16, float16, or auto for the checkpoint's"},
			&cli.IntFlag{Name: "max-tokens", Category: catInput, Value: mostTokens, Usage: "try no prompt of more than `N` tokens"},
			&cli.StringFlag{Name: "format", Category: catReport, Value: "text", Usage: "`FORMAT`: text, or json"},
		}, talkFlags()...),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if err := checkTalk(c); err != nil {
				return err
			}
			return printPrompts(c)
		},
	}
}

func printPrompts(c *cli.Context) error {
	most := c.Int("max-tokens")
	if err := checkValue(c, "format"); err != nil {
		return err
	}
	switch {
	case most < 1:
		return hint.Add(fmt.Errorf("--max-tokens is %d", most), "want 1 or more")
	case c.IsSet("model") && c.String("model") == "":
		return hint.Add(fmt.Errorf("--model is empty"), "leave the flag out for the default")
	}
	s := settings.Defaults()
	s.Model, s.DType = c.String("model"), c.String("dtype")
	if err := s.Check(); err != nil {
		return err
	}
	p, err := ci.Prompts(c.Context, env(c, nil), s, most)
	if err != nil {
		return err
	}
	if c.String("format") == "json" {
		err = report.PromptsJSON(c.App.Writer, version(), p)
	} else {
		err = text.Prompts(c.App.Writer, p, s.Model, text.NewStyle(false))
	}
	if err == nil && p.ExitCode() != exitMatch {
		err = mismatch{}
	}
	return err
}
