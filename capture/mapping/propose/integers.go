package propose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// maxTokens bounds the integers of a tensor that may be the ids of a pass.
const maxTokens = 1 << 20

// whole is a tensor of integers that may be ids or positions.
type whole struct {
	t      *template
	f      *form
	values []int64
}

// integers finds the token ids and positions of a dump that has them under names of its own. Ids are told by their name or by the
// reference's; those that only could be are a choice, and say how many tokens the first pass has.
func (p *proposer) integers(fitted *capture.Trace) error {
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
		return p.tell(order.PositionIDs, all, func(x whole) bool { return counts(x.values) && strings.Contains(strings.ToLower(x.t.text), "pos") })
	}
	return nil
}

// tell takes the tensor that is called like an entry of integers, or the one that has the reference's, and offers those that could be it.
func (p *proposer) tell(name string, all []whole, could func(whole) bool) error {
	var named, equal, possible []whole
	far, err := p.farIntegers(name)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.t.settled || p.tokens > 0 && len(x.values) != p.tokens {
			continue
		}
		if x.t.called(name) {
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
	}{{named, "name"}, {equal, "values: those of the reference"}} {
		if len(found.list) == 1 && found.list[0].f.certain() {
			x := found.list[0]
			p.take(x.t, x.f, []*role{r}, Line{Why: found.why + x.f.why()})
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
		p.choose(x.t, Choice{From: x.t.text, Lines: p.lines(x.t, x.f, []*role{r}, Line{Why: "integers that could be it" + x.f.why()})})
	}
	return nil
}

// fed takes the number of tokens from the ids.
func (p *proposer) fed(name string, x whole) {
	if p.tokens == 0 && name == order.InputIDs {
		p.tokens = len(x.values)
	}
}

// wholes are the tensors of integers with one axis of more than one element at most.
func (p *proposer) wholes() ([]whole, error) {
	var list []whole
	for _, t := range p.open {
		for _, f := range t.forms {
			x, one := f.layers[-1]
			if !one || len(f.layers) > 1 || len(sizesWithoutOnes(x.shape)) > 1 || len(x.shape) > 2 || f.join != "" && f.join != mapping.JoinSame {
				continue
			}
			values, err := x.integers()
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

// integers are the elements of a tensor of integers; nil for any other, and for one that is too long.
func (x tensor) integers() ([]int64, error) {
	n, ok := hooks.Elements(x.shape)
	if !ok || n == 0 || n > maxTokens || !x.dtype.Integer() {
		return nil, nil
	}
	raw, err := x.read(n)
	if err != nil {
		return nil, err
	}
	values := make([]float64, n)
	if err := floats.Decode(values, x.dtype, raw); err != nil {
		return nil, err
	}
	out := make([]int64, n)
	for i, v := range values {
		out[i] = int64(v)
	}
	return out, nil
}

func (p *proposer) farIntegers(name string) ([]int64, error) {
	if p.ref == nil {
		return nil, nil
	}
	r, ok := p.ref.Lookup(0, name)
	if !ok {
		return nil, nil
	}
	return recorded(p.ref, r).integers()
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

func (p *proposer) inVocabulary(values []int64) bool {
	for _, v := range values {
		if v < 0 || v >= int64(p.list.Config.VocabSize) {
			return false
		}
	}
	return true
}
