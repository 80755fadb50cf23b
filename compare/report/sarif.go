package report

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/docs"
)

// What of SARIF 2.1.0 is written. Names and meanings are those of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"` // empty where everything matches
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string     `json:"id"`
		Short sarifText  `json:"shortDescription"`
		Help  *sarifText `json:"help,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool        `json:"executionSuccessful"`
		Notifications []sarifNote `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNote struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		Rule         string            `json:"ruleId"`
		Index        int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// SARIF writes what is wrong as SARIF 2.1.0, for a view of code: a result for the first divergence of each run, and for each further bug that
// is known. Where a side was recorded as it ran, the result is at the line of source that computes the tensor on the local side, and the
// reference's line is related to it; else it is at the file that the document is about, or at that of the local trace. A rule is a mistake of docs/mistakes.md, or the class of the
// mismatch. A run that could not be compared is a notification. Each result has a file, since GitHub refuses a report with one that has none. The error
// is that of w.
func SARIF(w io.Writer, d *Document) error {
	s := &sarifRun{Tool: sarifTool{sarifDriver{Name: d.Tool.Name, Version: d.Tool.Version, Rules: []sarifRule{}}}, Results: []sarifResult{}}
	done := sarifInvocation{Successful: true}
	for i := range d.Runs {
		r := &d.Runs[i]
		if r.Result == nil {
			done.Successful = false
			done.Notifications = append(done.Notifications, sarifNote{"error", sarifText{clean(named(r) + "not compared: " + r.Error + "; " + r.Hint)}})
			continue
		}
		if r.Exit != 0 {
			s.failing(r, d.About)
		}
	}
	if d.Weights != nil && !d.Weights.Right() {
		one := sarifResult{Message: sarifText{"the port's weights are not the original's; tracediff weights says which"}, Fingerprints: map[string]string{"tracediff/v1": "weights"}}
		one.at("", cmp.Or(d.About, d.Weights.Local.Path), nil)
		s.add("weights", "weights that are not those of the original", "", one)
	}
	s.Invocations = []sarifInvocation{done}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{*s}})
}

// named is the name of a prompt in front of what is said of it.
func named(r *Run) string {
	if r.Name == "" {
		return ""
	}
	return r.Name + ": "
}

// failing adds the results of a run that does not match; about is the file that the report is about.
func (s *sarifRun) failing(r *Run, about string) {
	res := r.Result
	about = cmp.Or(about, res.Local.Path)
	said := failure(r)
	one := sarifResult{
		Message:      sarifText{clean(said.title) + "\n" + said.message},
		Fingerprints: map[string]string{"tracediff/v1": clean(r.Name + "/incomplete")},
	}
	rule, title, page := "incomplete", "the comparison is incomplete", ""
	if d := res.Divergence; d != nil {
		rule, title = strings.ToLower(string(d.Row.Class)), "a tensor that is not the reference's: "+string(d.Row.Class)
		if f, _ := d.Bug(); f != nil {
			page = f.Page
		}
		one.Fingerprints["tracediff/v1"] = clean(r.Name + "/" + d.Row.Key())
		one.at(d.Row.Key(), about, d.Code)
	} else {
		one.at("", about, nil)
	}
	s.add(rule, title, page, one)
	if res.Isolation == nil {
		return
	}
	for _, f := range res.Isolation.Findings {
		if f.Bug == nil || res.Divergence != nil && res.Divergence.Row.Key() == f.First {
			continue
		}
		further := sarifResult{
			Message:      sarifText{clean(named(r)+"bug in "+f.Where()+": "+f.What) + "\nfirst " + clean(f.First)},
			Fingerprints: map[string]string{"tracediff/v1": clean(r.Name + "/" + f.First)},
		}
		further.at(f.First, about, nil)
		s.add("value", "a tensor that is not the reference's: VALUE", f.Bug.Page, further)
	}
}

// add adds a result and its rule: the mistake of a page, or else the one that is given.
func (s *sarifRun) add(rule, title, page string, one sarifResult) {
	r := sarifRule{ID: rule, Short: sarifText{title}}
	if m, ok := docs.Mistake(page); ok && page != "" {
		r = sarifRule{ID: m.Anchor, Short: sarifText{m.Title}}
		var help []string
		for _, item := range m.Items {
			help = append(help, item.Name+": "+docs.Plain(item.Text))
		}
		r.Help = &sarifText{strings.Join(help, "\n")}
	}
	at := -1
	for i := range s.Tool.Driver.Rules {
		if s.Tool.Driver.Rules[i].ID == r.ID {
			at = i
		}
	}
	if at < 0 {
		at = len(s.Tool.Driver.Rules)
		s.Tool.Driver.Rules = append(s.Tool.Driver.Rules, r)
	}
	one.Rule, one.Index, one.Level = r.ID, at, "error"
	s.Results = append(s.Results, one)
}

// at says where an entry is wrong: its name, the local side's line of source or its file, and the line of the reference.
func (r *sarifResult) at(entry, file string, code *compare.Code) {
	here := sarifLocation{}
	if entry != "" {
		here.Logical = []sarifLogical{{clean(entry)}}
	}
	if code != nil {
		here.Physical = source(code.Local)
		if there := source(code.Reference); there != nil {
			r.Related = []sarifLocation{{Physical: there, Message: &sarifText{"the reference computes it here"}}}
		}
	}
	if here.Physical == nil {
		here.Physical = &sarifPhysical{Artifact: sarifArtifact{uri(file)}}
	}
	r.Locations = []sarifLocation{here}
}

// source is a line such as "modeling_qwen3.py:213"; nil for none.
func source(line string) *sarifPhysical {
	file, number := line, 0
	if at := strings.LastIndexByte(line, ':'); at > 0 {
		if n, err := strconv.Atoi(line[at+1:]); err == nil && n > 0 {
			file, number = line[:at], n
		}
	}
	if file == "" {
		return nil
	}
	p := &sarifPhysical{Artifact: sarifArtifact{uri(file)}}
	if number > 0 {
		p.Region = &sarifRegion{number}
	}
	return p
}

// uri is a path as a reference: relative, or of the scheme file.
func uri(path string) string {
	u := url.URL{Path: filepath.ToSlash(clean(path))}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return cmp.Or(u.String(), ".")
}
