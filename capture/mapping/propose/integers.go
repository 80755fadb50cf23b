package propose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// whole is a tensor of integers that may be ids or positions.
type whole struct {
	t      *template
	f      *names.Form
	values []int64
}

// integers finds the token ids and positions of a dump that has them under names of its own. Ids are told by their name or by the
// reference's; those that only could be are a choice, and say how many tokens the first pass has.
func (p integerSearch) integers(fitted *capture.Trace) error {
	all, err := p.wholes()
	if err != nil {
		return err
	}
	if _, has := fitted.Lookup(0, order.InputIDs); !has {
		if err := p.tell(order.InputIDs, all, func(x whole) bool { return !counts(x.values) && p.inVocabulary(x.values) }); err != nil {
			return err
		}
	}
	if _, has := fitted.Lookup(0, order.PositionIDs); !has && p.list.Index(order.PositionIDs) >= 0 {
		return p.tell(order.PositionIDs, all, func(x whole) bool { return counts(x.values) && strings.Contains(strings.ToLower(x.t.Text), "pos") })
	}
	return nil
}

// tell takes the tensor with the name of an integer entry, or the only one with the reference's values. Otherwise it offers the tensors
// that could be the entry.
func (p integerSearch) tell(name string, all []whole, could func(whole) bool) error {
	var named, equal, possible []whole
	far, err := p.farIntegers(name)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.t.settled || p.tokens > 0 && len(x.values) != p.tokens {
			continue
		}
		if x.t.Called(name) {
			named = append(named, x)
		}
		if far != nil && slices.Equal(far, x.values) {
			equal = append(equal, x)
		}
		if could(x) {
			possible = append(possible, x)
		}
	}
	r := &role{text: name, at: p.list.Index(name)}
	for _, found := range []struct {
		list []whole
		why  string
	}{{named, "name"}, {equal, "values: equal to the reference's"}} {
		if len(found.list) == 1 && found.list[0].f.Certain() {
			x := found.list[0]
			p.take(candidate{t: x.t, f: x.f, r: r}, Line{Why: found.why + x.f.Why()})
			p.fed(name, x)
			return nil
		}
		possible = append(possible, found.list...)
	}
	for i, x := range possible {
		if x.t.settled || slices.ContainsFunc(possible[:i], func(o whole) bool { return o.f == x.f }) {
			continue
		}
		p.fed(name, x)
		p.choose(x.t, Choice{From: x.t.Text, Lines: p.lines(candidate{t: x.t, f: x.f, r: r}, Line{Why: "integers that could be it" + x.f.Why()})})
	}
	return nil
}

// fed takes the number of tokens from the ids.
func (p integerSearch) fed(name string, x whole) {
	if p.tokens == 0 && name == order.InputIDs {
		p.tokens = len(x.values)
	}
}

// wholes are the tensors of integers with one axis of more than one element at most.
func (p integerSearch) wholes() ([]whole, error) {
	var list []whole
	for _, t := range p.open {
		for _, f := range t.Forms {
			x, one := f.Layers[-1]
			if !one || len(f.Layers) > 1 || len(tensors.WithoutOnes(x.Shape)) > 1 || len(x.Shape) > 2 || f.Join != "" && f.Join != mapping.JoinSame {
				continue
			}
			values, err := x.Integers()
			if err != nil {
				return nil, err
			}
			if values != nil {
				list = append(list, whole{t, f, values})
			}
		}
	}
	return list, nil
}

// counts reports whether integers are 0, 1, 2, ...
func counts(values []int64) bool {
	for i, v := range values {
		if v != int64(i) {
			return false
		}
	}
	return true
}
