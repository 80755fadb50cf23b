package html

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/picture"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/order"
)

// flag is a red flag of a check.
type flag struct {
	Kind   string
	Entry  string
	Fields []said
}

// Check writes the red flags of a trace as one page, as [Write] does a comparison: the flags in words, a map of how large the
// tensors are, and a view of each. of is the manifest of the trace, tensors are all of the trace, and set has their pictures. The error
// is that of w.
func Check(w io.Writer, version string, r *redflag.Result, of capture.Manifest, tensors []picture.Values, set *picture.Set) error {
	p := newPage(report.Tool{Name: "tracediff", Version: version})
	p.Title, p.Good = "tracediff check", len(r.Flags) == 0
	s := &section{ID: "run0"}
	flagged := map[string][]string{} // kinds by key
	for i := range r.Flags {
		f := &r.Flags[i]
		key := capture.Key(f.Pass, f.Entry, 0)
		for _, k := range append([]string{key}, f.Also...) {
			flagged[k] = append(flagged[k], string(f.Kind))
		}
		p.Flags = append(p.Flags, flag{string(f.Kind), words.Clean(key), collect(words.FlagFields(f))})
	}
	verdict, kinds := words.LookedFor(r)
	p.Verdict, s.Untested = saidOf(verdict), collect(append(kinds, words.Remarks(r.Notes)...))
	s.Sides = []said{{"trace", words.Clean(r.Trace)}, {"has", words.TensorsOf(r)}}
	if of.Producer.Name != "" {
		s.Sides = append(s.Sides, said{"producer", words.Clean(strings.TrimSpace(of.Producer.Name + " " + of.Producer.Version))})
	}
	run := p.Data.values(tensors, flagged, set)
	s.Passes, s.Skipped = valuePasses(tensors, flagged, run)
	s.Skipped += set.Left()
	s.Files = traceManifest(r.Trace, of)
	p.Sections = []*section{s}
	return p.write(w)
}

// values adds the rows of a check, at most maxRows. Flagged rows have priority over the other rows.
func (d *data) values(tensors []picture.Values, flagged map[string][]string, set *picture.Set) *dataRun {
	h := &dataRun{Local: "value", Alone: true, Check: true, First: -1, Rows: []dataRow{}, index: map[string]int{"": 0}, at: map[string]int{}, Words: []string{""}}
	d.Runs = append(d.Runs, h)
	left := maxRows
	for _, t := range tensors {
		if flagged[t.Key] != nil {
			left--
		}
	}
	for _, t := range tensors {
		kinds := flagged[t.Key]
		if kinds == nil {
			if left <= 0 {
				continue
			}
			left--
		}
		row := dataRow{
			Key: words.Clean(t.Key), Layer: t.Layer, Shape: t.Shape, DType: h.word(t.DType), Picture: newPicture(set.Of(t.Key)), Verdict: h.word(words.NoFlag),
			Stats: []dataNumber{{"min", short(t.Stats.Min)}, {"max", short(t.Stats.Max)}, {"mean", short(t.Stats.Mean)}, {"std", short(t.Stats.Std)}},
		}
		if n := t.Stats.NaN + t.Stats.Inf + t.Stats.NInf; n > 0 {
			row.Notes = append(row.Notes, words.NotNumbers(t.Stats))
		}
		if kinds != nil {
			row.Verdict = h.word("RED FLAG: " + strings.Join(kinds, ", "))
			if h.First < 0 {
				h.First = len(h.Rows)
			}
		}
		h.at[t.Key] = len(h.Rows)
		h.Rows = append(h.Rows, row)
	}
	if h.First < 0 && len(h.Rows) > 0 {
		h.First = 0
	}
	return h
}

// valuePasses are the maps of a check: the size of the tensors, and which have flags.
func valuePasses(tensors []picture.Values, flagged map[string][]string, run *dataRun) (drawn []passMap, skipped string) {
	var passes []int
	for _, t := range tensors {
		if !slices.Contains(passes, t.Pass) {
			passes = append(passes, t.Pass)
		}
	}
	for i, pass := range passes {
		if i == maxPasses {
			return drawn, words.PassesLeft(len(passes)-i, false)
		}
		g := newGrid(passMap{Check: true, Open: i == 0})
		if len(passes) > 1 {
			g.Title = fmt.Sprintf("pass %d", pass)
		}
		for j := range tensors {
			if t := &tensors[j]; t.Pass == pass {
				size, flag := valueCells(t, flagged[t.Key], run)
				g.put(t.Layer, words.Either(t.Layer < 0, t.Name, order.NameOf(t.Name).Module()), size, flag)
			}
		}
		drawn = append(drawn, g.pass())
	}
	return drawn, ""
}

// valueCells are the two of a tensor: its root mean square by decades, and whether it has a flag.
func valueCells(t *picture.Values, kinds []string, run *dataRun) (size, flag cell) {
	at, ok := run.at[t.Key]
	if !ok {
		at = -1
	}
	size, flag = cell{Class: "e0", Row: at}, cell{Class: "e0", Row: at}
	if kinds != nil {
		flag.Class, flag.Mark = "e6", "×"
	}
	rms := t.RMS
	switch {
	case t.Stats.NaN+t.Stats.Inf > 0:
		size.Class = "nf"
	case math.IsNaN(rms) || rms == 0 || !measure.Finite(rms):
	case rms < 1e-2:
		size.Class = "e1"
	case rms < 1:
		size.Class = "e2"
	case rms < 100:
		size.Class = "e3"
	case rms < 1e4:
		size.Class = "e4"
	default:
		size.Class = "e5"
	}
	return size, flag
}
