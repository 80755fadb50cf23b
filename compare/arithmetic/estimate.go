package arithmetic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Estimate is how far a number of a formula is off in the entries of one form, by what they have below their bounds.
//
// An element y that is right lies within its bound of x, the value before the last rounding R. A number c that is c·(1+θ) in the engine
// moves x by θ·d, with d the derivative of x by the logarithm of c: the formula is evaluated with c changed. Null hypothesis: θ is 0, so
// y − R(x) has nothing to do with d. The statistic is the estimate of least squares over all elements of the form,
// θ = Σ w·d·(y − R(x)) / Σ w·d², w the inverse square of the distance of the dtype's numbers at x, over its standard error. That
// is the larger of two: the sums of rows are taken as independent, and the sums of entries. A row that was met before counts once.
type Estimate struct {
	Form  string  `json:"form"` // of the operation that has the number
	Site  string  `json:"site"` // its step: "eps"
	Value float64 `json:"value"`
	// Off is θ, Error its standard error, and Effect ‖θ·d‖/‖x‖.
	Off    measure.Number `json:"off"`
	Error  measure.Number `json:"error"`
	Effect measure.Number `json:"effect"`
	// Entries and Rows are those with an element that the number moves.
	Entries int    `json:"entries"`
	Rows    int    `json:"rows"`
	First   string `json:"first"` // key
	// Remarkable: the estimate exceeds chance, the common effect of correct arithmetic on all elements, and the
	// rounding of a constant. It is reported as a note and never as a mismatch.
	Remarkable bool `json:"remarkable,omitempty"`
}

const (
	belowElements = 1 << 18 // of a form that are looked at, in minBelow entries or more
	minBelow      = 32
	belowStep     = 1. / 16 // relative change of a number for its derivative
)

