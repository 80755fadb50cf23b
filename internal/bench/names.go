package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// verdict is the judgement of a name by a person who knows the fault.
type verdict string

// The verdicts. A name says what was planted (right), says it in words that need some thought (words), or sends the reader elsewhere (wrong).
// A name that nobody has read is counted separately: it is not right.
const (
	right  verdict = "right"
	words  verdict = "words"
	wrong  verdict = "wrong"
	unread verdict = "unread"
)

const namesFile = "names.txt"

// readNames has the names that were read: a line for each fault and mistake, "verdict | fault | key". A key is that of [diagnose.Mistake]: whoever changes the words of
// a mistake changes no line.
//
//go:embed names.txt
var readNames string

// reading is a line of names.txt.
type reading struct {
	verdict    verdict
	fault, key string
}

func (r reading) String() string {
	return strings.Join([]string{string(r.verdict), r.fault, r.key}, cellsEnd)
}

// readings are names that were read, by fault.
type readings map[string][]reading

func parseReadings(text string) (readings, error) {
	all := readings{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, cellsEnd)
		if len(cells) != 3 || !slices.Contains([]verdict{right, words, wrong, unread}, verdict(cells[0])) {
			return nil, fmt.Errorf("%s: %q is no reading", namesFile, line)
		}
		r := reading{verdict: verdict(cells[0]), fault: cells[1], key: cells[2]}
		all[r.fault] = append(all[r.fault], r)
	}
	return all, nil
}

// judge says whether a finding names one of some faults. A mistake that is not in the list is right if it is of the kind and at the place
// of one that is, and has the fault's number: it is that mistake in other digits. With two faults a name may also have been
// read for the pair.
func (r readings) judge(faults []fault, f *diagnose.Finding) verdict {
	best := unread
	for _, of := range faults {
		if v := r.of(of, f); v == right || best == unread {
			best = v
		} else if v == words && best == wrong {
			best = v
		}
	}
	if len(faults) > 1 {
		if v := r.exact(pairName(faults), f); v != unread {
			return v
		}
		if best == wrong { // it was read where the other fault was not there
			return unread
		}
	}
	return best
}

func (r readings) of(of fault, f *diagnose.Finding) verdict {
	if v := r.exact(of.Name, f); v != unread {
		return v
	}
	for _, known := range r[of.Name] {
		if known.verdict == right && known.alike(f) && recovered(of, f) {
			return right
		}
	}
	return unread
}

func (r readings) exact(name string, f *diagnose.Finding) verdict {
	for _, known := range r[name] {
		if known.key == f.Key() {
			return known.verdict
		}
	}
	return unread
}

// alike reports whether a mistake is of the kind and at the place of the one that was read.
func (r reading) alike(f *diagnose.Finding) bool {
	m := f.Mistake
	if m.Kind == "" {
		return false
	}
	of := diagnose.Mistake{Kind: m.Kind, Place: m.Place}.Key()
	rest, ok := strings.CutPrefix(r.key, strings.TrimSuffix(of, ")"))
	return ok && (rest == "" || strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, ")") || m.Place == "" && strings.HasPrefix(rest, "(") && !strings.HasPrefix(rest, "(place="))
}

// isName reports whether a search has found a name.
func isName(f *diagnose.Finding) bool { return f != nil && f.What != "" }

func pairName(faults []fault) string {
	var names []string
	for _, f := range faults {
		names = append(names, f.Name)
	}
	return strings.Join(names, "+")
}

// recovered reports whether a finding has the number that a fault computes with.
func recovered(of fault, f *diagnose.Finding) bool {
	m := f.Mistake
	numbers := []float64{float64(m.N), float64(m.M), float64(m.K), m.Of.X, m.By.X}
	for _, n := range []diagnose.Number{m.X, m.Times, m.Of.Item, m.By.Item} {
		if n.Has {
			numbers = append(numbers, n.Value)
		}
	}
	for _, want := range of.Number {
		if slices.ContainsFunc(numbers, func(x float64) bool { return near(x, want) }) {
			return true
		}
	}
	return false
}

// listing adds unread names to a list, sorted; existing lines stay.
func listing(old string, add []reading) string {
	have := map[string]bool{}
	var lines []string
	for line := range strings.Lines(old) {
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, line)
		if _, rest, ok := strings.Cut(line, " | "); ok {
			have[rest] = true
		}
	}
	var fresh []string
	for _, a := range add {
		_, rest, _ := strings.Cut(a.String(), " | ")
		if !have[rest] {
			have[rest] = true
			fresh = append(fresh, a.String())
		}
	}
	slices.Sort(fresh)
	return strings.Join(append(lines, fresh...), "\n") + "\n"
}
