package main

import (
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/html"
	"github.com/tracediff/tracediff/compare/report/text"
)

// checkFormats write the red flags of a trace to a file.
var checkFormats = map[string]func(io.Writer, *cli.Context, *capture.Trace, *redflag.Result) error{
	"text": func(w io.Writer, _ *cli.Context, _ *capture.Trace, r *redflag.Result) error {
		return text.Check(w, r, text.NewStyle(false))
	},
	"json": func(w io.Writer, _ *cli.Context, _ *capture.Trace, r *redflag.Result) error {
		return report.CheckJSON(w, version(), r)
	},
	htmlFormat: checkHTML,
}

// checkReports reads --report of check, before any file is read.
func checkReports(c *cli.Context) (*outputs, error) {
	o := &outputs{format: c.String("format"), plain: text.NewStyle(false)}
	known := func(format string) bool { return checkFormats[format] != nil }
	if err := o.read(c, known, "such as html=flags.html; a format is text, json, html or github"); err != nil {
		return nil, err
	}
	return o, o.open(c)
}

// checkHTML draws every tensor of the trace; tensors with a flag are large.
func checkHTML(w io.Writer, c *cli.Context, t *capture.Trace, r *redflag.Result) error {
	odd := func(key string) bool {
		return slices.ContainsFunc(r.Flags, func(f redflag.Flag) bool {
			return capture.Key(f.Pass, f.Entry, 0) == key || slices.Contains(f.Also, key)
		})
	}
	list, err := checkedOrder(c, t) // without an order, the axes of tensors are not known
	if err != nil {
		return err
	}
	var set picture.Set
	tensors, err := set.Trace(c.Context, t, list, odd)
	if err != nil {
		return err
	}
	return html.Check(w, version(), r, t.Manifest(), tensors, &set)
}
