package report

import (
	"encoding/json"
	"io"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/weights"
)

// Record is one line of a report as JSON Lines. Type says which of the other keys it has:
//
//	report  schema and tool, and shard where the report is a part of a gate: always the first
//	input   input: the token ids of one pass
//	row     row: one entry of one pass, in the order of the walk
//	result  exit and result: what the run found; its rows and inputs are empty here, having had lines of their own
//	error   exit, error and hint, in place of a result
//	weights weights: the port's checkpoint against the original, where tracediff.toml names it
//	end     exit, of the command: always the last, so that a report that was cut short is known for one
type Record struct {
	Type   string          `json:"type"`
	Schema string          `json:"schema,omitempty"` // "tracediff/records/2"
	Tool   *Tool           `json:"tool,omitempty"`
	Run    string          `json:"run,omitempty"` // the name of the run that it belongs to, where runs have names
	Exit   *int            `json:"exit,omitempty"`
	Error  string          `json:"error,omitempty"`
	Hint   string          `json:"hint,omitempty"`
	Input  *compare.Input  `json:"input,omitempty"`
	Row    *compare.Row    `json:"row,omitempty"`
	Result *compare.Result `json:"result,omitempty"`
	Shard  *Shard          `json:"shard,omitempty"`

	Weights *weights.Result `json:"weights,omitempty"`
}

// JSONLines writes the document in JSON records, one record per line. It returns the error of w.
func JSONLines(w io.Writer, d *Document) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(Record{Type: "report", Schema: RecordSchema, Tool: &d.Tool, Shard: d.Shard}); err != nil {
		return err
	}
	for i := range d.Runs {
		if err := lines(e, &d.Runs[i]); err != nil {
			return err
		}
	}
	if d.Weights != nil {
		if err := e.Encode(Record{Type: "weights", Weights: d.Weights}); err != nil {
			return err
		}
	}
	return e.Encode(Record{Type: "end", Exit: &d.Exit})
}

// lines writes one run.
func lines(e *json.Encoder, r *Run) error {
	if r.Result == nil {
		return e.Encode(Record{Type: "error", Run: r.Name, Exit: &r.Exit, Error: r.Error, Hint: r.Hint})
	}
	rest := *r.Result
	rest.Inputs, rest.Rows = []compare.Input{}, []compare.Row{}
	for i := range r.Result.Inputs {
		if err := e.Encode(Record{Type: "input", Run: r.Name, Input: &r.Result.Inputs[i]}); err != nil {
			return err
		}
	}
	for i := range r.Result.Rows {
		if err := e.Encode(Record{Type: "row", Run: r.Name, Row: &r.Result.Rows[i]}); err != nil {
			return err
		}
	}
	return e.Encode(Record{Type: "result", Run: r.Name, Exit: &r.Exit, Result: &rest})
}
