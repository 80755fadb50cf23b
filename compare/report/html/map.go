package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/order"
)

// maxPasses is the largest number of passes that a page draws as maps: the first passes, and the first passes with a mismatch.
const maxPasses = 8

// passMap is the maps of one pass: the entries of the layers, a line an entry and a column a layer, and those outside of them.
type passMap struct {
	Title   string
	Open    bool
	Alone   bool  // there is no accumulated error
	Check   bool  // the size of tensors and their flags, in place of errors
	Dense   bool  // cells are narrow
	Layers  []int // columns
	Lines   []mapLine
	Outside []outside
}

// outside is the entries before the layers, or after them: one column.
type outside struct {
	Name  string
	Lines []mapLine
}

// mapLine is one entry in all layers.
type mapLine struct {
	Name     string
	Error    []cell // accumulated
	Isolated []cell
}

// cell is one entry in one layer. Class is the colour; Mark is a sign for readers who cannot see the colour.
type cell struct {
	Class string
	Mark  string
	Run   int
	Row   int // of the data, or −1
}

// A cell without a row: where the model or the comparison has no such entry, and where one was declared and is not there.
var (
	missingCell = cell{Class: "no", Row: -1}
	absentCell  = cell{Class: "mi", Mark: "M", Row: -1}
)

// newPasses draws the passes; skipped says which are not drawn, and why.
func newPasses(res *compare.Result, data *dataRun, run int) (drawn []passMap, skipped string) {
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
		if i >= maxPasses/2 && (at < 0 || at >= maxPasses/2) && len(passes) > maxPasses {
			left++
			continue
		}
		p := newPass(res, data, run, pass)
		if p.Open = pass == open; len(passes) > 1 {
			p.Title = fmt.Sprintf("pass %d", pass)
		}
		drawn = append(drawn, p)
	}
	return drawn, words.PassesLeft(left, true)
}

// newPass draws one pass.
func newPass(res *compare.Result, data *dataRun, run, pass int) passMap {
	g := newGrid(passMap{Alone: res.Alone})
	for i := range res.Rows {
		r := &res.Rows[i]
		if r.Pass != pass {
			continue
		}
		e, z := cells(r, data, run)
		if r.Layer < 0 {
			g.put(-1, words.CapturedName(r), e, z)
		} else {
			g.put(r.Layer, layerless(r), e, z)
		}
	}
	for _, m := range res.Missing {
		if m.Pass == pass {
			if name := order.NameOf(m.Name); name.Within() && name.Layer() >= 0 {
				g.put(name.Layer(), name.Module(), absentCell, missingCell)
			} else {
				g.put(-1, m.Name, absentCell, missingCell)
			}
		}
	}
	return g.pass()
}

// grid is the maps of one pass while they are made.
type grid struct {
	passMap
	names []string // of the lines
	cells map[gridPlace][2]cell
	last  gridPlace
}

type gridPlace struct {
	name  string
	layer int
}

func newGrid(p passMap) *grid {
	return &grid{passMap: p, cells: map[gridPlace][2]cell{}, last: gridPlace{layer: -1}}
}

// put adds both cells of an entry. The line of a new name is inserted after the line of the previous entry, so that an entry of some layers
// only stands in the order of these layers.
func (g *grid) put(layer int, name string, left, right cell) {
	at := gridPlace{name, layer}
	defer func() { g.last = at }()
	if layer < 0 {
		part := words.Either(len(g.Layers) > 0, words.AfterLayers, words.BeforeLayers)
		if n := len(g.Outside); n == 0 || g.Outside[n-1].Name != part {
			g.Outside = append(g.Outside, outside{Name: part})
		}
		o := &g.Outside[len(g.Outside)-1]
		o.Lines = append(o.Lines, mapLine{words.Clean(name), []cell{left}, []cell{right}})
		return
	}
	g.cells[at] = [2]cell{left, right}
	if !slices.Contains(g.Layers, layer) {
		g.Layers = append(g.Layers, layer)
	}
	if slices.Contains(g.names, name) {
		return
	}
	behind := slices.Index(g.names, g.last.name)
	if g.last.layer != layer || behind < 0 {
		behind = len(g.names) - 1
	}
	g.names = slices.Insert(g.names, behind+1, name)
}

// dense is how many layers both halves of a map have room for with cells of the usual width.
const dense = 20

// pass is the finished maps.
func (g *grid) pass() passMap {
	g.Dense = len(g.Layers) > dense
	slices.Sort(g.Layers)
	for _, name := range g.names {
		line := mapLine{Name: words.Clean(name)}
		for _, layer := range g.Layers {
			both, ok := g.cells[gridPlace{name, layer}]
			if !ok {
				both = [2]cell{missingCell, missingCell}
			}
			line.Error, line.Isolated = append(line.Error, both[0]), append(line.Isolated, both[1])
		}
		g.Lines = append(g.Lines, line)
	}
	return g.passMap
}

// layerless is the name of a row without its layer.
func layerless(r *compare.Row) string {
	return strings.Replace(words.CapturedName(r), order.InLayer(r.Layer, "").String(), "", 1)
}

// cells returns the two cells of a row: the accumulated error, and the outcome on the row's own inputs.
func cells(r *compare.Row, data *dataRun, run int) (accumulated, isolated cell) {
	at, ok := data.at[r.Key()]
	if !ok {
		at = -1
	}
	accumulated, isolated = cell{Run: run, Row: at}, cell{Run: run, Row: at}
	accumulated.Class, accumulated.Mark = errorClass(r)
	isolated.Class, isolated.Mark = aloneClass(r)
	return accumulated, isolated
}

// errorClass returns the colour and the mark of an accumulated error, by the ratio of the error to its limit.
func errorClass(r *compare.Row) (class, mark string) {
	wrong := r.Verdict == compare.Mismatch && words.TakesPart(r)
	switch {
	case r.Metrics == nil && wrong:
		return "nf", "S" // another shape
	case r.Metrics == nil:
		return "no", ""
	case r.Metrics.NonFinite > 0 || math.IsInf(words.ErrorAt(r), 0):
		return "nf", words.Either(wrong, "×", "")
	case wrong:
		return "e6", "×"
	case r.Verdict == compare.Unverified:
		return "un", "?"
	case r.Verdict == compare.Mismatch && r.Derived:
		return "e5", "d"
	case r.Verdict == compare.Mismatch:
		return "e5", "a" // allowed, or expected
	}
	e, l := words.ErrorAt(r), limitAt(r)
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

// aloneClass returns the colour and the mark of an entry's outcome on its own inputs.
func aloneClass(r *compare.Row) (class, mark string) {
	c := r.Isolated
	if c == nil {
		return "ni", ""
	}
	switch c.Outcome {
	case isolate.Exact:
		return "e0", ""
	case isolate.Rounding:
		return "e2", ""
	case isolate.Bug:
		return "e6", "×"
	}
	return "un", "?"
}
