package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/github"
	"github.com/tracediff/tracediff/compare/report/html"
	"github.com/tracediff/tracediff/compare/report/junit"
	"github.com/tracediff/tracediff/compare/report/sarif"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
)

// format is one way to write the outcome of a comparison. end is the end of the name of the file.
type format struct {
	end   string
	write func(w io.Writer, d *words.Report) error
}

// textIn is a format of the text report, without a run that has no result.
func textIn(end string, style text.Style) format {
	return format{end, func(w io.Writer, d *words.Report) error {
		for i := range d.Runs {
			if r := &d.Runs[i]; r.Result == nil {
				if err := text.NotCompared(w, r); err != nil {
					return err
				}
			} else if err := text.Write(w, r.Words, style.WithSince("somewhere else")); err != nil {
				return err
			}
		}
		return nil
	}}
}

// renderers are all formats of a comparison.
func renderers() []format {
	plain, coloured := text.NewStyle(false), text.NewStyle(true)
	return []format{
		textIn("short.txt", plain),
		textIn("short.ansi", coloured),
		textIn("evidence.txt", plain.WithView(text.Evidence)),
		textIn("table.txt", plain.WithView(text.Everything).WithPower()),
		textIn("table.ansi", coloured.WithView(text.Everything)),
		textIn("quiet.txt", plain.WithView(text.VerdictOnly)),
		{"screen.txt", func(w io.Writer, d *words.Report) error {
			for i := range d.Runs {
				if doc := d.Runs[i].Words; doc != nil {
					fmt.Fprintf(w, "%s\n%s\n", text.Verdict(doc.Result, plain), strings.Join(text.Screen(doc, plain, 60), "\n"))
				}
			}
			return nil
		}},
		{"jsonl", func(w io.Writer, d *words.Report) error { return report.JSONLines(w, d.Document) }},
		{"junit.xml", junit.Write},
		{"sarif", sarif.Write},
		{"html", html.Write},
		{"annotations.txt", func(w io.Writer, d *words.Report) error { return github.Annotations(w, d, "tracediff.toml") }},
		{"summary.md", func(w io.Writer, d *words.Report) error { return github.Summary(w, d, github.MaxSummary) }},
	}
}

// render writes the JSON reports in folder from to folder out, in each format of [renderers]. No comparison is run again.
func render(from, out string) error {
	paths, err := filepath.Glob(filepath.Join(from, "*.json"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s has no reports", from)
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	for _, path := range paths {
		d, err := documentOf(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if d == nil {
			continue
		}
		said := words.New(d)
		for _, f := range renderers() {
			var b bytes.Buffer
			if err := attempt(f, &b, said); err != nil {
				return fmt.Errorf("%s as %s: %w", path, f.end, err)
			}
			name := strings.TrimSuffix(filepath.Base(path), ".json") + "." + f.end
			if err := os.WriteFile(filepath.Join(out, name), b.Bytes(), 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt writes d to b in a format. After a panic b holds the text of the panic: a report assembled from parts of other reports can have
// contents that no comparison produces.
func attempt(f format, b *bytes.Buffer, d *words.Report) error {
	defer func() {
		if x := recover(); x != nil {
			b.Reset()
			fmt.Fprintf(b, "panic: %v", x)
		}
	}()
	return f.write(b, d)
}

// documentOf reads the report in a file that [runner] wrote, or in a plain JSON report; nil for a file without a report of [report.Schema].
func documentOf(path string) (*report.Document, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var kept map[string]json.RawMessage
	if err := json.Unmarshal(data, &kept); err != nil {
		return nil, err
	}
	if inner, ok := kept["json"]; ok {
		data = inner
	}
	var d *report.Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	if d == nil || d.Schema != report.Schema {
		return nil, nil
	}
	return d, nil
}

// errOthers is the error of folders whose files are not the same.
var errOthers = errors.New("files differ")

// compareFiles lists the files of two folders with different bytes, and the files in only one of the folders. A difference is an error.
func compareFiles(w io.Writer, before, after string) error {
	differ, same := 0, 0
	var names []string
	for _, folder := range []string{before, after} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, errA := os.ReadFile(filepath.Join(before, name))
		b, errB := os.ReadFile(filepath.Join(after, name))
		if errA == nil && errB == nil && bytes.Equal(a, b) {
			same++
			continue
		}
		differ++
		if differ <= mostListed {
			fmt.Fprintf(w, "%s: %s\n", name, firstDifference(a, b))
		}
	}
	fmt.Fprintf(w, "%d files differ, %d are the same\n", differ, same)
	if differ > 0 {
		return errOthers
	}
	return nil
}

// firstDifference is the first line that two texts have otherwise.
func firstDifference(a, b []byte) string {
	was, is := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range max(len(was), len(is)) {
		x, y := "", ""
		if i < len(was) {
			x = was[i]
		}
		if i < len(is) {
			y = is[i]
		}
		if x != y {
			return fmt.Sprintf("line %d is %s, was %s", i+1, short(y), short(x))
		}
	}
	return "the same lines"
}
