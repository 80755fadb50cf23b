package arithmetic

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// Engines make rotary tables in several ways, and each way is an arithmetic. The bounds of a way follow from the errors of its functions and from its
// roundings, at the configuration's base and scaling. Nothing is fitted to the trace, and the candidates are as few as the ways. So a way that gives every
// element of every entry of a form needs no further proof. But transformers' way must not be nearer to the trace. Far from the first token the
// bounds of a way hold small mistakes, too. An engine that makes its tables as transformers does, and has such a mistake, is nearer to transformers' way.

// tableSites are the sites of a program at which a rotary table may be made another way.
func tableSites(p *program.Program) []program.Site {
	var all []program.Site
	sites, steps := p.Sites()
	for _, at := range sites {
		if p.Steps[steps[at][0]].Prim == program.Angle {
			all = append(all, at)
		}
	}
	return all
}

// choicesOf groups the sites of a program into choices: the sites of all tables are a single choice, and every
// other site is a choice of its own.
func choicesOf(p *program.Program, tables []program.Site) [][]program.Site {
	var all [][]program.Site
	sites, _ := p.Sites()
	for _, at := range sites {
		if !slices.Contains(tables, at) {
			all = append(all, []program.Site{at})
		}
	}
	if len(tables) > 0 {
		all = append(all, tables)
	}
	return all
}

// tables returns the presets with another way of making tables, and transformers' own arithmetic elsewhere; none
// for a program without tables.
func (b *presetter) tables() []*isolate.Arithmetic {
	sites := tableSites(b.p)
	if len(sites) == 0 {
		return nil
	}
	var all []*isolate.Arithmetic
	for way := program.WayInverse + 1; way < program.WaysOfAngles; way++ {
		a := makingTables((&isolate.Arithmetic{Rewrites: b.rewrites}), sites, way)
		a.Preset = tablePreset(way)
		all = append(all, a)
	}
	return all
}

// besideTables are some presets with each way of making tables. The entries have to prove the preset without the help of the way.
func besideTables(tables, presets []*isolate.Arithmetic) []*isolate.Arithmetic {
	var all []*isolate.Arithmetic
	for _, way := range tables {
		for _, plain := range presets {
			a := *plain
			a.Preset, a.Beside = isolate.Preset{}, way
			a.At = maps.Clone(plain.At)
			maps.Copy(a.At, way.At)
			all = append(all, &a)
		}
	}
	return all
}

// makingTables is an arithmetic with tables by a way.
func makingTables(a *isolate.Arithmetic, sites []program.Site, way uint8) *isolate.Arithmetic {
	b := *a
	if b.At = maps.Clone(a.At); b.At == nil {
		b.At = map[program.Site]program.Choice{}
	}
	for _, at := range sites {
		b.At[at] = program.Choice{Way: way}
	}
	return &b
}

// provenByTables reports whether an arithmetic makes tables in another way, does everything else as transformers does, and is not further from the trace than
// transformers' way. The nearer way gives more elements of a row to the bit. Two ways that are equally near win half of the rows each. Chance does not
// give either way Thresholds.Nearer.Deviations standard deviations more. Where attention is between the tables and the trace, and transformers' way leaves too few elements, which
// a small mistake in attention may have moved as well, the other way has to be the nearer one.
func provenByTables(ctx context.Context, a *isolate.Arithmetic, of []*isolate.Evidence) (bool, error) {
	if only, err := onlyTables(a, of); !only || err != nil {
		return false, err
	}
	way, own, err := nearerRows(ctx, a, of)
	if err != nil {
		return false, err
	}
	if elements, rows := counted(of); rewrite.Fuses(of[0].Formula.Program) && !Enough(elements, rows, false) {
		return surely(way, own), nil
	}
	return !surely(own, way), nil
}

// maybeTables reports whether some entries show too little of another way of making tables to tell it from a mistake.
func maybeTables(ctx context.Context, a *isolate.Arithmetic, of []*isolate.Evidence) (bool, error) {
	only, err := onlyTables(a, of)
	if elements, rows := counted(of); !only || err != nil || Enough(elements, rows, false) {
		return false, err
	}
	way, own, err := nearerRows(ctx, a, of)
	return err == nil && !surely(own, way), err
}

// nearerRows counts the rows in which an arithmetic gives more elements to the bit than transformers' arithmetic does, and the rows in which it gives fewer.
func nearerRows(ctx context.Context, a *isolate.Arithmetic, of []*isolate.Evidence) (more, fewer int, err error) {
	for _, e := range of {
		j, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: a})
		if err != nil {
			return 0, 0, err
		}
		k, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{}})
		if err != nil {
			return 0, 0, err
		}
		m, f := nearerIn(j, k)
		more, fewer = more+m, fewer+f
	}
	return more, fewer, nil
}

// surely reports whether one of two counts is larger than chance makes it where each row is counted by either with the same chance.
func surely(more, fewer int) bool {
	return float64(more-fewer) > thresholds.Nearer.Deviations*math.Sqrt(float64(more+fewer))
}

