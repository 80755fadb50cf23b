package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// field is a part of a line that a change of the code may not change.
type field struct {
	name string
	of   func(line) string
	same func(was, is string) bool
}

func equal(was, is string) bool { return was == is }

// ofTraces is the name of the field that is no result: lines of other traces say nothing about the code.
const ofTraces = "trace"

var fields = []field{
	{ofTraces, func(l line) string { return l.Trace }, equal},
	{"located", func(l line) string { return l.At }, equal},
	{"status", func(l line) string { return l.Status }, equal},
	{"class", func(l line) string { return l.Class }, equal},
	{"step", func(l line) string { return l.Step }, equal},
	{"place", func(l line) string { return l.Where }, equal},
	{"numbers", func(l line) string { return l.Numbers }, sameNumbers},
	{"config", func(l line) string { return l.Config }, sameNumbers},
	{"proof", func(l line) string { return l.Proof }, equal},
}

// sameNumbers holds two cells to each other word by word: of numbers three digits count.
func sameNumbers(was, is string) bool {
	return slices.EqualFunc(strings.Fields(was), strings.Fields(is), func(a, b string) bool {
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		return a == b || errX == nil && errY == nil && near(x, y)
	})
}

// change is what some lines had and have now.
type change struct{ was, is string }

// difference is what two lots of goldens differ in.
type difference struct {
	errors  map[string]map[change][]string // by field, the keys of the lines
	words   map[change][]string
	carried []reading // names in other words, with the verdict of the words before
	lines   goldens   // as they are found now, with the verdicts that are carried
	was, is counts
}

// absent stands for a line that is not there, in place of a status.
const absent = "no such line"

// differenceOf compares today's findings with the goldens. A mistake named in new words that nobody has read keeps the verdict of the old
// words.
func differenceOf(was, is goldens) *difference {
	d := &difference{errors: map[string]map[change][]string{}, words: map[change][]string{}}
	now := map[string]int{}
	for k, l := range is {
		now[l.key()] = k
	}
	after := slices.Clone(is)
	for _, before := range was {
		k, ok := now[before.key()]
		if !ok {
			d.add("status", change{before.Status, absent}, before.key())
			continue
		}
		delete(now, before.key())
		for _, f := range fields {
			if a, b := f.of(before), f.of(after[k]); !f.same(a, b) {
				d.add(f.name, change{a, b}, before.key())
			}
		}
		if before.Words != after[k].Words {
			c := change{before.Words, after[k].Words}
			d.words[c] = append(d.words[c], before.key())
		}
		if l := &after[k]; l.Verdict == string(unread) && before.Verdict != string(unread) && sameMistake(before, *l) {
			l.Verdict = before.Verdict
			d.carried = append(d.carried, reading{verdict: verdict(l.Verdict), fault: pairName(l.of), key: l.finding.Key()})
		}
	}
	for _, k := range slices.Sorted(maps.Values(now)) {
		d.add("status", change{absent, is[k].Status}, is[k].key())
	}
	d.lines, d.was, d.is = after, countsOf(was), countsOf(after)
	return d
}

// sameMistake reports whether two lines name one mistake, in whatever words.
func sameMistake(a, b line) bool {
	return a.Status == b.Status && a.Class == b.Class && a.Step == b.Step && sameNumbers(a.Numbers, b.Numbers)
}

func (d *difference) add(field string, c change, key string) {
	if d.errors[field] == nil {
		d.errors[field] = map[change][]string{}
	}
	d.errors[field][c] = append(d.errors[field][c], key)
}

// The most that the work of searches may move, its median and its 90 %.
const mostMoved = 1.05

var errDiffers = errors.New("what is found is not what the goldens have")

// err says whether something is wrong. Words are not, and neither is time, which is that of a machine.
func (d *difference) err() error {
	if len(d.errors) > 0 || d.moved() {
		return errDiffers
	}
	return nil
}

// moved reports whether searches try more, or more of them end at their budget.
func (d *difference) moved() bool {
	more := func(was, is int) bool { return float64(is) > mostMoved*float64(was) }
	for k := range d.is.efforts {
		was, is := d.was.efforts[k], d.is.efforts[k]
		if is.stopped > was.stopped || more(at(was.tried, 5), at(is.tried, 5)) || more(at(was.tried, 9), at(is.tried, 9)) {
			return true
		}
	}
	return false
}

// mostKeys is how many lines are listed of one change of words.
const mostKeys = 3

