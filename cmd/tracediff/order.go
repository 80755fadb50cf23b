package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter/tw"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

func orderCommand() *cli.Command {
	return &cli.Command{
		Name:  "order",
		Usage: "print TENSOR_ORDER: every named tensor in execution order, with the operation that makes it",
		Description: `compare walks through this list. With --format json, python -m tracediff.hf reads it; with --format text it is a list of names to edit,
for --order. For a model without an order, --record stores what transformers computes.

Examples:
  tracediff order --level 1
  tracediff order --model ./gemma-3n-E2B --format json > order.json
  tracediff order --format text > names.txt
  tracediff order --model ./gemma-3n-E2B --layers 0 --steps
  tracediff order --record --model ./Mistral-7B --tokens 1,733,16289`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Usage: "checkpoint `DIR`; only its config.json is read (default: the built-in model, a tiny Gemma 3n)"},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "`FORMAT`: table, json, or text for only the names"},
			&cli.IntFlag{Name: "level", Value: 3, Usage: "up to level `N`: 1 block boundaries, 2 module outputs, 3 internals"},
			&cli.StringFlag{Name: "layers", Usage: "only these `LAYERS`, such as 0-3,7, and what comes before them"},
			&cli.StringFlag{Name: "order", Usage: "a `FILE` with one tensor name per line, in place of TENSOR_ORDER"},
			&cli.StringFlag{Name: "program", Usage: "a recorded program, `FILE`.program.json: its tensors, and with --steps every operation between them"},
			&cli.BoolFlag{Name: "record", Usage: "record the program of a model without an order, as transformers runs it, and store it with the reference"},
			&cli.StringFlag{Name: "prompt", Category: catRecord, Usage: "`TEXT` to run"},
			&cli.StringFlag{Name: "tokens", Category: catRecord, Usage: "token `IDS` to run instead of a prompt: 2,513,88; passes separated by ';'"},
			&cli.BoolFlag{Name: "chat", Category: catRecord, Usage: "put the prompt into the model's chat template"},
			&cli.IntFlag{Name: "max-new-tokens", Category: catRecord, Usage: "decode `N` tokens greedily, each a pass of its own"},
			&cli.StringFlag{Name: "dtype", Category: catRecord, Value: "auto", Usage: "`TYPE` to compute in: float32, bfloat16, float16, or auto for the checkpoint's"},
			&cli.StringFlag{Name: "dir", Category: catRecord, Value: settings.DefaultDir, Usage: "`DIR` where traces are kept"},
			&cli.StringFlag{Name: "python", Category: catRecord, Value: "python3", Usage: "Python `INTERPRETER` that has torch and transformers"},
			&cli.BoolFlag{Name: "steps", Usage: "print the steps of each operation, and where transformers rounds"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return printOrder(c)
		},
	}
}

func printOrder(c *cli.Context) error {
	layers, err := capture.ParseRanges(c.String("layers"))
	if err != nil {
		return hint.Add(fmt.Errorf("--layers: %w", err), rangesHint)
	}
	if err := checkValue(c, "format"); err != nil {
		return err
	}
	level, s := c.Int("level"), settings.Defaults()
	s.Scope.Level = level
	if err := s.Check(); err != nil {
		return err
	}
	switch {
	case c.Bool("record"):
		return recordProgram(c, level, layers)
	case c.IsSet("program"):
		return printProgram(c, level, layers)
	}
	for _, name := range recordFlags {
		if c.IsSet(name) {
			return hint.Add(fmt.Errorf("--%s does not apply without --record", name), "tracediff order --help says what each flag wants")
		}
	}
	list, err := orders.OfModel(c.String("model"), c.String("order"))
	if err != nil {
		return err
	}
	scope := capture.Scope{Level: level, Layers: layers}
	if err := orders.CheckScope(scope, list); err != nil {
		return err
	}
	list = list.Keep(scope.Select(list))
	if c.Bool("steps") {
		return printSteps(c, list)
	}
	return printList(c, list)
}

// recordFlags are the flags for --record, and catRecord is their group.
var recordFlags = []string{"prompt", "tokens", "chat", "max-new-tokens", "dtype", "dir", "python"}

const catRecord = "WITH --record"

// recordProgram records a program and prints its tensors.
func recordProgram(c *cli.Context, level int, layers capture.Ranges) error {
	for _, name := range []string{"program", "order"} {
		if c.IsSet(name) {
			return hint.Add(fmt.Errorf("--%s does not apply with --record", name), "leave one of them out")
		}
	}
	s := settings.Defaults()
	s.Model, s.Tokens, s.Chat, s.DType, s.NewTokens, s.Python = c.String("model"), c.String("tokens"), c.Bool("chat"), c.String("dtype"), c.Int("max-new-tokens"), c.String("python")
	if c.IsSet("prompt") {
		text := c.String("prompt")
		s.Prompt = &text
	}
	if err := s.Check(); err != nil {
		return err
	}
	list, path, err := session.Record(c.Context, env(c, nil), s)
	if err != nil {
		return err
	}
	fmt.Fprintf(notes(c), "note: the program is %s\n", path)
	return printRecorded(c, list, level, layers)
}

// printProgram prints the tensors of a recorded program; with --steps also the tensors that no capture records.
func printProgram(c *cli.Context, level int, layers capture.Ranges) error {
	for _, name := range []string{"model", "order"} {
		if c.IsSet(name) {
			return hint.Add(fmt.Errorf("--%s does not apply with --program", name), "leave one of them out")
		}
	}
	list, err := orders.OfProgram(c.String("program"))
	if err != nil {
		return err
	}
	return printRecorded(c, list, level, layers)
}

func printRecorded(c *cli.Context, list *order.List, level int, layers capture.Ranges) error {
	var kept []*order.Entry
	for i := range list.Entries {
		e := &list.Entries[i]
		if (e.Level <= level || c.Bool("steps")) && (e.Layer < 0 || layers.Has(e.Layer)) {
			kept = append(kept, e)
		}
	}
	return printList(c, list.Keep(kept))
}

func printList(c *cli.Context, list *order.List) error {
	switch c.String("format") {
	case "json":
		return json.NewEncoder(c.App.Writer).Encode(list)
	case "text":
		names := list.Names()
		for i := range names {
			names[i] = plain.Text(names[i])
		}
		_, err := fmt.Fprintln(c.App.Writer, strings.Join(names, "\n"))
		return err
	}
	return orderTable(c.App.Writer, list)
}

func orderTable(w io.Writer, list *order.List) error {
	rows := make([][]string, len(list.Entries))
	for i, e := range list.Entries {
		rows[i] = orderRow(e)
	}
	align := []tw.Align{tw.AlignLeft, tw.AlignLeft, tw.AlignLeft, tw.AlignLeft, tw.AlignLeft, tw.AlignLeft}
	return text.Table(w, align, []string{"name", "level", "shape", "dtype", "op", "transformers"}, rows)
}

func orderRow(e order.Entry) []string {
	if e.Op == nil {
		return []string{plain.Text(e.Name), "", "", "", "", ""}
	}
	shape := make([]string, len(e.Shape))
	for i, d := range e.Shape {
		shape[i] = d.String()
	}
	dtype := e.DType
	if dtype == "" {
		dtype = "model's"
	}
	level, shown := fmt.Sprint(e.Level), e.HF.String()
	if e.Line != "" {
		shown = e.Line
	}
	if e.Level > 3 { // no capture records the tensor
		level = ""
	}
	return []string{e.Name, level, strings.Join(shape, " "), dtype, e.Op.Kind(), shown}
}
