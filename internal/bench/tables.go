package main

import (
	"fmt"
	"slices"
	"strings"
)

// tally counts runs with one fault.
type tally struct {
	traces
	verdicts
	accused            int // healthy entries
	roles, namedRoles  int // those of entries that have a fault
	numbers, recovered int // those of faults that have one
}

// traces counts runs by what their traces show of the fault.
type traces struct{ runs, excused, invisible, located, proven int }

// verdicts counts runs by what the names say.
type verdicts struct{ named, words, wrong, unread int }

func (t *tally) add(r *result) {
	if r.Invisible {
		t.invisible++
		return
	}
	t.accused += len(r.Accused)
	if r.excused() != "" {
		t.excused++
	} else {
		t.runs++
		if r.Located {
			t.located++
		} else if r.isProven() {
			t.proven++
		}
		if r.isNamed() {
			t.named++
		}
		for _, n := range r.Names {
			t.roles++
			if n.verdict == right {
				t.namedRoles++
			}
		}
		if len(r.Faults[0].Number) > 0 {
			t.numbers++
			if r.recovered() {
				t.recovered++
			}
		}
	}
	switch {
	case r.any(wrong):
		t.wrong++
	case r.any(unread):
		t.unread++
	case !r.any(right) && r.any(words):
		t.words++
	}
}

// of are the runs of one fault, reparametrisations apart.
func of(results []result, keep func(*result) bool) tally {
	var t tally
	for i := range results {
		if r := &results[i]; len(r.Faults) == 1 && !r.benign() && keep(r) {
			t.add(r)
		}
	}
	return t
}

func share(n, all int) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d (%.1f %%)", n, all, 100*float64(n)/float64(all))
}

var dtypes = []string{"float32", "bfloat16"}

// scores is the table of a half's runs, in transformers' arithmetic or in others.
func scores(results []result, half int, strict bool) string {
	var out strings.Builder
	out.WriteString("| dtype | level | runs | located | named | entries' roles named | number recovered | other words | wrong | not read | healthy entries accused | shown to be rounding | invisible | like rounding |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, dtype := range dtypes {
		for _, level := range levels {
			t := of(results, func(r *result) bool {
				return r.Half == half && r.strict() == strict && r.DType == dtype && r.Level == level
			})
			fmt.Fprintf(&out, "| %s | %d | %d | %s | %s | %s | %s | %d | %d | %d | %d | %d | %d | %d |\n", dtype, level, t.runs, share(t.located, t.runs), share(t.named, t.runs),
				share(t.namedRoles, t.roles), share(t.recovered, t.numbers), t.words, t.wrong, t.unread, t.accused, t.proven, t.invisible, t.excused)
		}
	}
	return out.String()
}

// byEngine is the table of a half's runs by arithmetic.
func byEngine(results []result, half int) string {
	var names []string
	for i := range results {
		if r := &results[i]; r.Half == half && !slices.Contains(names, r.Engine) {
			names = append(names, r.Engine)
		}
	}
	slices.Sort(names)
	var out strings.Builder
	out.WriteString("| arithmetic | runs | located | named, level 3 | named, level 2 |\n|---|---|---|---|---|\n")
	for _, name := range names {
		var at [2]tally
		for k, level := range levels {
			at[k] = of(results, func(r *result) bool { return r.Half == half && r.Engine == name && r.Level == level })
		}
		fmt.Fprintf(&out, "| %s | %d | %s | %s | %s |\n", name, at[0].runs+at[1].runs, share(at[0].located+at[1].located, at[0].runs+at[1].runs),
			share(at[0].named, at[0].runs), share(at[1].named, at[1].runs))
	}
	return out.String()
}

// controls is the table of runs without a fault.
func controls(results []result) string {
	var out strings.Builder
	out.WriteString("| arithmetic | dtype | runs × levels | with other bits | ties | mismatches | names |\n|---|---|---|---|---|---|---|\n")
	type key struct{ engine, dtype string }
	type count struct{ runs, other, ties, accused, names int }
	sums, keys := map[key]*count{}, []key{}
	for i := range results {
		r := &results[i]
		if len(r.Faults) > 0 {
			continue
		}
		k := key{r.Engine, r.DType}
		if sums[k] == nil {
			sums[k] = &count{}
			keys = append(keys, k)
		}
		sums[k].runs++
		sums[k].ties += r.Ties
		if !r.Strictly {
			sums[k].other++
		}
		sums[k].accused += len(r.Accused)
		sums[k].names += len(r.Names)
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.engine+a.dtype, b.engine+b.dtype) })
	for _, k := range keys {
		fmt.Fprintf(&out, "| %s | %s | %d | %d | %d | %d | %d |\n", k.engine, k.dtype, sums[k].runs, sums[k].other, sums[k].ties, sums[k].accused, sums[k].names)
	}
	return out.String()
}

