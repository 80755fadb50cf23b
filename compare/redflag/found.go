package redflag

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
)

// found holds the flags that the checks have raised on a trace so far, and counts the subjects of each kind of flag.
type found struct {
	skip   []Kind
	in     *view // says what a tensor is computed from
	looked map[Kind]int
	flags  []*Flag
	first  map[Kind]*Flag
	raised map[Kind]map[place]*Flag
	alike  map[Kind]map[string]*Flag // by name, without the number of the layer
}

func newFound(in *view, skip []Kind) *found {
	return &found{
		skip: skip, in: in, looked: map[Kind]int{}, first: map[Kind]*Flag{},
		raised: map[Kind]map[place]*Flag{}, alike: map[Kind]map[string]*Flag{},
	}
}

// raise adds a flag about a subject, unless the kind is skipped. If [found.before] returns an earlier flag, raise adds the subject to the
// flag and makes no new flag.
func (f *found) raise(k Kind, s *subject, numbers []Number, format string, args ...any) {
	if slices.Contains(f.skip, k) {
		return
	}
	if f.raised[k] == nil {
		f.raised[k], f.alike[k] = map[place]*Flag{}, map[string]*Flag{}
	}
	flag := f.before(k, s)
	if flag != nil {
		flag.Also = append(flag.Also, s.Key)
	} else {
		a := about(k)
		flag = &Flag{Kind: k, Entry: capture.Key(0, s.name, s.Firing), Pass: s.pass, What: fmt.Sprintf(format, args...), Numbers: numbers, Means: a.Means, Try: a.Try}
		f.flags = append(f.flags, flag)
		f.alike[k][layerless(s.name)] = flag
		if f.first[k] == nil {
			f.first[k] = flag
		}
	}
	f.raised[k][s.place()] = flag
}

// raiseIn raises one flag about the same fault in several layers.
func (f *found) raiseIn(k Kind, layers []*headed, numbers []Number, format string, args ...any) {
	f.raise(k, layers[0].first, numbers, format, args...)
	for _, h := range layers[1:] {
		f.raise(k, h.first, numbers, format, args...)
	}
}

// before returns the flag of kind k to which subject s belongs, or nil. If the kind follows from tensor to tensor and the order has the
// name, before returns the flag of a parent, of the same name in the pass before, or of the same name in another layer. Otherwise before
// returns the first flag of the kind.
func (f *found) before(k Kind, s *subject) *Flag {
	if v := f.in; !about(k).follows || v.list == nil || v.list.Index(s.name) < 0 {
		return f.first[k]
	}
	for _, from := range append(f.in.parents(s), place{s.pass - 1, s.name}) {
		if flag := f.raised[k][from]; flag != nil {
			return flag
		}
	}
	return f.alike[k][layerless(s.name)]
}

var layerNumber = regexp.MustCompile(`\.[0-9]+\.`)

// layerless is a name without the number of its layer.
func layerless(name string) string { return layerNumber.ReplaceAllString(name, ".*.") }

// look counts a subject as looked at for each wanted kind, and reports whether any kind is wanted.
func (f *found) look(kinds ...Kind) bool {
	wanted := false
	for _, k := range kinds {
		if !slices.Contains(f.skip, k) {
			f.looked[k]++
			wanted = true
		}
	}
	return wanted
}

func number(name string, x float64) Number { return Number{name, measure.Number(x)} }
