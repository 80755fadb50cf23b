package html

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
)

// maxRows is how many rows a page has in all: those of a level 3 comparison of a large model in one pass, and as many again. More
// are in the JSON report.
const maxRows = 4000

// data is what the script of a page shows when a cell is chosen. Keys are short: there are thousands of rows.
type data struct {
	Runs []*dataRun `json:"runs"`
}

// dataRun is one comparison.
type dataRun struct {
	Name      string    `json:"name,omitempty"`
	Local     string    `json:"local"`
	Reference string    `json:"reference"`
	Alone     bool      `json:"alone,omitempty"`
	Check     bool      `json:"check,omitempty"` // of values and flags, not of errors
	First     int       `json:"first"`           // the row to show first; −1: none
	Words     []string  `json:"words"`           // that rows name by number
	Rows      []dataRow `json:"rows"`

	index map[string]int // of words
	at    map[string]int // of rows, by key
}

// dataRow is one entry of one pass.
type dataRow struct {
	Key     string       `json:"k"`
	Verdict int          `json:"v"` // word
	Class   int          `json:"c,omitempty"`
	Detail  string       `json:"d,omitempty"`
	Layer   int          `json:"l"`
	Op      int          `json:"o,omitempty"`
	Shape   []int        `json:"s"`
	DType   int          `json:"t"`
	Error   *short       `json:"e,omitempty"`
	Limit   *short       `json:"m,omitempty"`
	From    int          `json:"f,omitempty"` // word
	MaxAbs  *short       `json:"x,omitempty"`
	Worst   []int        `json:"w,omitempty"`
	At      []short      `json:"a,omitempty"` // the values at Worst: local, reference
	Unequal []int64      `json:"u,omitempty"` // unequal, compared
	Checks  [][3]short   `json:"g,omitempty"` // word, error, limit
	Alone   int          `json:"i,omitempty"` // word: what it is on its own inputs
	Why     int          `json:"y,omitempty"` // word
	Reach   *short       `json:"r,omitempty"`
	Outside []int64      `json:"z,omitempty"` // outside, elements
	Notes   []string     `json:"n,omitempty"`
	Bug     *dataFinding `json:"h,omitempty"`
	Stats   []dataNumber `json:"q,omitempty"`
	Picture *dataPicture `json:"p,omitempty"`
}

type dataNumber struct {
	What  string `json:"what"`
	Value short  `json:"value"`
}

// dataFinding has the relations that were tried on an entry with a wrong operation.
type dataFinding struct {
	Text      string   `json:"text"`
	At        string   `json:"at,omitempty"` // in the source of the recorded model
	Proof     string   `json:"proof,omitempty"`
	Aliases   []string `json:"aliases,omitempty"`
	Undecided []string `json:"undecided,omitempty"`
	Tried     int      `json:"tried"`
	Looked    []string `json:"looked,omitempty"`
	Differs   string   `json:"differs,omitempty"` // where it has no name
	Nearest   string   `json:"nearest,omitempty"`
	Leaves    string   `json:"leaves,omitempty"` // what the nearest leaves
	Stopped   bool     `json:"stopped,omitempty"`
	Page      string   `json:"page,omitempty"`
}

// dataPicture is a picture.Tensor with short keys.
type dataPicture struct {
	Axes    [2]string `json:"n"`
	Size    [2]int    `json:"s"`
	Cells   [2]int    `json:"c"`
	Top     short     `json:"t"`
	Codes   string    `json:"m"`
	Heads   string    `json:"h,omitempty"`
	Range   []short   `json:"r,omitempty"` // of the scatter, from low to high
	Side    int       `json:"k,omitempty"`
	Density string    `json:"d,omitempty"`
	Equal   int64     `json:"q"`
	Broken  int64     `json:"x,omitempty"` // not finite, or masked on one side
	From    int       `json:"f,omitempty"`
	Bins    []int64   `json:"b,omitempty"`
	Worst   [][3]any  `json:"w,omitempty"` // index, local, reference
}

// short is a number with the nine digits that tell float32 numbers apart.
type short float64

// MarshalJSON writes the number as [measure.Number] does, with nine digits.
func (x short) MarshalJSON() ([]byte, error) {
	f := float64(x)
	if !measure.Finite(f) {
		return json.Marshal(measure.Number(f))
	}
	return strconv.AppendFloat(nil, f, 'g', 9, 64), nil
}

// numberOf is a number that is left out where it is not defined.
func numberOf(n measure.Number) *short {
	if math.IsNaN(float64(n)) {
		return nil
	}
	s := short(n)
	return &s
}

// run adds a comparison to the data, with at most most rows. Rows other than plain matches are taken first, then plain matches, both in the
// order of the walk.
func (d *data) run(r *report.Run, most int) *dataRun {
	res := r.Result
	h := &dataRun{
		Name: r.Name, Local: res.Local.Name.Label, Reference: res.Reference.Name.Label, Alone: res.Alone, First: -1, Rows: []dataRow{},
		index: map[string]int{"": 0}, at: map[string]int{}, Words: []string{""},
	}
	d.Runs = append(d.Runs, h)
	take := make([]bool, len(res.Rows))
	left := most
	for _, plain := range []bool{false, true} {
		for i := range res.Rows {
			if !take[i] && left > 0 && (plain || !plainRow(&res.Rows[i])) {
				take[i] = true
				left--
			}
		}
	}
	for i := range res.Rows {
		if take[i] {
			h.at[res.Rows[i].Key()] = len(h.Rows)
			h.Rows = append(h.Rows, h.row(&res.Rows[i], r.Pictures.Of(res.Rows[i].Key())))
		}
	}
	h.first(res)
	return h
}

