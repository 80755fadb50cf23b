package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/stepdiff"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session/orders"
)

func diffProgramCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff-program",
		Usage:     "compare two recorded programs of one model step by step, without running either",
		ArgsUsage: "A B",
		Description: `A and B are recorded programs, NAME.program.json, or the traces NAME.safetensors next to them: usually one of transformers and
one of a port in PyTorch, recorded with tracediff.recording. For each named tensor, the operations between it and the named
tensors before it are compared. Operations that differ are printed as a diff, with the source lines that compute the tensor.
Layers and passes with the same difference are printed once.

Operations are compared as they were recorded: an operation that computes the same in another way differs. The numbers of a
checkpoint are not compared. A named tensor that only one program has is a difference.

Exit status: 0 all named tensors are computed alike, 1 some are not, 2 they cannot be compared.

Example:
  tracediff diff-program reference.program.json port.program.json --map map.toml`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "map", Usage: "a `FILE` that maps names of B to names of A, as for compare; lines that change a layout are left out"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: text, or json"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return hint.Add(fmt.Errorf("diff-program takes two programs, not %s", amount.Of(c.NArg(), "argument")), "tracediff diff-program A.program.json B.program.json")
			}
			if err := checkValue(c, "format"); err != nil {
				return err
			}
			r, err := orders.DiffPrograms(c.Args().Get(0), c.Args().Get(1), c.String("map"))
			if err != nil {
				return err
			}
			if c.String("format") == "json" {
				err = json.NewEncoder(c.App.Writer).Encode(r)
			} else {
				err = printPrograms(c.App.Writer, c.Args().Slice(), r)
			}
			if err == nil && !r.Same() {
				err = mismatch{} // exit status 1; the differences are printed
			}
			return err
		},
	}
}

// maxNames bounds the printed names that only one program has, and the printed places of a difference.
const maxNames = 4

// printPrograms writes the differences as text.
func printPrograms(w io.Writer, paths []string, r *stepdiff.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A (-): %s\nB (+): %s\n", plain.Text(paths[0]), plain.Text(paths[1]))
	if r.Passes[0] != r.Passes[1] {
		fmt.Fprintf(&b, "A has %d forward calls, B %d\n", r.Passes[0], r.Passes[1])
	}
	for _, only := range []struct {
		side  string
		names []string
	}{{"A", r.OnlyA}, {"B", r.OnlyB}} {
		if len(only.names) > 0 {
			fmt.Fprintf(&b, "only in %s: %s\n", only.side, listed(only.names))
		}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		fmt.Fprintf(&b, "\n%s", plain.Text(g.Name))
		if len(g.Where) > 1 {
			fmt.Fprintf(&b, " (%d tensors: %s)", len(g.Where), listed(g.Where))
		}
		b.WriteByte('\n')
		for k, line := range g.Source {
			if line != "" {
				fmt.Fprintf(&b, "  %c at %s\n", 'A'+k, plain.Text(line))
			}
		}
		for _, step := range g.Steps {
			fmt.Fprintf(&b, "  %s\n", plain.Text(step))
		}
	}
	fmt.Fprintf(&b, "\n%d of %d named tensors are computed differently\n", r.Differ, r.Compared)
	_, err := io.WriteString(w, b.String())
	return err
}

func listed(names []string) string {
	return plain.Text(amount.Some(names, maxNames))
}
