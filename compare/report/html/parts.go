package html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/hooks"
)

// tokenTable is the table of the next token.
type tokenTable struct {
	Title string
	*words.Table
	Said []said
}

func newTokens(doc *words.Document) *tokenTable {
	f := doc.Result.Final
	if f == nil {
		return nil
	}
	return &tokenTable{words.ChosenBy(&f.Passes[f.Shown]), words.Candidates(doc), collect(words.Fields(doc.Show(words.Choice)))}
}

// manifest has the fields that a trace's manifest declares.
type manifest struct {
	Name   string
	Fields []said
	Config string // of the model
}

// maxConfig bounds the configuration of a page, and maxNames a list of names.
const (
	maxConfig = 32 << 10
	maxNames  = 12
)

// add adds a field with a text.
func (m *manifest) add(label, text string) {
	if text != "" {
		m.Fields = append(m.Fields, said{label, words.Clean(text)})
	}
}

// list adds the first fields of some by their names.
func (m *manifest) list(before string, fields map[string]string, most int) {
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range names[:min(len(names), most)] {
		m.add(before+name, fields[name])
	}
}

// newManifests returns the manifests of both sides: whole manifests, or only the fields of a report in text.
func newManifests(res *compare.Result, whole bool) []manifest {
	var all []manifest
	for i, side := range []compare.Side{res.Local, res.Reference} {
		if i == 1 && res.Alone {
			break
		}
		m := manifest{Name: side.Name.Label}
		m.add("file", side.Path)
		m.add("called", side.Label)
		m.add("producer", side.Producer.Name+" "+side.Producer.Version)
		m.list("", side.Producer.Details, math.MaxInt)
		m.add("model", side.Model)
		m.add("dtype", side.DType)
		m.add("device", side.Device)
		m.add("weights", side.Weights)
		m.add("status", string(side.Status))
		m.add("passes", fmt.Sprint(side.Passes))
		m.add("scope", words.LimitsOf(side.Scope))
		if whole {
			m.more(side.Manifest)
		}
		all = append(all, m)
	}
	return all
}

// traceManifest returns the manifest of a trace without a reference.
func traceManifest(path string, of capture.Manifest) []manifest {
	m := manifest{Name: "trace"}
	m.add("file", path)
	m.add("producer", strings.TrimSpace(of.Producer.Name+" "+of.Producer.Version))
	m.list("", of.Producer.Details, math.MaxInt)
	m.add("model", of.Model)
	if of.DType != hooks.DType(0) {
		m.add("dtype", of.DType.String())
	}
	m.add("device", of.Device)
	m.add("weights", of.Weights)
	m.add("status", string(of.Status))
	if of.Scope.Level > 0 {
		m.add("scope", words.LimitsOf(of.Scope))
	}
	m.more(of)
	return []manifest{m}
}

// more has what a result leaves out.
func (m *manifest) more(of capture.Manifest) {
	m.add("prompt", of.Prompt)
	if n := len(of.Entries); n > 0 {
		m.add("entries", fmt.Sprint(n))
	}
	if n := len(of.Derived); n > 0 {
		text := fmt.Sprintf("%d: ", n)
		for i, name := range of.Derived[:min(n, maxNames)] {
			text += words.Either(i > 0, ", ", "") + name
		}
		m.add("derived", text+words.Either(n > maxNames, " ...", ""))
	}
	m.list("axes of ", of.Axes, maxNames)
	if n := len(of.Axes) - maxNames; n > 0 {
		m.add("axes", "of "+words.More(n))
	}
	var b bytes.Buffer
	if of.Config != nil && json.Indent(&b, of.Config, "", "  ") == nil {
		if m.Config = b.String(); len(m.Config) > maxConfig {
			m.Config = strings.ToValidUTF8(m.Config[:maxConfig], "") + "\n..."
		}
	}
}
