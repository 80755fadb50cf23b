package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/html"
	"github.com/tracediff/tracediff/compare/report/junit"
	"github.com/tracediff/tracediff/compare/report/text"
	compared "github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/portweights"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

func weightsCommand() *cli.Command {
	return &cli.Command{
		Name:      "weights",
		Usage:     "compare the port's checkpoint with the original, tensor by tensor",
		ArgsUsage: "LOCAL",
		Description: `LOCAL is the port's checkpoint: safetensors (one file, or shards with their index), a torch.save file, npz, GGUF, or a folder
with one of them. Each tensor is EQUAL, CAST (to which format), QUANTISED (within its format's error), or wrong, with the mistake:
transposed, rows in another order, 1+w, another layer's. Nothing is run. Memory does not grow with the checkpoint.
In GPTQ and AWQ files a norm may be divided by factors, and the columns after it multiplied by the same factors: this norm is RESCALED,
which is right. Codes whose errors are larger than usual and have no known mistake are UNIDENTIFIED: neither right nor wrong, and the
comparison is INCOMPLETE. Names are the original's, with or without the prefix of a framework, or the names of GGUF files. The table
[weights] of a map maps other names and layouts (docs/weights.md).

Exit status: 0 every tensor is right, 1 one is wrong, missing or UNIDENTIFIED, 2 a file cannot be used.

Examples:
  tracediff weights port.safetensors --model ./Llama-3.2-1B
  tracediff weights ./converted --model ./gemma-3-4b --map map.toml
  tracediff weights model.Q4_K_M.gguf --model ./Qwen3-0.6B --report junit=weights.xml`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "model", Category: catInput, Usage: "the original: checkpoint `DIR` as Hugging Face writes it"},
			&cli.StringFlag{Name: "map", Category: catScope, Usage: "a `FILE` whose table [weights] says how the names and layouts of LOCAL become the original's"},
			&cli.StringFlag{Name: "format", Category: catReport, Value: "text", Usage: "`FORMAT` of standard output: text, json, junit or html"},
			&cli.StringSliceFlag{Name: "report", Category: catReport, Usage: "also write `FORMAT=FILE`, such as html=weights.html (repeatable)"},
			&cli.StringFlag{Name: "color", Category: catReport, Value: "auto", Usage: "`WHEN` to colour: auto, always or never"},
		}, talkFlags()...),
		Action: compareWeights,
	}
}

// weightFormats write a comparison of weights.
var weightFormats = map[string]func(io.Writer, *compared.Result, text.Style) error{
	"text": text.Weights,
	"json": func(w io.Writer, r *compared.Result, _ text.Style) error {
		return report.WeightsJSON(w, version(), r)
	},
	"junit": func(w io.Writer, r *compared.Result, _ text.Style) error { return junit.Weights(w, r) },
	htmlFormat: func(w io.Writer, r *compared.Result, _ text.Style) error {
		return html.Weights(w, version(), r)
	},
}

func compareWeights(c *cli.Context) error {
	if c.NArg() != 1 {
		return hint.Add(fmt.Errorf("weights takes one checkpoint, not %d arguments", c.NArg()), "tracediff weights LOCAL --model DIR")
	}
	if err := checkTalk(c); err != nil {
		return err
	}
	style, err := colors(c)
	if err != nil {
		return err
	}
	if c.Bool("quiet") {
		style = style.WithView(text.VerdictOnly)
	}
	if err := checkValue(c, "format"); err != nil {
		return err
	}
	out := &outputs{format: c.String("format"), plain: text.NewStyle(false)}
	known := func(format string) bool { return weightFormats[format] != nil }
	if err := out.read(c, known, "such as html=weights.html; a format is text, json, junit or html"); err != nil {
		return err
	}
	if out.github {
		return hint.Add(fmt.Errorf("--report is %q", githubFormat), "want text, json, junit or html")
	}
	if err := out.spare(tracefolder.ModelFiles(c.Args().First())...); err != nil {
		return err
	}
	if err := out.open(c); err != nil {
		return err
	}
	defer out.close()
	r, err := weightsOf(c, settings.AskedWeights{Local: c.Args().First(), Model: c.String("model"), Map: c.String("map")})
	if err != nil {
		return err
	}
	if err := out.writeEach(c, func(w io.Writer, format string) error { return weightFormats[format](w, r, out.plain) }); err != nil {
		return err
	}
	if err := weightFormats[out.format](c.App.Writer, r, style); err != nil {
		return err
	}
	if !r.Right() {
		return mismatch{}
	}
	return nil
}

// weightsOf compares weights, and shows its progress.
func weightsOf(c *cli.Context, a settings.AskedWeights) (*compared.Result, error) {
	const mega = 1e6
	p := newProgress(c, "comparing the weights", "MB", nil)
	defer p.Done()
	a.Progress = func(done, all int64) { p.Step(0, 1, int(done/mega), max(1, int(all/mega))) }
	return portweights.Compare(c.Context, a)
}
