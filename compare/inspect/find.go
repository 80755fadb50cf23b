package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// find returns the tensors named by the options, in the file's order, and whether a single tensor is shown in full: a key or a name. A name
// stands for its first firing in the first pass. Several passes, or a pattern, give a list of any length.
func find(t *capture.Trace, o *Options) (found []capture.Record, one bool, err error) {
	all := t.Records()
	if len(o.Passes) > 0 {
		all = slices.DeleteFunc(slices.Clone(all), func(r capture.Record) bool { return !o.Passes.Has(r.Pass) })
		if len(all) == 0 {
			return nil, false, optionError(fmt.Errorf("--pass %s: %s has no tensor of it", o.Passes, t.Path()), "%s", passesOf(t))
		}
	}
	if o.Name == "" {
		return all, false, nil
	}
	byKey := func(r capture.Record) bool { return r.Key == o.Name }
	if i := slices.IndexFunc(all, byKey); i >= 0 && len(o.Passes) == 0 {
		return all[i : i+1], true, nil
	}
	for _, r := range all {
		if r.Name == o.Name {
			found = append(found, r)
		}
	}
	if len(found) > 0 {
		if len(o.Passes) == 0 || severalFirings(found) {
			found = found[:1]
		}
		return found, len(found) == 1, nil
	}
	// A file of another writer may have any character in its names: a name may look like a pattern.
	for _, r := range all {
		if hooks.Match(o.Name, r.Name) || hooks.Match(o.Name, r.Key) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return nil, false, missing(t, o, all)
	}
	return found, false, nil
}

// severalFirings reports whether records are firings of one pass.
func severalFirings(found []capture.Record) bool {
	return found[0].Pass == found[len(found)-1].Pass
}

// missing is the error for an unknown name, with similar names.
func missing(t *capture.Trace, o *Options, all []capture.Record) error {
	err := fmt.Errorf("%s has no tensor %q", t.Path(), short(o.Name))
	if len(o.Passes) > 0 {
		err = fmt.Errorf("%w in pass %s", err, o.Passes)
		if slices.ContainsFunc(t.Records(), func(r capture.Record) bool { return r.Name == o.Name }) {
			return optionError(err, "%s", passesOf(t))
		}
	}
	if near := similar(o.Name, all); len(near) > 0 {
		return optionError(err, "did you mean %s? tracediff inspect FILE lists all", strings.Join(near, ", "))
	}
	return optionError(err, "tracediff inspect FILE lists all %d; * stands for any run of characters, as in 'layers.*.mlp'", len(t.Records()))
}

func passesOf(t *capture.Trace) string {
	last := 0
	for _, r := range t.Records() {
		last = max(last, r.Pass)
	}
	if last == 0 {
		return "it has only pass 0"
	}
	return fmt.Sprintf("it has passes 0 to %d", last)
}

// suggestions is how many names a hint has.
const suggestions = 3

// similar are the names nearest to an unknown name: names that contain it, else names with the longest common start and end, if most of the
// name is common.
func similar(name string, all []capture.Record) []string {
	type near struct {
		name   string
		shared int
	}
	var list []near
	for _, r := range all {
		n := near{r.Name, sharedEnds(name, r.Name)}
		if strings.Contains(r.Name, name) {
			n.shared = len(name) + 1
		}
		if n.shared*4 >= len(name)*3 && !slices.ContainsFunc(list, func(o near) bool { return o.name == n.name }) {
			list = append(list, n)
		}
		slices.SortStableFunc(list, func(a, b near) int {
			return cmp.Or(cmp.Compare(b.shared, a.shared), cmp.Compare(len(a.name), len(b.name)))
		})
		list = list[:min(len(list), suggestions)]
	}
	var names []string
	for _, n := range list {
		names = append(names, strconv.Quote(short(n.name)))
	}
	return names
}

// sharedEnds counts the bytes in which two names agree from the start, and of the rest those from the end.
func sharedEnds(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < len(a)-n && m < len(b)-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return n + m
}

// short cuts a name that can be as long as a header.
func short(name string) string {
	const most = 120
	if len(name) <= most {
		return name
	}
	return name[:most] + "..."
}
