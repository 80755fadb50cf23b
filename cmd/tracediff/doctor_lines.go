package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/plain"
)

// linePrinter returns the function that prints lines in the format of --format, and in colour where --color allows it.
func linePrinter(c *cli.Context) (func(io.Writer, []health.Line) error, error) {
	on, err := inColour(c)
	if err := cmp.Or(err, checkValue(c, "format")); err != nil {
		return nil, err
	}
	if c.String("format") == "json" {
		return printLinesJSON, nil
	}
	return func(w io.Writer, lines []health.Line) error { return printLines(w, lines, on) }, nil
}

// tally counts lines by status.
type tally struct {
	OK       int `json:"ok"`
	Warnings int `json:"warnings"`
	Errors   int `json:"errors"`
	Skipped  int `json:"skipped"`
}

func tallyOf(lines []health.Line) tally {
	var t tally
	for _, l := range lines {
		switch l.Status {
		case health.OK:
			t.OK++
		case health.Warning:
			t.Warnings++
		case health.Error:
			t.Errors++
		case health.Skipped:
			t.Skipped++
		}
	}
	return t
}

// printLines prints each line, wrapped at the width of a page. Status and section come first, so that a search finds them; the hint
// follows below.
func printLines(w io.Writer, lines []health.Line, coloured bool) error {
	paint := map[health.Status]*color.Color{
		health.OK: color.New(color.FgGreen), health.Warning: color.New(color.FgYellow), health.Error: color.New(color.FgRed, color.Bold),
	}
	for _, l := range lines {
		status := fmt.Sprintf("%-7s", l.Status)
		if c := paint[l.Status]; coloured && c != nil {
			c.EnableColor()
			status = c.Sprint(status)
		}
		const indent = 18
		// The text is wrapped with a blank status: codes of colour would count as columns.
		what := plain.Wrap(fmt.Sprintf("%-7s  %-7s  %s", "", l.Section, l.What), plain.Columns, indent)
		if _, err := fmt.Fprintf(w, "%s%s\n", status, what[7:]); err != nil {
			return err
		}
		if l.Hint != "" {
			if _, err := io.WriteString(w, hintLines(l, indent)); err != nil {
				return err
			}
		}
	}
	t := tallyOf(lines)
	text := fmt.Sprintf("\n%d ok, %s, %s", t.OK, amount.Of(t.Warnings, "warning"), amount.Of(t.Errors, "error"))
	if t.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", t.Skipped)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// hintLines is the hint of a line, indented. A command at the end can be copied: if the command does not fit into the line of the
// hint, it starts a new line, and a broken command is still one command for a shell.
func hintLines(l health.Line, indent int) string {
	const label, goesOn = "hint: ", ` \`
	margin := strings.Repeat(" ", indent+len(label))
	text := strings.TrimSuffix(l.Hint, strings.Join(l.Command, " "))
	out := plain.Wrap(margin[:indent]+label+text, plain.Columns, len(margin))
	if len(l.Command) == 0 || text == l.Hint { // if equal, the hint does not end with the command: a very long hint was cut
		return out + "\n"
	}
	if width := utf8.RuneCountInString(out + strings.Join(l.Command, " ")); text != "" && width > plain.Columns {
		out = strings.TrimRight(out, " ") + "\n" + margin
	}
	column := utf8.RuneCountInString(out[strings.LastIndexByte(out, '\n')+1:])
	for i, word := range l.Command {
		switch n := utf8.RuneCountInString(word); {
		case i == 0:
		case column+1+n+len(goesOn) > plain.Columns:
			out += goesOn + "\n" + margin
			column = len(margin)
		default:
			out += " "
			column++
		}
		out += word
		column += utf8.RuneCountInString(word)
	}
	return out + "\n"
}

// printLinesJSON prints one object: the lines, and the number of lines with each status.
func printLinesJSON(w io.Writer, lines []health.Line) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(struct {
		Lines []health.Line `json:"lines"`
		tally
	}{lines, tallyOf(lines)})
}
