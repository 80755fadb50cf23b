package foreign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/hint"
)

// Renumbered numbers the passes of a dump whose first pass is named pass 1: either the dump counts from 1, or the dump lacks the prefill, such as a
// dump of decode steps. The token ids of the other trace decide. If the ids of the dump match only pass 1 and later passes of the other trace,
// the dump lacks the prefill. Otherwise the first pass of the dump is pass 0; a mismatch of ids appears in the comparison of tokens. It is an
// error if the dump has fewer passes than the other trace, and no ids or ids that match both readings. t stays open while the new trace is
// used.
func Renumbered(t, other *capture.Trace) (*capture.Trace, error) {
	at := slices.IndexFunc(t.Notes(), func(n string) bool { return n == fromOne || strings.HasSuffix(n, listFromOne) })
	if at < 0 {
		return t, nil
	}
	fitted, err := Fit(other, nil)
	if err != nil {
		return nil, err
	}
	ids, err := fitted.IDs()
	if err != nil {
		return t, nil // the other trace has no ids, so tokens are not compared
	}
	sources, passes := t.Sources(), 0
	for _, s := range sources {
		passes = max(passes, s.Pass+1)
	}
	if passes >= len(ids) {
		return t, nil
	}
	first, err := fed(t, sources, ids[:passes])
	if err != nil {
		return nil, err
	}
	second, err := fed(t, sources, ids[1:passes+1])
	if err != nil {
		return nil, err
	}
	some := slices.ContainsFunc(sources, func(s capture.Source) bool { return isIDs(s) && s.Pass == 0 })
	switch {
	case first && second || !some:
		return nil, hint.Add(fmt.Errorf("%s: its passes begin with 1, and it is not known whether pass 1 is the first: %s has %d passes, the dump has %d", t.Path(), other.Path(), len(ids), passes),
			"dump the token ids of each pass as input_ids; if the dump has the first pass, call its tensors pass0/")
	case !second:
		return t, nil
	}
	for i := range sources {
		sources[i].Pass++
		sources[i].Key = ""
	}
	notes := slices.Clone(t.Notes())
	notes[at] = "its first pass is pass 1: the token ids of its passes match the reference's passes from 1 on"
	return capture.Assemble(t.Path(), sources, t.Manifest(), t.Sequence(), notes, t)
}

// fed reports whether an integer tensor with the same name in all passes has these ids.
func fed(t *capture.Trace, sources []capture.Source, ids [][]int) (bool, error) {
	for _, s := range sources {
		if s.Pass != 0 || s.Firing > 0 || !isIDs(s) {
			continue
		}
		all := true
		for pass, want := range ids {
			r, ok := t.Lookup(pass, s.Name)
			if n, _ := hooks.Elements(r.Shape); !ok || n != len(want) || r.DType != s.DType {
				all = false
				break
			}
			x, err := t.Read(r)
			if err != nil {
				return false, err
			}
			got := make([]float64, len(want))
			if err := floats.Decode(got, x.DType, x.Data); err != nil {
				return false, err
			}
			if all = slices.EqualFunc(got, want, func(a float64, b int) bool { return a == float64(b) }); !all {
				break
			}
		}
		if all {
			return true, nil
		}
	}
	return false, nil
}
