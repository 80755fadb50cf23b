package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// slackOfStatistic is the relative error of a statistic, by the order of its sum and the roundings of its steps.
const slackOfStatistic = 0x1p-20

// rowStatistics describes a number of the formula that differs by row, and is multiplied or divided by a statistic of each row of an operand, or is
// a multiple of the statistic.
func rowStatistics(x *difference) *Description {
	t := x.first.signed(x.m)
	for _, inner := range x.inners() {
		if !inner.number || !slices.Contains(t.Numbers(), t.At(inner.at).Step) {
			continue
		}
		n := len(inner.all[0].want)
		for _, o := range inner.all[1:] {
			n = max(n, len(o.want))
		}
		if n < leastRows || countWrongRows(x.results) < leastRows || contradictory(inner.all) {
			continue
		}
		for _, at := range rowsRead(x.search, t) {
			if d := x.statisticFor(&inner, at); d != nil || x.err != nil {
				return d
			}
		}
	}
	return nil
}

// countWrongRows counts the rows with elements that the arithmetic does not give.
func countWrongRows(results []observed) (n int) {
	for k := range results {
		o := &results[k]
		last := -1
		for i, wrong := range o.wrong {
			if row := i / max(o.shape[len(o.shape)-1], 1); wrong && row != last {
				n, last = n+1, row
			}
		}
	}
	return n
}

// contradictory reports whether most values are no numbers, since the elements of a row contradict each other.
func contradictory(all []observed) bool {
	n, of := 0, 0
	for k := range all {
		for _, want := range all[k].want {
			if of++; want-want != 0 {
				n++
			}
		}
	}
	return 2*n > of
}

// wrongNumbers counts the values that are not the right value.
func wrongNumbers(all []observed) (n int) {
	for k := range all {
		o := &all[k]
		for i, want := range o.want {
			if !silent(o, i) && math.Abs(want-o.value[i]) > 2*off(o, i) {
				n++
			}
		}
	}
	return n
}

// rowsRead are the operands with rows that are tensors: inputs of the program, and results of operations within a cut.
func rowsRead(s *search, t *edit.StepIndex) (all []edit.Place) {
	var seen []program.Var
	for i := range t.Steps {
		for a, v := range t.Steps[i].Args {
			if v.Last() < leastRows || slices.ContainsFunc(seen, v.Same) || t.Steps[v.Step].Prim != program.Input && !(t.Steps[v.Step].Prim.Computes() && t.Last(v.Step)) {
				continue
			}
			if at := (edit.Place{Step: t.PlaceOf(i).Step, Arg: a}); len(t.Copies(at)) == 1 && len(all) < maxPlaces {
				seen, all = append(seen, v), append(all, at)
			}
		}
	}
	return all
}

// statisticFor describes a number by the statistics of the rows of an operand that give its values. A multiple of a statistic with a number of its own is
// proposed only if no statistic gives the values without one.
func (x *difference) statisticFor(inner *inner, at edit.Place) *Description {
	t := x.first.signed(x.m)
	step := t.At(inner.at).Step
	right := t.Steps[step].Number().Value
	m := Mistake{
		Place: x.site(x.first, step), Of: numberTerm(x.subject, t.Program, step), By: x.value(x.first, t.At(at)),
		Right: some(right), Edit: placed(inner.at, at),
	}
	told := wrongNumbers(inner.all) >= leastRows // else the values are near the right number, and only the program decides
	var given, multiples []Mistake
	for _, f := range statistics {
		values := x.rowsOf(inner.all, f, at)
		if values == nil {
			return nil
		}
		m.For = Term{Kind: RowStatistic, Name: f.name}
		times, ok := multipleOf(inner.all, values, false)
		switch m.X = (Number{}); {
		case ok && times.has(right):
			m.Kind = "number.times-statistic"
			given = append(given, m)
		case ok && times.has(1):
			m.Kind = "number.statistic"
			given = append(given, m)
		case ok && told:
			m.Kind = "number.statistic"
			for _, n := range numbersIn(x.search, &times, 0) {
				m.X = some(n.value)
				multiples = append(multiples, m)
			}
		}
		if over, ok := multipleOf(inner.all, values, true); ok && over.has(right) {
			m.Kind, m.X = "number.over-statistic", Number{}
			given = append(given, m)
		}
	}
	if len(given) == 0 {
		given = multiples
	}
	if len(given) == 0 {
		return nil
	}
	d := &Description{Kind: "described.statistic", Of: m.Of, Like: m.By, Cases: []string{given[0].statistic()}}
	for k := range inner.all {
		d.Elements += len(inner.all[k].want)
	}
	d.Explained, d.Numbers, d.Wrong = d.Elements, 1, 1
	draft := x.draft(d)
	draft.proposes, draft.all, draft.quiet = given, true, !told
	return d
}

// rowsOf is a statistic of the rows of an operand, for each element of a number's values in each entry; nil if the rows do not fit the values.
func (x *difference) rowsOf(all []observed, f statistic, at edit.Place) (values [][]float64) {
	for n := range all {
		o := &all[n]
		t, ed := o.e.signed(x.m), edit.NewEditor(o.e.Program)
		copies := t.Copies(at)
		if len(copies) != 1 {
			return nil
		}
		v := f.of(ed, t.Steps[copies[0]].Args[at.Arg])
		if shapeOfRows(program.Size(v.Shape), o.shape) == nil {
			return nil
		}
		ed.Return(v)
		d := ended(ed)
		kept, err := x.m.values(o.e)
		if x.failed(err) || d == nil {
			return nil
		}
		y, err := kept.Eval(d)
		if x.failed(outside(err)) || len(y.Data) == 0 {
			return nil
		}
		each, of := len(o.want)/len(y.Data), make([]float64, len(o.want))
		for i := range of {
			of[i] = y.Data[i/each]
		}
		values = append(values, of)
	}
	return values
}

// multipleOf is the interval of the number whose product with a statistic, or whose quotient by it, is the value of each row. It is not ok if no number
// gives every row, or if all rows would have nearly the same value: then the number is no function of the row.
func multipleOf(all []observed, values [][]float64, over bool) (g group, ok bool) {
	g.low, g.high = math.Inf(-1), math.Inf(1)
	least, most := math.Inf(1), math.Inf(-1)
	for n := range all {
		o := &all[n]
		for i, want := range o.want {
			by := values[n][i]
			if over {
				by = 1 / by
			}
			e := off(o, i) + slackOfStatistic*math.Abs(want)
			switch {
			case silent(o, i) || values[n][i] == 0 && !(math.Abs(want) > e): // a row of zeros may be divided by 0
				continue
			case want-want != 0 || by-by != 0 || by == 0:
				return g, false
			}
			a, b := (want-e)/by, (want+e)/by
			g.low, g.high, g.n = max(g.low, min(a, b)), min(g.high, max(a, b)), g.n+1
			least, most = min(least, by), max(most, by)
		}
	}
	return g, g.n >= leastRows && g.low <= g.high && most-least > nearOne*max(math.Abs(least), math.Abs(most))
}
