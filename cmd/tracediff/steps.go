package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// printSteps prints the program of each entry of a list. The programs are from the whole order of the model, since the list
// may lack inputs of its entries.
func printSteps(c *cli.Context, list *order.List) error {
	full, err := orders.OfModel(c.String("model"), "")
	if err != nil {
		return err
	}
	programs := make([][]program.Line, len(list.Entries))
	for i := range list.Entries {
		if programs[i], err = full.Listing(list.Entries[i].Name); err != nil {
			return hint.Add(fmt.Errorf("--steps: %w", err), "steps are known for the names that tracediff order --format text prints")
		}
	}
	switch format := c.String("format"); {
	case format == "json":
		return stepsJSON(c.App.Writer, list, programs)
	case format == "text", !c.IsSet("format"):
		return stepsText(c.App.Writer, list, programs)
	default:
		return fmt.Errorf("--format is %q, want json or text with --steps", format)
	}
}

// stepsJSON writes the list in the same form as without --steps, with a field "steps" in every entry.
func stepsJSON(w io.Writer, list *order.List, programs [][]program.Line) error {
	whole, err := json.Marshal(list)
	if err != nil {
		return err
	}
	var out struct {
		Version json.RawMessage   `json:"version"`
		Config  json.RawMessage   `json:"config,omitempty"`
		Entries []json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(whole, &out); err != nil {
		return err
	}
	for i, lines := range programs {
		if lines == nil { // an argument of the model
			continue
		}
		steps, err := json.Marshal(lines)
		if err != nil {
			return err
		}
		entry := out.Entries[i]
		out.Entries[i] = fmt.Appendf(entry[:len(entry)-1:len(entry)-1], `,"steps":%s}`, steps)
	}
	return json.NewEncoder(w).Encode(out)
}

// stepsLegend explains the listing.
const stepsLegend = `# A pass of T tokens after a first pass of P; S.full and S.sliding are the keys that such layers see.
# Columns: step, primitive, operands, shape, what transformers rounds to (R is the model's dtype; empty: float32), and the
# steps that are sites: where another engine may round, or take another way. i, j, k, l ... are the axes of what is read.
`

func stepsText(w io.Writer, list *order.List, programs [][]program.Line) error {
	if _, err := fmt.Fprint(w, stepsLegend); err != nil {
		return err
	}
	for i := range list.Entries {
		e := &list.Entries[i]
		constants, err := op.Marshal(e.Op)
		if err != nil {
			return err
		}
		title := fmt.Sprintf("\n%s = %s", e.Name, e.Op.Kind())
		if text := strings.TrimPrefix(string(constants), fmt.Sprintf(`{"kind":%q`, e.Op.Kind())); text != "}" {
			title += " {" + strings.TrimPrefix(text, ",")
		}
		if _, err := fmt.Fprintln(w, title); err != nil {
			return err
		}
		if programs[i] == nil {
			if _, err := fmt.Fprintln(w, "  given by the caller"); err != nil {
				return err
			}
			continue
		}
		if err := stepsTable(w, programs[i]); err != nil {
			return err
		}
	}
	return nil
}

func stepsTable(w io.Writer, steps []program.Line) error {
	var b bytes.Buffer
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range steps {
		site := ""
		if s.Site {
			site = "site"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Prim, strings.Join(s.Args, ", "), strings.Join(s.Shape, " "), s.Round, site)
	}
	table.Flush()
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
