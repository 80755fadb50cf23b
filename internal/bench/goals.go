package main

import (
	"fmt"
	"slices"
	"strings"
)

// goal is a line of the table of goals.
type goal struct {
	what, want, got string
	met             bool
}

// atLeast holds a share to a goal in percent.
func atLeast(what string, percent float64, n, all int) goal {
	return goal{what, fmt.Sprintf("≥ %g %%", percent), share(n, all), all > 0 && 100*float64(n) >= percent*float64(all)}
}

func none(what string, n int) goal { return goal{what, "0", fmt.Sprint(n), n == 0} }

func atMost(what string, percent float64, n, all int) goal {
	return goal{what, fmt.Sprintf("≤ %g %%", percent), share(n, all), all > 0 && 100*float64(n) <= percent*float64(all)}
}

// goals are those of a half, both arithmetics together.
func goals(results []result, half int) (all []goal) {
	sum := func(dtype string, level int) tally {
		return of(results, func(r *result) bool {
			return r.Half == half && (dtype == "" || r.DType == dtype) && (level == 0 || r.Level == level)
		})
	}
	t := sum("", 0)
	located := atLeast("located, or shown to be what roundings give", 100, t.located+t.proven, t.runs)
	if t.proven > 0 {
		located.got += fmt.Sprintf("; %d shown", t.proven)
	}
	all = append(all, located)
	for _, g := range []struct {
		level   int
		dtype   string
		percent float64
	}{{3, "float32", 95}, {3, "bfloat16", 90}, {2, "float32", 85}, {2, "bfloat16", 80}} {
		t := sum(g.dtype, g.level)
		all = append(all, atLeast(fmt.Sprintf("named at level %d, %s", g.level, g.dtype), g.percent, t.named, t.runs))
	}
	all = append(all, none("runs with a wrong name", t.wrong), none("runs with a name that nobody has read", t.unread), none("healthy entries accused", t.accused))
	asked, bad := 0, 0
	pairs, pairsBad := map[bool]int{}, map[bool]int{}
	for i := range results {
		for _, n := range results[i].Names {
			if results[i].Half != half {
				continue
			}
			if n.asked() {
				asked++
				if n.otherVerdict == wrong || n.otherVerdict == unread {
					bad++
				}
			}
			if len(results[i].Faults) > 1 {
				pairs[results[i].strict()]++
				if n.verdict == wrong || n.verdict == unread {
					pairsBad[results[i].strict()]++
				}
			}
		}
	}
	return append(all, atMost("misleading or not read, class of the right name out (goal 3 %)", 6, bad, asked),
		none("misleading or not read, two faults, transformers' arithmetic", pairsBad[true]),
		atMost("misleading or not read, two faults, another arithmetic", 4, pairsBad[false], pairs[false]))
}

// goalTable is the table of goals, both halves.
func goalTable(results []result) string {
	var out strings.Builder
	out.WriteString("| half | what | goal | measured | |\n|---|---|---|---|---|\n")
	for _, half := range halves(results) {
		for _, g := range goals(results, half) {
			fmt.Fprintf(&out, "| %d | %s | %s | %s | %s |\n", half, g.what, g.want, g.got, met(g.met))
		}
	}
	accused, names, misnamed := 0, 0, 0
	for i := range results {
		if len(results[i].Faults) == 0 {
			accused, names = accused+len(results[i].Accused), names+len(results[i].Names)
		} else if results[i].benign() && (results[i].any(wrong) || results[i].any(unread)) {
			misnamed++
		}
	}
	for _, g := range []goal{none("mismatches of controls", accused), none("names of controls", names), none("changes that cancel, with a wrong name or one that nobody has read", misnamed)} {
		fmt.Fprintf(&out, "| | %s | %s | %s | %s |\n", g.what, g.want, g.got, met(g.met))
	}
	return out.String()
}

func met(yes bool) string {
	if yes {
		return "met"
	}
	return "**not met**"
}

// halves are the numbers of the halves that there are runs of.
func halves(results []result) (all []int) {
	for i := range results {
		if h := results[i].Half; h > 0 && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	slices.Sort(all)
	return all
}