// print writes what differs, and sums of both sides. Equal changes are printed once, with the lines that have them.
func (d *difference) print(w io.Writer) {
	if traces := d.errors[ofTraces]; len(traces) > 0 {
		fmt.Fprintf(w, "%d traces have other bits than those of the goldens: another processor or another release of torch made them.\n"+
			"Write goldens of these traces with the code before the change, then compare with the code after it.\n", len(traces))
	}
	for _, f := range fields {
		if changes := d.errors[f.name]; len(changes) > 0 && f.name != ofTraces {
			fmt.Fprintf(w, "%s: %s\n", f.name, lineNumber(changes))
			printChanges(w, changes, 0)
		}
	}
	if len(d.words) > 0 {
		fmt.Fprintf(w, "words: %s\n", lineNumber(d.words))
		printChanges(w, d.words, mostKeys)
	}
	d.printCounts(w)
}

func lineNumber(changes map[change][]string) string {
	n := 0
	for _, keys := range changes {
		n += len(keys)
	}
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

func printChanges(w io.Writer, changes map[change][]string, most int) {
	for _, c := range slices.SortedFunc(maps.Keys(changes), func(a, b change) int { return strings.Compare(a.was+"\n"+a.is, b.was+"\n"+b.is) }) {
		keys := changes[c]
		fmt.Fprintf(w, "  - %s\n  + %s\n", c.was, c.is)
		for k, key := range keys {
			if most > 0 && k == most {
				fmt.Fprintf(w, "      and %d more\n", len(keys)-most)
				break
			}
			fmt.Fprintf(w, "      %s\n", key)
		}
	}
}

// counts are sums over lines.
type counts struct {
	runs, located, named, wrong, unread int // runs at their levels; named are those with a right name and no other that is wrong or was not read
	asked, misleading                   int // right names that were looked for again without their class; and how often another was found, which is wrong or was not read
	lines                               map[string]int
	efforts                             [2]efforts // of searches, and of those without a class
}

// efforts are sorted.
type efforts struct {
	tried, took []int
	stopped     int
}

func countsOf(lines []line) (c counts) {
	c.lines = map[string]int{}
	verdicts, order := map[string]map[verdict]bool{}, []string{}
	var name line // the last one: the line that is without its class follows it
	for _, l := range lines {
		run := l.Run + " " + l.Level
		if l.Role == "" {
			c.runs++
			if strings.HasPrefix(l.Status, "located") {
				c.located++
			}
			continue
		}
		if verdicts[run] == nil {
			verdicts[run] = map[verdict]bool{}
			order = append(order, run)
		}
		kind := 0
		if l.Without == "" {
			name = l
			c.lines[l.Status]++
			verdicts[run][verdict(l.Verdict)] = true
		} else {
			kind = 1
			if v := verdict(l.Verdict); verdict(name.Verdict) == right {
				c.asked++
				if v == wrong || v == unread {
					c.misleading++
				}
			}
		}
		e := &c.efforts[kind]
		if n, stopped, ok := l.tried(); ok {
			e.tried, e.took = append(e.tried, n), append(e.took, l.took())
			if stopped {
				e.stopped++
			}
		}
	}
	for _, run := range order {
		v := verdicts[run]
		switch {
		case v[wrong]:
			c.wrong++
		case v[unread]:
			c.unread++
		case v[right]:
			c.named++
		}
	}
	for k := range c.efforts {
		slices.Sort(c.efforts[k].tried)
		slices.Sort(c.efforts[k].took)
	}
	return c
}

// at is the element of a sorted list below which so many tenths lie.
func at(sorted []int, tenths int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*tenths/10]
}

func (d *difference) printCounts(w io.Writer) {
	row := func(what string, was, is int) {
		fmt.Fprintf(w, "%-42s %9d %9d\n", what, was, is)
	}
	fmt.Fprintf(w, "%-42s %9s %9s\n", "", "before", "now")
	row("runs at their levels", d.was.runs, d.is.runs)
	row("  located", d.was.located, d.is.located)
	row("  named right, and nothing else", d.was.named, d.is.named)
	row("  with a wrong name", d.was.wrong, d.is.wrong)
	row("  with a name that nobody has read", d.was.unread, d.is.unread)
	for _, status := range []string{"named", "likely", "undecided", "unnamed"} {
		row("roles "+status, d.was.lines[status], d.is.lines[status])
	}
	row("right names, their class not tried", d.was.asked, d.is.asked)
	row("  misleading, or not read", d.was.misleading, d.is.misleading)
	for k, what := range []string{"searches", "searches without a class"} {
		was, is := d.was.efforts[k], d.is.efforts[k]
		row(what, len(was.tried), len(is.tried))
		row("  tried, median", at(was.tried, 5), at(is.tried, 5))
		row("  tried, 90 %", at(was.tried, 9), at(is.tried, 9))
		row("  milliseconds, median", at(was.took, 5), at(is.took, 5))
		row("  milliseconds, 90 %", at(was.took, 9), at(is.took, 9))
		row("  ended at their budget", was.stopped, is.stopped)
	}
	if d.moved() {
		fmt.Fprintf(w, "searches try more than %g times of before, or more of them end at their budget\n", mostMoved)
	}
}
