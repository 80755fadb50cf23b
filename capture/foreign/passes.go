package foreign

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/internal/tracekey"
)

// fromOne is the note of a dump whose first pass is pass1/.
const fromOne = "its passes are counted from 1: pass1/ is taken for the first"

// listFromOne ends the note of a list of passes that counts from 1.
const listFromOne = "1. is pass 0"

// passes sets the pass and the firing of each source from its name, and reports whether any name has a pass or a firing. note is empty
// if there is nothing to say.
func passes(sources []capture.Source) (any bool, note string) {
	if any, note = elements(sources); note != "" {
		return any, note
	}
	any, first := keys(sources)
	if first > 0 {
		note = fromOne
	}
	return any, note
}

// elementText is the name of a tensor in an element of a list, or of a dictionary with numbers as keys, with or without a word for
// passes: "0.logits", "step1.logits", "passes.0.logits".
var elementText = regexp.MustCompile(`^((?i:` + spelling.ElementWords + `)[-_.]?)?(0|[1-9][0-9]{0,8})\.(.+)$`)

// elements reports whether a file is a list of passes. If so, it sets the pass and the name of each source. Every tensor of such a file belongs to an
// element, and elements are counted from 0 or 1. Either the keys have a word for passes, or three conditions hold: each element has more than half of
// all names, the first element and a later element have token ids, and no later element has more than one token for each sequence. A list of layers
// has no ids. A list of ranks or of prompts has several tokens in each element; such a list is not read, and the note says so.
func elements(sources []capture.Source) (are bool, note string) {
	word, of, all := "", map[int]map[string]bool{}, map[string]bool{}
	found := make([]element, len(sources))
	for i, s := range sources {
		m := elementText.FindStringSubmatch(s.Name)
		if m == nil || i > 0 && m[1] != word {
			return false, ""
		}
		n, _ := strconv.Atoi(m[2])
		if of[n] == nil {
			of[n] = map[string]bool{}
		}
		word, found[i], of[n][m[3]], all[m[3]] = m[1], element{n, m[3]}, true, true
	}
	numbers := slices.Sorted(maps.Keys(of))
	if len(numbers) == 0 || numbers[0] > 1 || numbers[len(numbers)-1]-numbers[0] != len(numbers)-1 {
		return false, ""
	}
	missing := 0
	for _, names := range of {
		if word == "" && 2*len(names) <= len(all) {
			return false, ""
		}
		missing += len(all) - len(names)
	}
	if word == "" {
		fed, steps, why := fedElements(sources, found, numbers[0])
		if fed < min(len(numbers), 2) {
			return false, why
		} else if !steps {
			return false, fmt.Sprintf("each of its %d elements has token ids, and an element after the first has more than one token: several prompts or ranks? Dump one of them; if they are passes, name them pass0, pass1", len(numbers))
		}
	}
	for i := range sources {
		sources[i].Pass, sources[i].Name = found[i].at-numbers[0], found[i].name
	}
	note = fmt.Sprintf("each of its %d elements is a pass: %s%d. is pass 0", len(numbers), word, numbers[0])
	if missing > 0 && word == "" {
		note += fmt.Sprintf("; some lack a tensor that others have (%d in all)", missing)
	}
	return true, note
}

// keys sets the pass and the firing of each source from its name, and reports whether any name has a pass or a firing, and the number
// of the first pass. After "pass<k>/" any name may follow. Passes are counted from 0, or from 1 if no tensor is of pass 0. A firing
// counts only if the file has the firing before it.
func keys(sources []capture.Source) (any bool, first int) {
	names := make(map[string]bool, len(sources))
	first = math.MaxInt
	for _, s := range sources {
		names[s.Name] = true
		pass, _, _ := tracekey.CutPass(s.Name)
		first = min(first, pass)
	}
	if first != 1 {
		first = 0
	}
	for i := range sources {
		s := &sources[i]
		pass, rest, found := tracekey.CutPass(s.Name)
		own, name, firing, ok := capture.ParseKey(rest)
		if !ok || own > 0 || firing > 0 && !names[s.Name[:len(s.Name)-len(rest)]+capture.Key(0, name, firing-1)] || strings.HasPrefix(name, capture.Gradient) {
			name, firing = rest, 0
		}
		s.Pass, s.Name, s.Firing = pass-first, name, firing
		any = any || found || firing > 0
	}
	return any, first
}