// Estimates estimates the numbers of all formulas from the entries that are right, form by form, in the order of the trace. The error is that
// of reading the trace or the weights.
func (k *Forms) Estimates(ctx context.Context) ([]Estimate, error) {
	var all []Estimate
	c := k.I.CapturedForms()
	for _, name := range c.Names {
		some, err := k.belowIn(ctx, name, c.Nodes[name])
		if errors.Is(err, isolate.ErrNoWeights) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// pooled are the sums of one number.
type pooled struct {
	site    program.Site
	value   float64
	first   string
	ds, dd  []float64 // by row: Σ w·d·(y − R(x)), and Σ w·d²
	entries []int     // where the rows of each entry begin
	moved   float64   // ‖d‖²
	norm    float64   // ‖x‖²
	bounds  []float64 // of elements; none where the form has too few entries to be remarkable
}

// belowIn pools the entries of a form.
func (k *Forms) belowIn(ctx context.Context, name isolate.FormKey, nodes []order.Node) ([]Estimate, error) {
	var sums []*pooled
	elements, seen := 0, map[uint64]bool{} // rows that were met
	for at, n := range isolate.Permuted(nodes, isolate.Scattered(len(nodes))) {
		if at >= minBelow && elements >= belowElements {
			break
		}
		t, err := k.I.Unread(n, k.I.Has)
		if isolate.Lacking(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		f, err := t.Cut.Formula(t.Passes(), k.I.Env().DType)
		if errors.Is(err, order.ErrOwn) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if len(numbersIn(f.Program)) == 0 || t.Entry.Compare == order.Pattern {
			return nil, nil
		}
		p := pooling{forms: k, sums: sums, seen: seen, bounds: len(nodes) >= thresholds.Estimate.Entries}
		if right, err := p.entry(ctx, t, name); err != nil {
			return nil, err
		} else if right {
			elements += isolate.Size(k.I.List().Size(n, t.Passes()))
		}
		sums = p.sums
	}
	var all []Estimate
	for _, s := range sums {
		if e, ok := s.estimate(); ok {
			all = append(all, e)
		}
	}
	return all, nil
}

// pooling adds the entries of a form to the sums of its numbers.
type pooling struct {
	forms  *Forms
	sums   []*pooled
	seen   map[uint64]bool // rows that were met before
	bounds bool            // the bounds of elements are asked for
}

// entry adds an entry, and reports whether it is right: a large one some tokens at a time.
func (p *pooling) entry(ctx context.Context, t *isolate.Trial, form isolate.FormKey) (right bool, err error) {
	var begins []int
	for _, s := range p.sums {
		begins = append(begins, len(s.ds))
	}
	if t.Pieces() > 0 {
		right, err = p.blocks(ctx, t)
	}
	if !right && err == nil {
		right, err = p.whole(ctx, t, form)
	}
	for k, s := range p.sums {
		at := 0
		if k < len(begins) {
			at = begins[k]
		}
		if len(s.ds) > at {
			s.entries = append(s.entries, at)
		}
	}
	return right, err
}

// blocks adds an entry given by transformers' arithmetic. Every block is checked before the first is added.
func (p *pooling) blocks(ctx context.Context, t *isolate.Trial) (right bool, err error) {
	right, err = isolate.EachBlock(ctx, t, true, func(part *isolate.Trial, j *isolate.Judgement) (bool, error) {
		return ownDType(part) && len(j.Outside()) == 0, nil
	})
	if !right || err != nil {
		return false, err
	}
	return isolate.EachBlock(ctx, t, false, func(part *isolate.Trial, j *isolate.Judgement) (bool, error) { return true, p.add(part, j) })
}

// ownDType reports whether an entry was captured in the dtype that the order has it in.
func ownDType(t *isolate.Trial) bool { return t.DType == t.Entry.DTypeOf(t.Isolator.Env().DType) }

// whole adds an entry that the arithmetic of its form gives.
func (p *pooling) whole(ctx context.Context, t *isolate.Trial, form isolate.FormKey) (right bool, err error) {
	if err := t.ReadAll(); err != nil || !ownDType(t) {
		return false, err
	}
	if err := t.Prepare(ctx); err != nil {
		return false, err
	}
	j, err := p.forms.rightIn(ctx, t, form)
	if j == nil || err != nil {
		return false, err
	}
	return true, p.add(t, j)
}

// rightIn evaluates an entry in the arithmetic that gives every element. It returns nil if no known arithmetic
// does.
func (k *Forms) rightIn(ctx context.Context, t *isolate.Trial, form isolate.FormKey) (*isolate.Judgement, error) {
	j, err := t.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{}})
	if err != nil {
		return nil, err
	}
	off := j.Outside()
	if len(off) == 0 {
		return j, nil
	}
	f, err := k.Verdict(ctx, form)
	if err != nil || f.Own != nil && f.Own.Rewrites.Kernel() > 0 && f.Second == nil { // of a kernel nothing is estimated
		return nil, err
	}
	if left, _, err := t.Unexplained(ctx, j, &isolate.Arithmetic{}, off); err != nil || len(left) == 0 {
		return j, err
	}
	for _, a := range []*isolate.Arithmetic{f.Own, f.Second} {
		if a == nil || a.Rewrites != 0 {
			continue
		}
		if j, left, _, err := t.Judge(ctx, a); err != nil || len(left) == 0 {
			return j, err
		}
	}
	return nil, nil
}

// numbersIn are the numbers of a program that a configuration or a formula gives, each with its steps.
func numbersIn(p *program.Program) (all [][]int) {
	sites, steps := p.Sites()
	for _, s := range sites {
		if at := steps[s]; p.Steps[at[0]].Prim == program.Number && p.Steps[at[0]].Number().Value != 0 {
			all = append(all, at)
		}
	}
	return all
}

// add takes in what is computed of an entry, or of some tokens of it.
func (p *pooling) add(t *isolate.Trial, j *isolate.Judgement) error {
	rows := freshRows(t, j, p.seen)
	if len(rows) == 0 {
		return nil
	}
	for k, at := range numbersIn(t.Formula.Program) {
		s := &t.Formula.Steps[at[0]]
		if k >= len(p.sums) {
			p.sums = append(p.sums, &pooled{site: program.Site{Form: s.Form, Name: s.Site}, value: s.Number().Value, first: capture.Key(t.Node.Pass, t.Entry.Name, 0)})
		}
		d, err := derivativeOf(t, at)
		if err != nil {
			return err
		}
		p.sums[k].add(j, d, rows, p.bounds)
	}
	return nil
}

// freshRows are the rows of an entry that were not met before.
func freshRows(t *isolate.Trial, j *isolate.Judgement, seen map[uint64]bool) (rows [][2]int) {
	width := len(j.X.Data)
	if n := len(j.Y.Shape); n > 0 {
		width = max(j.Y.Shape[n-1], 1)
	}
	for at := 0; at+width <= len(j.X.Data); at += width {
		var h maphash.Hash
		h.SetSeed(belowSeed)
		var b [8]byte
		for _, v := range j.X.Data[at:][:width] {
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
			h.Write(b[:])
		}
		if key := h.Sum64(); !seen[key] {
			seen[key] = true
			rows = append(rows, [2]int{at, at + width})
		}
	}
	return rows
}

var belowSeed = maphash.MakeSeed()

// derivativeOf is that of the entry's value by the logarithm of a number, in exact arithmetic.
func derivativeOf(t *isolate.Trial, at []int) ([]float64, error) {
	var sides [2][]float64
	for k, by := range []float64{1 + belowStep, 1 - belowStep} {
		p := *t.Formula.Program
		p.Steps = slices.Clone(p.Steps)
		for _, i := range at {
			n := p.Steps[i].Number()
			n.Value *= by
			p.Steps[i].Payload = n
		}
		call := t.Call
		call.Arith = program.Arith{DType: t.Isolator.Env().DType}
		v, err := p.Eval(call)
		if err != nil {
			return nil, err
		}
		sides[k] = v.Data
	}
	d := sides[0]
	for i, v := range sides[1] {
		d[i] = (d[i] - v) / (2 * belowStep)
	}
	return d, nil
}

// add takes the rows of an entry in.
func (s *pooled) add(j *isolate.Judgement, d []float64, rows [][2]int, bounds bool) {
	huge := measure.HalfLargest(j.DType)
	for _, r := range rows {
		var ds, dd float64
		for i := r[0]; i < r[1]; i++ {
			x, y := j.X.Data[i], j.Y.Data[i]
			if j.Masked(i) || !(math.Abs(x) < huge) || !(math.Abs(y) < huge) || d[i]-d[i] != 0 {
				continue
			}
			u := isolate.LastPlace(j.DType, x)
			ds += float64(d[i] / u * ((y - floats.Round(j.DType, x)) / u))
			dd += float64(d[i] / u * (d[i] / u))
			s.moved += float64(d[i] * d[i])
			s.norm += float64(x * x)
			if bounds {
				s.bounds = append(s.bounds, j.X.Bound[i])
			}
		}
		if dd > 0 {
			s.ds, s.dd = append(s.ds, ds), append(s.dd, dd)
		}
	}
}

// estimate is that of a number; false where it moves nothing.
func (s *pooled) estimate() (Estimate, bool) {
	var ds, dd float64
	for k := range s.ds {
		ds, dd = ds+s.ds[k], dd+s.dd[k]
	}
	if dd == 0 || s.norm == 0 {
		return Estimate{}, false
	}
	off := ds / dd
	var byRow, byEntry float64
	for k, at := range s.entries {
		to := len(s.ds)
		if k+1 < len(s.entries) {
			to = s.entries[k+1]
		}
		sum := 0.0
		for r := at; r < to; r++ {
			rest := s.ds[r] - off*s.dd[r]
			byRow += float64(rest * rest)
			sum += rest
		}
		byEntry += float64(sum * sum)
	}
	e := Estimate{
		Form: kindOf(s.site.Form), Site: s.site.Name, Value: s.value, Off: measure.Number(off), Error: measure.Number(math.Sqrt(max(byRow, byEntry)) / dd),
		Effect: measure.Number(math.Abs(off) * math.Sqrt(s.moved/s.norm)), Entries: len(s.entries), Rows: len(s.ds), First: s.first,
	}
	e.Remarkable = e.Entries >= thresholds.Estimate.Entries && math.Abs(off) > thresholds.Estimate.Errors*float64(e.Error) && float64(e.Effect) > thresholds.Estimate.Effect &&
		float64(e.Effect) > thresholds.Estimate.Reach*s.reach() && !e.rounded()
	return e, true
}

// reach is the median of the elements' bounds, relative to their root mean square. Those around a rounding point are much wider.
func (s *pooled) reach() float64 {
	slices.Sort(s.bounds)
	return s.bounds[len(s.bounds)/2] / math.Sqrt(s.norm/float64(len(s.bounds)))
}

// rounded reports whether the number may be the right one, rounded to a narrower dtype.
func (e *Estimate) rounded() bool {
	for _, d := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
		if by := floats.Round(d, e.Value)/e.Value - 1; math.Abs(by-float64(e.Off)) <= thresholds.Estimate.Errors*float64(e.Error) {
			return true
		}
	}
	return false
}

// kindOf is the kind of the operation that a site is of.
func kindOf(form string) string {
	kind, _, _ := strings.Cut(form, "(")
	return kind
}

// Text is the estimate in words: "rms_norm eps 1e-06: off by -3.1 % ± 2.2 % in 21 entries".
func (e *Estimate) Text() string {
	noun := "entries"
	if e.Entries == 1 {
		noun = "entry"
	}
	return fmt.Sprintf("%s %s %g: relative error %+.2g ± %.1g, in %d %s", e.Form, e.Site, e.Value, float64(e.Off), float64(e.Error), e.Entries, noun)
}
