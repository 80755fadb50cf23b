package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/github"
	"github.com/tracediff/tracediff/compare/report/html"
	"github.com/tracediff/tracediff/compare/report/junit"
	"github.com/tracediff/tracediff/compare/report/sarif"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// reportFlags control the format and the files of a result.
func reportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Category: catReport, Value: "text", Usage: "`FORMAT` of standard output: text, json, jsonl, junit, sarif or html"},
		&cli.StringSliceFlag{Name: "report", Category: catReport, Usage: "also write `FORMAT=FILE`, such as html=report.html; github writes annotations and a summary of the step (repeatable)"},
		&cli.BoolFlag{Name: "table", Category: catReport, Usage: "print every entry with all its numbers, and all of --verbose"},
		&cli.StringFlag{Name: "color", Category: catReport, Value: "auto", Usage: "`WHEN` to colour: auto (on a terminal, unless NO_COLOR is set), always, never"},
	}
}

// formats write a document, by the name of the format.
var formats = map[string]func(io.Writer, *words.Report, text.Style) error{
	"text":  texts,
	"json":  func(w io.Writer, d *words.Report, _ text.Style) error { return report.JSON(w, d.Document) },
	"jsonl": func(w io.Writer, d *words.Report, _ text.Style) error { return report.JSONLines(w, d.Document) },
	"junit": func(w io.Writer, d *words.Report, _ text.Style) error { return junit.Write(w, d) },
	"sarif": func(w io.Writer, d *words.Report, _ text.Style) error { return sarif.Write(w, d) },
	"html":  func(w io.Writer, d *words.Report, _ text.Style) error { return html.Write(w, d) },
}

// htmlFormat is the format with pictures.
const htmlFormat = "html"

// outputs are the places for a result: standard output in one format, and any number of files.
type outputs struct {
	format string
	style  text.Style // of standard output
	plain  text.Style // of files
	files  []outputFile
	spared []string // paths that the command reads or writes
	github bool     // annotations are printed
	about  string   // the file for annotations; empty for githubFile
	since  string   // how the first divergence moved since the last comparison
}

type outputFile struct {
	format string
	to     *files.Target // nil for a stream of this process
	stream io.Writer
	path   string

	refused bool // not written, which is the error of the command
}

// readOutputs reads the flags before any run: an hour of work must not end at a misspelt format.
func readOutputs(c *cli.Context) (*outputs, error) {
	style, err := colors(c)
	if err != nil {
		return nil, err
	}
	o := &outputs{format: c.String("format"), style: style, plain: text.NewStyle(false)}
	if err := o.view(c); err != nil {
		return nil, err
	}
	if err := checkValue(c, "format"); err != nil {
		return nil, err
	}
	known := func(format string) bool { return formats[format] != nil }
	if err := o.read(c, known, "such as junit=out.xml; a format is text, json, jsonl, junit, sarif, html or github"); err != nil {
		return nil, err
	}
	return o, o.open(c)
}

