package diagnose

import (
	"maps"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

const (
	// mostIDs is the largest number of ids that a mistake lists with their rows, and mostRuled is the largest number of ids for which a rule is looked for. A
	// rule needs leastRuled ids.
	mostIDs    = 16
	mostRuled  = 1 << 12
	leastRuled = 3
)

// rowRules give the row that a port reads for an id, by the numbers N and K of a mistake.
var rowRules = map[Kind]func(m Mistake, id int) int{
	"ids.limited": func(m Mistake, id int) int { return min(id, m.N) },
	"ids.modulo":  func(m Mistake, id int) int { return id % max(m.N, 1) },
	"ids.shifted": func(m Mistake, id int) int {
		if id < m.N {
			return id
		}
		return id + m.K
	},
}

// ruled is a table with its rows in the order that a rule gives.
func ruled(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	rows, _ := w.Size()
	if rows < 2 || m.N < 0 || m.N >= rows {
		return nil
	}
	return reordered(w, func(i int) int { return min(max(rowRules[m.Kind](m, i), 0), rows-1) })
}

// rowsMistake is the mistake of ids that have wrong rows of a table: a rule for all ids, or a list of the ids. right are ids with their own rows. ok is false
// for many ids without a rule.
func rowsMistake(e *Entry, rows map[int]int, right map[int]bool) (m Mistake, ok bool) {
	maps.DeleteFunc(right, func(id int, _ bool) bool { _, wrong := rows[id]; return wrong })
	if _, at := tableOf(e); at >= 0 && len(rows) >= leastRuled {
		if m, ok = ruleOf(rows, slices.Sorted(maps.Keys(right))); ok {
			m.Of, m.Place = weightTerm(e.Weights[at].Name), order.NameOf(e.Weights[at].Name).Role()
			return m, true
		}
	}
	if len(rows) == 0 || len(rows) > mostIDs {
		return m, false
	}
	var runs []sourceRun
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		runs = append(runs, sourceRun{From: id, To: id + 1, Is: rows[id]})
	}
	return Mistake{Kind: "lookup.other-rows", Place: "lookup.ids", Runs: makeRuns(runs...)}, true
}

// ruleOf is the rule that gives some ids their wrong rows and no other id a wrong row; ok is false without a rule, or with several.
func ruleOf(rows map[int]int, right []int) (m Mistake, ok bool) {
	ids := slices.Sorted(maps.Keys(rows))
	first, divisors := ids[0], divisorsOf(rows, right)
	var all []Mistake
	switch len(divisors) {
	case 0:
		all = []Mistake{{Kind: "ids.limited", N: rows[first]}, {Kind: "ids.shifted", N: first, K: rows[first] - first}}
	case 1:
		all = []Mistake{{Kind: "ids.modulo", N: divisors[0]}}
	}
	for _, m := range all {
		fits := func(id, row int) bool { return m.N >= 0 && row >= 0 && rowRules[m.Kind](m, id) == row }
		if !slices.ContainsFunc(ids, func(id int) bool { return !fits(id, rows[id]) }) && !slices.ContainsFunc(right, func(id int) bool { return !fits(id, id) }) {
			return m, true
		}
	}
	return m, false
}

// divisorsOf lists numbers above all rows that divide the difference of each id and its row: the rows may be remainders by each of them.
func divisorsOf(rows map[int]int, right []int) (all []int) {
	common, above := 0, slices.Max(append(right, 0))+1
	for id, row := range rows {
		above = max(above, row+1)
		for a := id - row; a != 0; {
			common, a = a, common%a
		}
	}
	common = max(common, -common)
	for n := above; n <= common; n++ {
		if common%n == 0 {
			all = append(all, n)
		}
	}
	return all
}
