// Package report is the outcome of commands as data, and its JSON. The packages below it write it for people and for programs: words says it in sentences, text prints
// these, html makes a page, github, junit and sarif are what CI systems read.
package report

import (
	"encoding/json"
	"io"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/compare/weights"
)

// Schema names the format of [Document], and RecordSchema that of [Record]; docs/schema has both as JSON Schema. The
// number is raised when a key goes, or means something else. New keys may come at any time: a reader passes over what it
// does not know.
const (
	Schema       = "tracediff/report/2"
	RecordSchema = "tracediff/records/2"
)

// Document is the outcome of one command: one run of compare, or a run for each prompt of a gate.
type Document struct {
	Schema string `json:"schema"` // "tracediff/report/2"
	Tool   Tool   `json:"tool"`   // that wrote the report
	Exit   int    `json:"exit"`   // the exit status of the command: the largest of its runs
	Runs   []Run  `json:"runs"`   // in the order in which they ran
	// Sight is which of the usual mistakes several runs would have shown together.
	Sight *detectable.Sight `json:"sight,omitempty"`
	// Weights is the port's checkpoint against the original, where tracediff.toml names it: what is wrong there is wrong in every run.
	Weights *weights.Result `json:"weights,omitempty"`
	// Shard is the part of a gate that the document covers; nil for a whole gate and for a merged document.
	Shard *Shard `json:"shard,omitempty"`

	// About is a file of the repository, such as tracediff.toml. Code views show a result there if the result has no line of source. It may
	// be empty.
	About string `json:"-"`
}

// Tool is the program.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Run is one comparison: a result, or the error that prevented the result.
type Run struct {
	Name   string          `json:"name,omitempty"` // of the prompt, where several have names
	Exit   int             `json:"exit"`           // 0 it matches, 1 it does not or is incomplete, 2 it cannot be compared
	Error  string          `json:"error,omitempty"`
	Hint   string          `json:"hint,omitempty"` // what to do about the error
	Result *compare.Result `json:"result,omitempty"`

	// Since says how the first divergence moved since the last comparison. It is for people: a document says what one run found, and
	// twice the same.
	Since string `json:"-"`
	// Pictures are what a report in HTML shows of the tensors; nil where none was asked for.
	Pictures *picture.Set `json:"-"`
}

// NewDocument collects runs.
func NewDocument(version string, runs ...Run) *Document {
	d := &Document{Schema: Schema, Tool: Tool{"tracediff", version}, Runs: runs}
	for _, r := range runs {
		d.Exit = max(d.Exit, r.Exit)
	}
	var sights []*detectable.Sight
	for _, r := range runs {
		if r.Result != nil {
			sights = append(sights, r.Result.Sight)
		}
	}
	if len(runs) > 1 && d.Exit == 0 {
		d.Sight = detectable.Unite(sights)
	}
	return d
}

// WithWeights adds a comparison of weights, which decides on the exit status, too; nil adds nothing.
func (d *Document) WithWeights(r *weights.Result) *Document {
	if d.Weights = r; r != nil {
		d.Exit = max(d.Exit, WeightsExit(r))
	}
	return d
}

// JSON writes the document as one indented object. Numbers outside JSON become the strings "NaN", "Infinity" and "-Infinity". The error is
// w's.
func JSON(w io.Writer, d *Document) error { return indented(w, d) }

// indented writes an object.
func indented(w io.Writer, object any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(object)
}