// left says which rows are not on the page.
func (h *dataRun) left(res *compare.Result) string {
	rows, wrong := 0, 0
	for i := range res.Rows {
		if _, ok := h.at[res.Rows[i].Key()]; !ok {
			rows++
			if !plainRow(&res.Rows[i]) {
				wrong++
			}
		}
	}
	return words.RowsLeft(rows, wrong)
}

// plainRow reports whether a row is a match without an allowance and without a bad certificate.
func plainRow(r *compare.Row) bool {
	return r.Verdict == compare.Match && r.Allowed == "" && (r.Isolated == nil || r.Isolated.Good())
}

// first chooses the row to show: the first divergence, else the one nearest to its limit.
func (h *dataRun) first(res *compare.Result) {
	if d := res.Divergence; d != nil {
		if at, ok := h.at[d.Row.Key()]; ok {
			h.First = at
		}
		return
	}
	best := -1.0
	for i := range res.Rows {
		r := &res.Rows[i]
		at, ok := h.at[r.Key()]
		if near := words.Nearness(r); ok && !r.Derived && (h.First < 0 || near > best) {
			h.First, best = at, near
		}
	}
}

// word is the number of a text that many rows have.
func (h *dataRun) word(text string) int {
	text = words.Clean(text)
	at, ok := h.index[text]
	if !ok {
		at = len(h.Words)
		h.index[text], h.Words = at, append(h.Words, text)
	}
	return at
}

func (h *dataRun) row(r *compare.Row, t *picture.Tensor) dataRow {
	row := dataRow{
		Key: words.Clean(r.Key()), Verdict: h.word(string(r.Verdict)), Class: h.word(string(r.Class)), Detail: words.Clean(r.Detail), Layer: r.Layer, Op: h.word(r.Op),
		Shape: r.Local.Shape, DType: h.word(dtypes(r)), Picture: newPicture(t),
	}
	if m := r.Metrics; m != nil {
		row.Error, row.Worst = numberOf(m.RelL2), m.Worst
		if m.NonFinite > 0 {
			broken := short(words.RelL2(m))
			row.Error = &broken
		}
		row.Unequal = []int64{m.Unequal, m.Compared}
		if m.Worst != nil {
			row.MaxAbs, row.At = numberOf(m.MaxAbs), []short{short(m.LocalAt), short(m.ReferenceAt)}
		}
	}
	if s := r.Stats; s != nil {
		row.Stats = []dataNumber{{"min", short(s.Min)}, {"max", short(s.Max)}, {"mean", short(s.Mean)}, {"std", short(s.Std)}}
	}
	if g := r.Gate; g != nil {
		row.From = h.word(gate.Source(g.From))
		if len(g.Checks) > 0 {
			row.Limit = numberOf(g.Checks[0].Limit)
		}
		if !plainRow(r) {
			for _, c := range g.Checks[min(len(g.Checks), 1):] { // the first is the tensor's own
				row.Checks = append(row.Checks, [3]short{short(h.word(c.Name())), short(c.Error), short(c.Limit)})
			}
		}
	}
	h.certificate(&row, r)
	row.Notes = words.Remarked(r)
	return row
}

// certificate has what the entry is on its own inputs.
func (h *dataRun) certificate(row *dataRow, r *compare.Row) {
	row.Why = h.word(r.NotIsolated)
	c := r.Isolated
	if c == nil {
		return
	}
	row.Alone = h.word(string(c.Outcome))
	if c.Outcome == isolate.Bug || c.Outcome == isolate.Unidentified {
		row.Reach, row.Outside = numberOf(c.Reach), []int64{c.Outside, c.Elements}
	}
	f := c.Finding
	if f == nil {
		return
	}
	row.Bug = &dataFinding{
		Text: words.Clean(f.Text()), Aliases: cleaned(texts(f.Aliases)), Undecided: cleaned(texts(f.Undecided)), Tried: f.Tried, Looked: cleaned(f.Looked),
		Nearest: words.Clean(f.Nearest), Stopped: f.Stopped, Page: f.Page,
	}
	if f.Named() {
		row.Bug.At, row.Bug.Proof = words.Clean(words.SourceOf(f)), words.Proof(f)
		return
	}
	if f.Description != nil {
		row.Bug.Differs = words.Clean(words.Described(f.Description))
	}
	if f.Nearest != "" {
		row.Bug.Leaves = words.Leaves(f)
	}
}

// texts are names in words.
func texts(names []diagnose.OtherName) (all []string) {
	for _, n := range names {
		all = append(all, n.Text())
	}
	return all
}

func cleaned(list []string) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = words.Clean(list[i])
	}
	return list
}

// dtypes are those of both sides, once where they are equal.
func dtypes(r *compare.Row) string {
	if r.Ref.DType == "" || r.Ref.DType == r.Local.DType {
		return r.Local.DType
	}
	return r.Local.DType + ", reference " + r.Ref.DType
}

func newPicture(t *picture.Tensor) *dataPicture {
	if t == nil {
		return nil
	}
	p := &dataPicture{
		Axes: [2]string{t.Map.Down, t.Map.Across}, Size: t.Map.Size, Cells: t.Map.Cells, Top: short(t.Map.Top), Codes: t.Map.Codes,
		Heads: t.Heads, Equal: t.Equal, Broken: t.Infinite, From: t.From, Bins: t.Histogram,
	}
	if s := t.Scatter; s != nil {
		p.Range, p.Side, p.Density = []short{short(s.Low), short(s.High)}, s.Side, s.Code
	}
	for _, e := range t.Worst {
		p.Worst = append(p.Worst, [3]any{e.Index, short(e.Local), short(e.Reference)})
	}
	return p
}