// read reads --report. For an unknown format it returns an error with next as the hint.
func (o *outputs) read(c *cli.Context, known func(format string) bool, next string) error {
	for _, value := range c.StringSlice("report") {
		format, path, named := strings.Cut(value, "=")
		var err error
		switch {
		case format == githubFormat:
			err = o.addGitHub(c, path, named)
		case !known(format) || path == "":
			err = hint.Add(fmt.Errorf("--report is %q", value), "want FORMAT=FILE, "+next)
		default:
			err = o.add(c, format, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pictures is the set for the pictures of a comparison; nil if no report shows pictures.
func (o *outputs) pictures() *picture.Set {
	if o.format != htmlFormat && !slices.ContainsFunc(o.files, func(f outputFile) bool { return f.format == htmlFormat }) {
		return nil
	}
	return &picture.Set{}
}

// view reads the flags for the length of a text report. --quiet shortens only standard output: a text report in a file is
// whole.
func (o *outputs) view(c *cli.Context) error {
	v := text.Short
	if c.Bool("verbose") {
		v, o.style, o.plain = text.Evidence, o.style.WithPower(), o.plain.WithPower()
	}
	if c.Bool("table") {
		v = text.Everything
	}
	o.plain = o.plain.WithView(v)
	if c.Bool("quiet") {
		if v == text.Everything {
			return hint.Add(errors.New("--quiet and --table were both given"), "leave one of them out")
		}
		v = text.VerdictOnly
	}
	o.style = o.style.WithView(v)
	return nil
}

// shows reports whether some output has more than the verdict.
func (o *outputs) shows() bool {
	return o.format != "text" || !o.style.Terse() || len(o.files) > 0
}

// publish writes the outcome of a command to all outputs, and returns the error of the command. It writes files first,
// since the reader of standard output may stop. The error of a single comparison is not part of standard output: main
// prints it like every error.
func (o *outputs) publish(c *cli.Context, d *report.Document, failed error) error {
	d.About = cmp.Or(o.about, githubFile(c))
	said := words.New(d)
	unwritten := o.writeFiles(c, said)
	if err := o.print(c, said); err != nil {
		return hint.Also(err, unwritten)
	}
	switch {
	case errors.As(failed, new(unusable)) && unwritten != nil: // printed already
		return unwritten
	case failed != nil:
		return hint.Also(failed, unwritten)
	case unwritten != nil:
		return unwritten
	case d.Exit != exitMatch:
		return mismatch{}
	}
	return nil
}

// writeFiles writes the report files.
func (o *outputs) writeFiles(c *cli.Context, d *words.Report) error {
	unwritten := o.writeEach(c, func(w io.Writer, format string) error { return formats[format](w, d, o.plain) })
	return hint.Also(unwritten, o.writeSummary(func(w io.Writer, room int) error { return github.Summary(w, d, room) }))
}

// writeEach writes each report file in its format. The error names each file that could not be written.
func (o *outputs) writeEach(c *cli.Context, write func(w io.Writer, format string) error) (unwritten error) {
	for i := range o.files {
		f := &o.files[i]
		if f.refused || f.format == githubFormat {
			continue
		}
		var b bytes.Buffer
		err := write(&b, f.format)
		if err == nil {
			err = o.write(f, b.Bytes())
		}
		if err != nil {
			unwritten = hint.Also(unwritten, hint.Add(fmt.Errorf("writing the report: %w", advice.OnPath(f.path, err)), "can files be created in the folder of "+f.path+"?"))
			continue
		}
		detail(c, "report %s, %s", f.path, amount.Bytes(int64(b.Len())))
	}
	return unwritten
}

// print writes the result to standard output, and then the annotations.
func (o *outputs) print(c *cli.Context, d *words.Report) error {
	if !unheard(o.format, d.Document) {
		if err := formats[o.format](c.App.Writer, d, o.style); err != nil {
			return err
		}
	}
	return o.annotations(c, func(w io.Writer) error {
		return github.Annotations(w, d, d.About)
	})
}

// unheard reports whether a text report is empty on standard output: the error of a single comparison goes to standard
// error.
func unheard(format string, d *report.Document) bool {
	return format == "text" && len(d.Runs) == 1 && d.Runs[0].Name == "" && d.Runs[0].Result == nil
}

// texts writes run after run, a named run under its name.
func texts(w io.Writer, d *words.Report, style text.Style) error {
	if d.Weights != nil {
		heading := "== weights\n"
		if style.Terse() {
			heading = "weights: "
		}
		fmt.Fprint(w, heading)
		if err := text.Weights(w, d.Weights, style); err != nil {
			return err
		}
		if !style.Terse() {
			fmt.Fprintln(w)
		}
	}
	for i, r := range d.Runs {
		switch {
		case r.Name == "":
		case style.Terse() && r.Result == nil:
			fmt.Fprintf(w, "%s: not compared: %s\n", plain.Text(r.Name), plain.Text(r.Error))
		case style.Terse():
			fmt.Fprintf(w, "%s: ", plain.Text(r.Name))
		case i > 0:
			fmt.Fprintf(w, "\n== %s\n", plain.Text(r.Name))
		default:
			fmt.Fprintf(w, "== %s\n", plain.Text(r.Name))
		}
		if r.Result == nil {
			if !style.Terse() {
				if err := text.NotCompared(w, &r); err != nil {
					return err
				}
			}
			continue
		}
		if err := text.Write(w, r.Words, style.WithSince(r.Since)); err != nil {
			return err
		}
	}
	if len(d.Runs) == 0 || d.Runs[0].Name == "" {
		return nil
	}
	if !style.Terse() {
		fmt.Fprintln(w)
		if err := text.Sight(w, d.Sight, style); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, summary(d.Document))
	return err
}

// newRun is a comparison, or its error, for reports.
func newRun(name string, result *compare.Result, err error) report.Run {
	if err != nil {
		return report.Run{Name: name, Exit: exitUnusable, Error: oneLine(err.Error()), Hint: oneLine(advice.Hint(err))}
	}
	return report.Run{Name: name, Exit: result.ExitCode(), Result: result}
}
