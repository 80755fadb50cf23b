// Package sarif writes reports for a view of code.
package sarif

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/docs"
)

// What of SARIF 2.1.0 is written. Names and meanings are those of the standard.
type (
	log struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []run  `json:"runs"`
	}
	run struct {
		Tool        tool         `json:"tool"`
		Invocations []invocation `json:"invocations"`
		Results     []result     `json:"results"` // empty where everything matches
	}
	tool struct {
		Driver driver `json:"driver"`
	}
	driver struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Rules   []rule `json:"rules"`
	}
	rule struct {
		ID    string   `json:"id"`
		Short message  `json:"shortDescription"`
		Help  *message `json:"help,omitempty"`
	}
	message struct {
		Text string `json:"text"`
	}
	invocation struct {
		Successful    bool           `json:"executionSuccessful"`
		Notifications []notification `json:"toolExecutionNotifications,omitempty"`
	}
	notification struct {
		Level   string  `json:"level"`
		Message message `json:"message"`
	}
	result struct {
		Rule         string            `json:"ruleId"`
		Index        int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      message           `json:"message"`
		Locations    []location        `json:"locations"`
		Related      []location        `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	location struct {
		Physical *physical `json:"physicalLocation,omitempty"`
		Logical  []logical `json:"logicalLocations,omitempty"`
		Message  *message  `json:"message,omitempty"`
	}
	physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   *region  `json:"region,omitempty"`
	}
	artifact struct {
		URI string `json:"uri"`
	}
	region struct {
		StartLine int `json:"startLine"`
	}
	logical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// Write writes what is wrong as SARIF 2.1.0, for a view of code: a result for the first divergence of each run, and for each further bug that
// is known. Where a side was recorded as it ran, the result is at the line of source that computes the tensor on the local side, and the
// reference's line is related to it; else it is at the file that the document is about, or at that of the local trace. A rule is a mistake of docs/mistakes.md, or the class of the
// mismatch. A run that could not be compared is a notification. Each result has a file, since GitHub refuses a report with one that has none. The error
// is that of w.
func Write(w io.Writer, d *words.Report) error {
	s := &run{Tool: tool{driver{Name: d.Tool.Name, Version: d.Tool.Version, Rules: []rule{}}}, Results: []result{}}
	done := invocation{Successful: true}
	for i := range d.Runs {
		r := &d.Runs[i]
		if r.Result == nil {
			done.Successful = false
			done.Notifications = append(done.Notifications, notification{"error", message{notRun(r)}})
			continue
		}
		if r.Exit != 0 {
			s.failing(r, d.About)
		}
	}
	if d.Weights != nil && !d.Weights.Right() {
		one := result{Message: message{words.OtherWeights}, Fingerprints: map[string]string{"tracediff/v1": "weights"}}
		one.at("", cmp.Or(d.About, d.Weights.Local.Path), nil)
		s.add(words.WeightsRule, "", one)
	}
	s.Invocations = []invocation{done}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(log{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []run{*s}})
}

// notRun says why a run has no result.
func notRun(r *words.Run) string {
	why := words.Refused(r.Run)
	return words.Clean(words.Named(r.Run)) + why[0].Label + ": " + why[0].Text + "; " + why[1].Text
}

// failing adds the results of a run that does not match; about is the file that the report is about.
func (s *run) failing(r *words.Run, about string) {
	res := r.Result
	about = cmp.Or(about, res.Local.Path)
	heading, said := text.Failure(r)
	one := result{
		Message:      message{words.Clean(heading) + "\n" + said},
		Fingerprints: map[string]string{"tracediff/v1": words.Clean(r.Name + "/incomplete")},
	}
	rule, page := words.IncompleteRule, ""
	if d := res.Divergence; d != nil {
		rule = words.ClassRule(d.Row.Class)
		if f, _ := d.Bug(); f != nil {
			page = f.Page
		}
		one.Fingerprints["tracediff/v1"] = words.Clean(r.Name + "/" + d.Row.Key())
		one.at(d.Row.Key(), about, d.Code)
	} else {
		one.at("", about, nil)
	}
	s.add(rule, page, one)
	for _, f := range words.FurtherBugs(r.Run) {
		further := result{
			Message:      message{words.Clean(f.Where) + ": " + f.What},
			Fingerprints: map[string]string{"tracediff/v1": words.Clean(r.Name + "/" + f.Key)},
		}
		further.at(f.Key, about, nil)
		s.add(words.ClassRule(gate.Value), f.Page, further)
	}
}

// add adds a result and its rule: the mistake of a page, else the given rule.
func (s *run) add(given words.Rule, page string, one result) {
	r := rule{ID: given.ID, Short: message{given.Title}}
	if m, ok := docs.Mistake(page); ok && page != "" {
		r = rule{ID: m.Anchor, Short: message{m.Title}}
		var help []string
		for _, item := range m.Items {
			help = append(help, item.Name+": "+docs.Plain(item.Text))
		}
		r.Help = &message{strings.Join(help, "\n")}
	}
	at := slices.IndexFunc(s.Tool.Driver.Rules, func(known rule) bool { return known.ID == r.ID })
	if at < 0 {
		at = len(s.Tool.Driver.Rules)
		s.Tool.Driver.Rules = append(s.Tool.Driver.Rules, r)
	}
	one.Rule, one.Index, one.Level = r.ID, at, "error"
	s.Results = append(s.Results, one)
}

// at says where an entry is wrong: its name, the local side's line of source or its file, and the line of the reference.
func (r *result) at(entry, file string, code *compare.Code) {
	here := location{}
	if entry != "" {
		here.Logical = []logical{{words.Clean(entry)}}
	}
	if code != nil {
		here.Physical = source(code.Local)
		if there := source(code.Reference); there != nil {
			r.Related = []location{{Physical: there, Message: &message{words.ReferenceHere}}}
		}
	}
	if here.Physical == nil {
		here.Physical = &physical{Artifact: artifact{uri(file)}}
	}
	r.Locations = []location{here}
}

// source is a line such as "modeling_qwen3.py:213"; nil for none.
func source(line string) *physical {
	file, number := line, 0
	if at := strings.LastIndexByte(line, ':'); at > 0 {
		if n, err := strconv.Atoi(line[at+1:]); err == nil && n > 0 {
			file, number = line[:at], n
		}
	}
	if file == "" {
		return nil
	}
	p := &physical{Artifact: artifact{uri(file)}}
	if number > 0 {
		p.Region = &region{number}
	}
	return p
}

// uri is a path as a reference: relative, or of the scheme file.
func uri(path string) string {
	u := url.URL{Path: filepath.ToSlash(words.Clean(path))}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return cmp.Or(u.String(), ".")
}
