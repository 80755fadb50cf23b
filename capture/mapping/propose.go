package mapping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Proposal is a map that a dump may need.
type Proposal struct {
	Lines   []Line
	Choices []Choice
	Left    []string // patterns of what fits nothing
	Known   int      // tensors that need no line
}

// Line is a line of a map, and why it is proposed.
type Line struct {
	From  string
	To    []string
	Axes  string
	Split string
	Pass  string
	Why   string

	at int // in the order
}

// Choice is a tensor for which several lines are possible, of which a person takes one.
type Choice struct {
	From  string
	Lines []Line
	More  int // entries that would fit, too
}

// ErrNoTokens is returned where it is not known how many tokens the first pass has.
var ErrNoTokens = errors.New("neither the dump nor the reference has the token ids of the first pass")

// near is the relative L2 distance below which two tensors have the same values but for rounding, and clearly how many times further the
// next candidate has to be.
const (
	near    = 2e-2
	clearly = 10
)

// Propose finds what the tensors of a dump are in the order of a model: by known names, by shapes and, where a reference is given, by
// values. A name stands for all layers that it has, so that layers that are wrong have the names of those that are right. fitted is the dump
// with what needs no map already read; its tensors stand in the same order. ref may be nil. The error is that of ctx or of reading.
func Propose(ctx context.Context, t, fitted *capture.Trace, list *order.List, ref *capture.Trace) (*Proposal, error) {
	p := &proposer{list: list, ref: ref, local: newReader(t)}
	if ref != nil {
		p.far = newReader(ref)
	}
	if p.tokens = tokensOf(fitted); p.tokens == 0 && ref != nil {
		p.tokens = tokensOf(ref)
	}
	if p.tokens == 0 {
		return nil, ErrNoTokens
	}
	known := func(i int) bool {
		r := fitted.Records()[i]
		e, ok := list.Lookup(r.Name)
		return ok && (r.Name == order.InputIDs || r.LastRow || r.Pass > 0 || slices.Equal(r.Shape, p.want(e)))
	}
	for _, q := range templates(t, list.Config.NumLayers, known) {
		if q.isKnown {
			p.out.Known += len(q.layers)
		} else {
			p.open = append(p.open, q)
		}
	}
	p.roles(fitted)
	for _, step := range []func(context.Context) error{p.byValues, p.fused, p.byNames, p.byShapes} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	for _, q := range p.open {
		if !q.settled {
			p.out.Left = append(p.out.Left, q.text)
		}
	}
	slices.SortStableFunc(p.out.Lines, func(a, b Line) int { return a.at - b.at })
	return &p.out, nil
}

// tokensOf is how many tokens the first pass of a trace has; 0 where that is not known.
func tokensOf(t *capture.Trace) int {
	r, ok := t.Lookup(0, order.InputIDs)
	if !ok || len(r.Shape) != 2 {
		return 0
	}
	return r.Shape[1]
}

// role is an entry in all layers that have it.
type role struct {
	text   string
	layers map[int]*order.Entry // −1 for one outside of layers
	at     int                  // in the order
	taken  bool
}

type proposer struct {
	list   *order.List
	ref    *capture.Trace
	local  *reader
	far    *reader
	tokens int
	open   []*template // some are settled
	free   []*role     // some are taken
	ways   map[string][]arrangement
	out    Proposal
}

// want is the shape of an entry in the first pass.
func (p *proposer) want(e *order.Entry) []int {
	return e.Size(order.Pass{Tokens: p.tokens}, p.list.Config.SlidingWindow)
}

// roles lists the entries that no tensor of the dump has already.
func (p *proposer) roles(fitted *capture.Trace) {
	found := map[string]*role{}
	for i := range p.list.Entries {
		e := &p.list.Entries[i]
		if _, has := fitted.Lookup(0, e.Name); has || e.Name == order.InputIDs {
			continue
		}
		text := e.Name
		if e.Layer >= 0 {
			text = strings.Replace(text, fmt.Sprintf("layers.%d", e.Layer), "layers.{L}", 1)
		}
		r := found[text]
		if r == nil {
			r = &role{text: text, layers: map[int]*order.Entry{}, at: i}
			found[text] = r
			p.free = append(p.free, r)
		}
		r.layers[e.Layer] = e
	}
}

// fit is a tensor of the dump as an entry.
type fit struct {
	t     *template
	r     *role
	how   arrangement
	good  int     // layers with the values of the reference
	of    int     // layers that were compared
	error float64 // of the good ones: the largest distance
	named bool    // its name is a known one of the entry
}

// fits are the ways to take a tensor for an entry, by shape.
func (p *proposer) fits(t *template, r *role) []arrangement {
	var all []arrangement
	heads := []int{p.list.Config.NumHeads, p.list.Config.NumKVHeads}
	some := false
	for _, layer := range keysOf(t.layers) {
		rec, e := t.layers[layer], r.layers[layer]
		if e == nil {
			return nil
		}
		letters := strings.ReplaceAll(e.Axes, " ", "")
		if e.Op == nil || rec.DType.Float() != isFloat(e) {
			return nil
		}
		now := p.arrangements(rec.Shape, p.want(e), letters, heads)
		if !some {
			all, some = now, true
			continue
		}
		all = slices.DeleteFunc(all, func(a arrangement) bool { return !slices.Contains(now, a) })
	}
	return all
}

// arrangements are those of two shapes, worked out once.
func (p *proposer) arrangements(have, want []int, letters string, heads []int) []arrangement {
	if len(have) > maxAxes {
		return nil
	}
	key := fmt.Sprint(have, want, letters)
	ways, ok := p.ways[key]
	if !ok {
		if ways = arrangements(have, want, letters, heads); len(p.ways) == 0 || len(p.ways) > 1<<14 {
			p.ways = map[string][]arrangement{}
		}
		p.ways[key] = ways
	}
	return slices.Clone(ways)
}

