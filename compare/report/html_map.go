package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
)

// maxHTMLPasses is how many passes a page draws as maps: the first ones, and those in which something does not match.
const maxHTMLPasses = 8

// htmlPass is the maps of one pass: the entries of the layers, a line an entry and a column a layer, and those outside of them.
type htmlPass struct {
	Title   string
	Open    bool
	Alone   bool  // there is no accumulated error
	Layers  []int // columns
	Lines   []htmlLine
	Outside []htmlLine // one column
}

// htmlLine is one entry in all layers.
type htmlLine struct {
	Name     string
	Error    []htmlCell // accumulated
	Isolated []htmlCell
}

// htmlCell is one entry in one layer. Class is its colour, Mark what it says without one.
type htmlCell struct {
	Class string
	Mark  string
	Run   int
	Row   int // of the data; −1: there is none
}

// A cell without a row: where the model or the comparison has no such entry, and where one was declared and is not there.
var (
	missingCell = htmlCell{Class: "no", Row: -1}
	absentCell  = htmlCell{Class: "mi", Mark: "M", Row: -1}
)

// newPasses draws the passes; skipped says which are not drawn, and why.
func newPasses(res *compare.Result, data *htmlRun, run int) (drawn []htmlPass, skipped string) {
	var passes, odd []int
	for i := range res.Rows {
		r := &res.Rows[i]
		if !slices.Contains(passes, r.Pass) {
			passes = append(passes, r.Pass)
		}
		if !plainRow(r) && !slices.Contains(odd, r.Pass) {
			odd = append(odd, r.Pass)
		}
	}
	open := 0
	if d := res.Divergence; d != nil {
		open = d.Row.Pass
	} else if len(passes) > 0 {
		open = passes[0]
	}
	left := 0
	for i, pass := range passes {
		at := slices.Index(odd, pass)
		if i >= maxHTMLPasses/2 && (at < 0 || at >= maxHTMLPasses/2) && len(passes) > maxHTMLPasses {
			left++
			continue
		}
		p := newPass(res, data, run, pass)
		if p.Open = pass == open; len(passes) > 1 {
			p.Title = fmt.Sprintf("pass %d", pass)
		}
		drawn = append(drawn, p)
	}
	if left > 0 {
		skipped = fmt.Sprintf("%s not drawn: this page has the first, and the first in which something does not match. The JSON report has all.", count(left, "pass is", "passes are"))
	}
	return drawn, skipped
}

// newPass draws one pass. The lines stand in the order of the layer that has most entries.
func newPass(res *compare.Result, data *htmlRun, run, pass int) htmlPass {
	p := htmlPass{Alone: res.Alone}
	rows := map[string]map[int]int{} // by line and layer
	var names []string
	for i := range res.Rows {
		r := &res.Rows[i]
		if r.Pass != pass {
			continue
		}
		if r.Layer < 0 {
			e, z := cells(r, data, run)
			p.Outside = append(p.Outside, htmlLine{clean(capturedName(r)), []htmlCell{e}, []htmlCell{z}})
			continue
		}
		name := layerless(r)
		if rows[name] == nil {
			rows[name] = map[int]int{}
			names = placed(names, name, res.Rows[:i], pass)
		}
		rows[name][r.Layer] = i
		if !slices.Contains(p.Layers, r.Layer) {
			p.Layers = append(p.Layers, r.Layer)
		}
	}
	absent := map[string]map[int]bool{} // declared and not there, by line and layer
	for _, m := range res.Missing {
		if m.Pass != pass {
			continue
		}
		layer, name := layerOf(m.Name)
		if layer < 0 {
			p.Outside = append(p.Outside, htmlLine{clean(name), []htmlCell{absentCell}, []htmlCell{missingCell}})
			continue
		}
		if !slices.Contains(p.Layers, layer) {
			p.Layers = append(p.Layers, layer)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if absent[name] == nil {
			absent[name] = map[int]bool{}
		}
		absent[name][layer] = true
	}
	slices.Sort(p.Layers)
	for _, name := range names {
		line := htmlLine{Name: clean(name)}
		for _, layer := range p.Layers {
			e, z := missingCell, missingCell
			if i, ok := rows[name][layer]; ok {
				e, z = cells(&res.Rows[i], data, run)
			} else if absent[name][layer] {
				e = absentCell
			}
			line.Error, line.Isolated = append(line.Error, e), append(line.Isolated, z)
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}

// layerOf splits a name into its layer, −1 outside of them, and the rest.
func layerOf(name string) (layer int, rest string) {
	if rest, ok := strings.CutPrefix(name, "layers."); ok {
		if digits, rest, ok := strings.Cut(rest, "."); ok {
			if layer, err := strconv.Atoi(digits); err == nil && layer >= 0 {
				return layer, rest
			}
		}
	}
	return -1, name
}

// layerless is the name of a row without its layer.
func layerless(r *compare.Row) string {
	return strings.Replace(capturedName(r), fmt.Sprintf("layers.%d.", r.Layer), "", 1)
}

// placed puts a new line behind the one of the row before it, where that is of the same layer: an entry that only some layers have
// stands where these have it.
func placed(names []string, name string, before []compare.Row, pass int) []string {
	if n := len(before); n > 0 && before[n-1].Pass == pass && before[n-1].Layer >= 0 {
		if at := slices.Index(names, layerless(&before[n-1])); at >= 0 {
			return slices.Insert(names, at+1, name)
		}
	}
	return append(names, name)
}

// cells are the two of a row: its accumulated error, and what it is on its own inputs.
func cells(r *compare.Row, data *htmlRun, run int) (accumulated, isolated htmlCell) {
	at, ok := data.at[r.Key()]
	if !ok {
		at = -1
	}
	accumulated, isolated = htmlCell{Run: run, Row: at}, htmlCell{Run: run, Row: at}
	accumulated.Class, accumulated.Mark = errorClass(r)
	isolated.Class, isolated.Mark = aloneClass(r)
	return accumulated, isolated
}

// errorClass is how an accumulated error looks: by its size beside its limit.
func errorClass(r *compare.Row) (class, mark string) {
	wrong := r.Verdict == compare.Mismatch && takesPart(r)
	switch {
	case r.Metrics == nil && wrong:
		return "nf", "S" // another shape
	case r.Metrics == nil:
		return "no", ""
	case r.Metrics.NonFinite > 0 || math.IsInf(errorAt(r), 0):
		return "nf", either(wrong, "×", "")
	case wrong:
		return "e6", "×"
	case r.Verdict == compare.Unverified:
		return "un", "?"
	case r.Verdict == compare.Mismatch && r.Derived:
		return "e5", "d"
	case r.Verdict == compare.Mismatch:
		return "e5", "a" // allowed, or expected
	}
	e, l := errorAt(r), limitAt(r)
	switch ratio := e / l; {
	case e == 0 || math.IsNaN(e):
		return "e0", ""
	case !(l > 0):
		return "e1", ""
	case ratio <= 0.03:
		return "e1", ""
	case ratio <= 0.1:
		return "e2", ""
	case ratio <= 0.3:
		return "e3", ""
	case ratio <= 1:
		return "e4", ""
	}
	return "e5", "~"
}

// aloneClass is how an entry looks by what it is on its own inputs.
func aloneClass(r *compare.Row) (class, mark string) {
	c := r.Isolated
	if c == nil {
		return "ni", ""
	}
	switch c.Outcome {
	case certify.Exact:
		return "e0", ""
	case certify.Rounding:
		return "e2", ""
	case certify.Bug:
		return "e6", "×"
	}
	return "un", "?"
}