// nearerIn compares two judgements of a tensor row by row, and counts the rows in which each gives more elements to the bit than the other.
func nearerIn(j, k *isolate.Judgement) (first, second int) {
	width := 1
	if n := len(j.Y.Shape); n > 0 {
		width = max(j.Y.Shape[n-1], 1)
	}
	for from := 0; from < len(j.Y.Data); from += width {
		more := 0
		for i := from; i < from+width; i++ {
			y := j.Y.Data[i]
			if j.Round(j.X.Data[i]) == y {
				more++
			}
			if k.Round(k.X.Data[i]) == y {
				more--
			}
		}
		if more > 0 {
			first++
		} else if more < 0 {
			second++
		}
	}
	return first, second
}

// onlyTables reports whether an arithmetic differs from transformers in the way of making tables and in nothing else.
func onlyTables(a *isolate.Arithmetic, of []*isolate.Evidence) (bool, error) {
	if len(a.At) == 0 || len(of) == 0 || a.Rewrites != 0 || a.Open || a.Wide {
		return false, nil
	}
	p, err := of[0].Rewritten(a.Rewrites)
	if err != nil {
		return false, err
	}
	tables := tableSites(p)
	for at := range a.At {
		if !slices.Contains(tables, at) {
			return false, nil
		}
	}
	return true, nil
}

// nearestTables sets the way of making tables named in the report: the nearest to the elements, among the ways that
// explain all entries. The report also names the ways at about the same distance.
func nearestTables(ctx context.Context, s *search, a *isolate.Arithmetic, tables []program.Site) (*isolate.Arithmetic, error) {
	if len(tables) == 0 {
		return a, nil
	}
	now, ok := a.At[tables[0]]
	if !ok || now.Way == program.WayInverse {
		return a, nil
	}
	off, err := distance(ctx, s.left, a)
	if err != nil {
		return nil, err
	}
	best, far := a, map[uint8]float64{now.Way: off}
	for way := program.WayInverse + 1; way < program.WaysOfAngles; way++ {
		b := makingTables(a, tables, way)
		if way == now.Way {
			continue
		} else if holds, err := s.explains(ctx, b); err != nil {
			return nil, err
		} else if !holds {
			continue
		}
		if far[way], err = distance(ctx, s.left, b); err != nil {
			return nil, err
		}
		if far[way] < far[best.At[tables[0]].Way] {
			best = b
		}
	}
	own := best.At[tables[0]].Way
	if best != a && a.Preset.Kind == isolate.PresetTables {
		best.Preset = tablePreset(own)
	}
	for way := range program.WaysOfAngles {
		if off, ok := far[way]; ok && way != own && off < thresholds.Nearer.Alike*far[own] {
			best.Others = append(best.Others, way)
		}
	}
	return best, nil
}

// distance is how far some entries are from an arithmetic: the sum of the squares of what their elements are off by, in units of their last
// place.
func distance(ctx context.Context, of []*isolate.Evidence, a *isolate.Arithmetic) (far float64, err error) {
	for _, e := range of {
		j, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: a})
		if err != nil {
			return 0, err
		}
		for i, y := range j.Y.Data {
			off := (y - floats.Round(j.DType, j.X.Data[i])) / isolate.LastPlace(j.DType, y)
			if off-off == 0 {
				far += float64(off * off)
			}
		}
	}
	return far, nil
}

// Compiled layers may read a rotary table differently, and so may queries and keys of one layer: in Gemma 3, compiled by inductor, one layer rounds a
// table for the queries only, since another kernel has written the rounded table. So entries that the form's arithmetic does not explain may have a
// second arithmetic under a known kernel, in which queries and keys have sites of their own.

// mostIn makes a kernel that explains most entries the arithmetic of the form. Unexplained elements of the other
// entries are suspect, unless a second arithmetic explains them.
func (f *Form) mostIn(ctx context.Context, own *isolate.Arithmetic, others []*isolate.Evidence) error {
	f.Own = own
	if len(others) == 0 {
		return nil
	}
	var err error
	if f.Second, err = apartFrom(ctx, own, others); f.Second != nil || err != nil {
		return err
	}
	f.HasSuspects = true
	held := len(f.Entries) - len(others)
	if others, err = leftUnder(ctx, others, own); err != nil {
		return err
	}
	if held < thresholds.Proof.Elements*len(others) {
		f.thin, err = thinUnder(ctx, own, others)
	}
	return err
}

// apartFrom looks for the second arithmetic of a form with a known kernel: float32 inside some operations before
// the kernel, with separate sites for queries and keys. It has to explain some entries completely, with as much
// evidence against the form's own arithmetic as against transformers'. apartFrom returns nil if the search fails.
func apartFrom(ctx context.Context, own *isolate.Arithmetic, others []*isolate.Evidence) (*isolate.Arithmetic, error) {
	kernel := own
	if own.Beside != nil {
		kernel = own.Beside
	}
	left := (&Form{Entries: others}).Unexplained()
	if !toTheBit(kernel) || len(left) < len(others) {
		return nil, nil
	}
	s := newSearch(left, left)
	if s.dtype == hooks.F32 {
		return nil, nil
	}
	apart := *kernel
	apart.Rewrites |= program.ReadApart
	return eachInFront(ctx, s, []*isolate.Arithmetic{&apart}, func(a *isolate.Arithmetic) (bool, error) {
		a.Beside = own
		return provenBy(ctx, a, left)
	})
}