// maxAxes bounds the axes of a tensor that is read as an entry.
const maxAxes = 16

func isFloat(e *order.Entry) bool {
	d := e.DTypeOf(hooks.F32)
	return d.Float()
}

// byValues takes the tensors whose values some entry of the reference has.
func (p *proposer) byValues(ctx context.Context) error {
	if p.ref == nil {
		return nil
	}
	var all []fit
	of := map[*template][]fit{}
	for _, t := range p.open {
		for _, r := range p.free {
			if err := ctx.Err(); err != nil {
				return err
			}
			f, err := p.best(t, r)
			if err != nil {
				return err
			}
			if f.good > 0 {
				f.named = t.called(r.text)
				all, of[t] = append(all, f), append(of[t], f)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fit) int {
		return cmp.Or(b.good-a.good, btoi(b.named)-btoi(a.named), cmp.Compare(a.error, b.error), a.r.at-b.r.at)
	})
	for _, f := range all {
		if f.t.settled || f.r.taken {
			continue
		}
		rivals, err := p.rivals(f, of[f.t])
		if err != nil {
			return err
		}
		if len(rivals) == 0 {
			p.take(f.t, []*role{f.r}, Line{Axes: f.how.axes, Why: f.why()})
			continue
		}
		c := Choice{From: f.t.text}
		for _, g := range append([]fit{f}, rivals...) {
			c.Lines = append(c.Lines, p.line(g.t, []*role{g.r}, Line{Axes: g.how.axes, Why: g.why()}))
		}
		p.choose(f.t, c)
	}
	return nil
}

// rivals are the fits of f's tensor that are as good, but for those that are the same tensor in the reference.
func (p *proposer) rivals(f fit, all []fit) ([]fit, error) {
	var list []fit
	for _, g := range all {
		if g.r == f.r || g.r.taken || g.good != f.good || g.error > clearly*f.error || g.named != f.named {
			continue
		}
		same, err := p.alike(f, g)
		if err != nil {
			return nil, err
		}
		if !same {
			list = append(list, g)
		}
	}
	return list, nil
}

func (f fit) why() string {
	text := fmt.Sprintf("values: %d of %d, relative L2 %.1e", f.good, f.of, f.error)
	if f.how.pairs {
		text += "; rotary pairs are neighbours"
	}
	return text
}

// best is the arrangement of a tensor with the values of an entry in most layers.
func (p *proposer) best(t *template, r *role) (fit, error) {
	best := fit{t: t, r: r}
	for _, how := range p.fits(t, r) {
		f := fit{t: t, r: r, how: how}
		for _, layer := range keysOf(t.layers) {
			d, ok, err := p.compare(t.layers[layer], r.layers[layer], how)
			if err != nil {
				return best, err
			}
			f.of += btoi(ok)
			if ok && d < near {
				f.good++
				f.error = max(f.error, d)
			}
		}
		if f.good > best.good || f.good == best.good && f.good > 0 && f.error < best.error {
			best = f
		}
	}
	return best, nil
}

// compare is the distance of a tensor, arranged, from an entry of the reference; ok is false where there is none to compare with.
func (p *proposer) compare(rec capture.Record, e *order.Entry, how arrangement) (d float64, ok bool, err error) {
	other, ok := p.ref.Lookup(0, e.Name)
	if !ok {
		return 0, false, nil
	}
	left, err := p.local.summary(rec)
	if left == nil || err != nil {
		return 0, false, err
	}
	right, err := p.far.summary(other)
	if right == nil || err != nil {
		return 0, false, err
	}
	if left.apart(right) {
		return math.Inf(1), true, nil
	}
	l, err := p.local.of(rec)
	if err != nil {
		return 0, false, err
	}
	r, err := p.far.of(other)
	if err != nil {
		return 0, false, err
	}
	if d := distance(l.sorted, r.sorted); d >= near {
		return d, true, nil
	}
	values := l.plain
	if how.axes != "" {
		layout, err := newLayout(how.axes, "")
		if err != nil {
			return 0, false, err
		}
		if values = arrange(l.plain, rec.Shape, layout); values == nil {
			return 0, false, nil
		}
	}
	return distance(values, r.plain), true, nil
}

// alike reports whether the entries of two fits are one tensor in the reference, so that it does not matter which is named.
func (p *proposer) alike(f, g fit) (bool, error) {
	for layer := range f.t.layers {
		a, ok := p.ref.Lookup(0, f.r.layers[layer].Name)
		b, also := p.ref.Lookup(0, g.r.layers[layer].Name)
		if !ok || !also {
			return false, nil
		}
		l, err := p.far.of(a)
		if err != nil {
			return false, err
		}
		r, err := p.far.of(b)
		if err != nil || l == nil || r == nil || distance(l.plain, r.plain) != 0 {
			return false, err
		}
	}
	return true, nil
}

// line completes a line.
func (p *proposer) line(t *template, roles []*role, l Line) Line {
	l.From = t.text
	for _, r := range roles {
		l.To = append(l.To, r.text)
	}
	if t.steps {
		l.Pass = "S"
		if t.first != 0 {
			l.Pass = fmt.Sprintf("S-%d", t.first)
		}
	}
	return l
}

// take settles what a tensor is.
func (p *proposer) take(t *template, roles []*role, l Line) {
	l.at = roles[0].at
	p.out.Lines = append(p.out.Lines, p.line(t, roles, l))
	t.settled = true
	for _, r := range roles {
		r.taken = true
	}
}

// choose leaves what a tensor is to a person.
func (p *proposer) choose(t *template, c Choice) {
	p.out.Choices = append(p.out.Choices, c)
	t.settled = true
}