// reparametrisations is the table of runs whose logits are right though entries are not.
func reparametrisations(results []result) string {
	var out strings.Builder
	out.WriteString("| what | run | level | beside transformers | at its own entries | name |\n|---|---|---|---|---|---|\n")
	for i := range results {
		r := &results[i]
		if !r.benign() {
			continue
		}
		beside, own, name := "mismatch", "nothing", "–"
		if r.Silent || r.Invisible {
			beside = "silent"
		}
		if r.Located {
			own = "BUG"
		}
		for _, n := range r.Names {
			if isName(n.Finding) {
				name = fmt.Sprintf("%s: %s", n.verdict, n.Finding.Text())
				break
			}
		}
		fmt.Fprintf(&out, "| %s | %s, %s | %d | %s | %s | %s |\n", r.Faults[0].Name, r.DType, r.Engine, r.Level, beside, own, name)
	}
	return out.String()
}

// misleading is the table of names where the right one is not to be had: its class is not tried, or there are two faults.
func misleading(results []result, half int) string {
	var asked, none, fine, bad, open int
	type pair struct{ roles, none, fine, bad, open int }
	pairs := map[bool]*pair{true: {}, false: {}}
	for i := range results {
		r := &results[i]
		if r.Half != half {
			continue
		}
		for _, n := range r.Names {
			if n.asked() {
				asked++
				count(n.otherVerdict, &none, &fine, &bad, &open)
			}
			if len(r.Faults) > 1 {
				p := pairs[r.strict()]
				p.roles++
				count(n.verdict, &p.none, &p.fine, &p.bad, &p.open)
			}
		}
	}
	var out strings.Builder
	out.WriteString("| | names looked for | none | one of what was planted | misleading | not read |\n|---|---|---|---|---|---|\n")
	row := func(what string, all, none, fine, bad, open int) {
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %s | %d |\n", what, all, none, fine, share(bad, all), open)
	}
	row("class of the right name not tried", asked, none, fine, bad, open)
	for _, strict := range []bool{true, false} {
		p, what := pairs[strict], "two faults at once, in another arithmetic"
		if strict {
			what = "two faults at once, in transformers' arithmetic"
		}
		row(what, p.roles, p.none, p.fine, p.bad, p.open)
	}
	return out.String()
}

func count(v verdict, none, fine, bad, open *int) {
	switch v {
	case right, words:
		*fine++
	case wrong:
		*bad++
	case unread:
		*open++
	default:
		*none++
	}
}

// costs is the table of what searches took.
func costs(results []result) string {
	var out strings.Builder
	out.WriteString("| level | searches | seconds, median | 90 % | most | hypotheses, median | 90 % | most | ended by their bound |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, level := range levels {
		seconds, tried, stopped := took(slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Level != level }))
		if len(tried) == 0 {
			continue
		}
		n := len(tried)
		fmt.Fprintf(&out, "| %d | %d | %.2f | %.2f | %.1f | %d | %d | %d | %d |\n", level, n,
			seconds[n/2].Seconds(), seconds[n*9/10].Seconds(), seconds[n-1].Seconds(), tried[n/2], tried[n*9/10], tried[n-1], stopped)
	}
	return out.String()
}

// outcome is a run at a level in a word.
func (r *result) outcome() string {
	switch {
	case len(r.Faults) == 0 && len(r.Accused) == 0:
		return "silent"
	case r.Invisible:
		return "invisible"
	case len(r.Accused) > 0:
		return "**accuses " + r.Accused[0] + "**"
	case r.any(wrong):
		return "**wrong**"
	case r.any(right):
		return "named"
	case r.any(words):
		return "other words"
	case r.any(unread):
		return "not read"
	case r.ByLimits:
		return "located by limits"
	case r.Located:
		return "located"
	case r.excused() != "":
		return "like rounding"
	case r.isProven():
		return "rounding"
	case r.benign() && r.Silent: // the change cancels: there is nothing to locate
		return "silent"
	}
	return "**not located**"
}

// faultTable has a line for each fault of a half.
func faultTable(results []result, half int) string {
	var out strings.Builder
	out.WriteString("| fault | checkpoint |")
	for _, dtype := range dtypes {
		fmt.Fprintf(&out, " %s, level 3 | level 2 | another arithmetic | level 3 | level 2 |", dtype)
	}
	out.WriteString(" what |\n|" + strings.Repeat("---|", 13) + "\n")
	var names []string
	of := map[string][]*result{}
	for i := range results {
		if r := &results[i]; r.Half == half && len(r.Faults) == 1 {
			name := r.Faults[0].Name
			if of[name] == nil {
				names = append(names, name)
			}
			of[name] = append(of[name], r)
		}
	}
	for _, name := range names {
		first, cells := of[name][0], map[string]string{}
		for _, r := range of[name] {
			cells[fmt.Sprint(r.DType, r.strict(), r.Level)] = r.outcome()
			if !r.strict() {
				cells[r.DType] = r.Engine
			}
		}
		fmt.Fprintf(&out, "| %s | %s |", first.Faults[0].Name, first.Checkpoint)
		for _, dtype := range dtypes {
			fmt.Fprintf(&out, " %s | %s | %s | %s | %s |", cells[fmt.Sprint(dtype, true, 3)], cells[fmt.Sprint(dtype, true, 2)], cells[dtype],
				cells[fmt.Sprint(dtype, false, 3)], cells[fmt.Sprint(dtype, false, 2)])
		}
		what := strings.TrimSuffix(first.Faults[0].What, ".")
		if right := first.Faults[0].Right; right != "" {
			what += " (a right name says: " + right + ")"
		}
		fmt.Fprintf(&out, " %s |\n", what)
	}
	return out.String()
}
