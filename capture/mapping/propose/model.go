package propose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/capture/mapping/propose/axes"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// model is what is known of the model and its passes, whatever the dump has.
type model struct {
	list    *order.List
	passes  []order.Pass             // as far as they are known
	tokens  int                      // of the first pass
	past    int                      // tokens before the first pass
	sizes   map[string]int           // those that layouts may leave out
	layouts map[string][]axes.Layout // by shapes, see [model.layoutsOf]
	whole   bool                     // the dump is a trace with a manifest, to which nothing adds axes
}

// newModel has the passes of the dump, or else of the reference.
func newModel(d traces, list *order.List) *model {
	m := &model{list: list, passes: passesOf(d.fitted), past: d.past, sizes: mapping.SizesOf(list), layouts: map[string][]axes.Layout{}, whole: d.trace.Status() != ""}
	if len(m.passes) == 0 && d.ref != nil {
		m.passes = passesOf(d.ref)
	}
	for i := range m.passes {
		m.passes[i].Past += d.past
	}
	if len(m.passes) > 0 {
		m.tokens = m.passes[0].Tokens
	}
	return m
}

// want is the shape of an entry in the first pass.
func (p *model) want(e *order.Entry) []int {
	return e.Size(order.Pass{Past: p.past, Tokens: p.tokens}, p.list.Config.SlidingWindow)
}

// known reports whether a tensor has the name and the shape of an entry, so that it needs no line.
func (p *model) known(r capture.Record) bool {
	e, ok := p.list.Lookup(r.Name)
	return ok && (r.Name == order.InputIDs || r.LastRow || r.Pass > 0 || slices.Equal(r.Shape, p.want(e)))
}

func (p *model) inVocabulary(values []int64) bool {
	for _, v := range values {
		if v < 0 || v >= int64(p.list.Config.VocabSize) {
			return false
		}
	}
	return true
}

// fits are the candidates of a form of a tensor for an entry, by shape. A candidate has to fit more than half of the layers: a port may be wrong in
// some. One layer is enough for a tensor that is called like the entry.
func (p *model) fits(t *template, f *names.Form, r *role) []candidate {
	var all []candidate
	if !f.Last && !p.asLarge(f, r) {
		return nil
	}
	layers := keysOf(f.Layers)
	for _, layer := range layers {
		x, e := f.Layers[layer], r.layers[layer]
		if e == nil || e.Op == nil || x.DType.Float() != isFloat(e) {
			return nil
		}
		letters := strings.ReplaceAll(e.Axes, " ", "")
		want := p.want(e)
		if f.Last {
			if len(want) != 3 || letters[:2] != "bt" {
				return nil
			}
			want = []int{1, 1, want[2]}
		}
		for _, how := range p.layoutsOf(x.Shape, want, letters, f.Sharding()) {
			i := slices.IndexFunc(all, func(o candidate) bool { return o.how == how })
			if i < 0 {
				i, all = len(all), append(all, candidate{t: t, f: f, r: r, how: how, layers: map[int]bool{}})
			}
			all[i].layers[layer] = true
		}
	}
	return slices.DeleteFunc(all, func(w candidate) bool {
		few := 2*len(w.layers) <= len(layers) && !t.Called(r.text)
		return len(w.layers) < len(layers) && (few || f.Last || f.Join == names.JoinAxis || f.Stages != nil && len(p.unfit(f, w.how.Text)) > 0)
	})
}

// asLarge reports whether a form has as many elements as an entry, in some layer.
func (p *model) asLarge(f *names.Form, r *role) bool {
	for layer, x := range f.Layers {
		if e := r.layers[layer]; e != nil && tensors.Elements(x.Shape) == tensors.Elements(p.want(e)) {
			return true
		}
	}
	return false
}

// unfit are the layers of a form whose shapes no layout with these axes takes apart.
func (p *model) unfit(f *names.Form, axes string) (layers []int) {
	if axes == "" {
		return nil
	}
	l, err := layout.New(axes, "")
	if err != nil {
		return nil
	}
	for _, layer := range keysOf(f.Layers) {
		if _, err := l.Apart(f.Layers[layer].Shape, p.sizes); err != nil {
			layers = append(layers, layer)
		}
	}
	return layers
}

// layoutsOf are those of two shapes, worked out once.
func (p *model) layoutsOf(have, want []int, letters string, parts axes.Sharding) []axes.Layout {
	if len(have) > axes.MaxAxes {
		return nil
	}
	key := fmt.Sprint(have, want, letters, parts)
	ways, ok := p.layouts[key]
	if !ok {
		ways = axes.Layouts(have, want, letters, p.sizes, parts)
		for i := range ways {
			if w := &ways[i]; w.Text == "" && len(have) < len(want) && p.whole {
				w.Text = w.Whole
			}
		}
		if len(p.layouts) > 1<<14 {
			p.layouts = map[string][]axes.Layout{}
		}
		p.layouts[key] = ways
	}
	return slices.Clone(ways)
}

// plainLayouts are the ways to read a shape as an entry, without rotary pairs. Where its axes are in the order of the entry's, that way is the only one.
func (p *model) plainLayouts(have []int, e *order.Entry) []axes.Layout {
	ways := p.layoutsOf(have, p.want(e), strings.ReplaceAll(e.Axes, " ", ""), axes.Sharding{})
	if i := slices.IndexFunc(ways, func(a axes.Layout) bool { return a.Same }); i >= 0 {
		return ways[i : i+1]
	}
	return slices.DeleteFunc(ways, func(a axes.Layout) bool { return a.Interleaved })
}

// plainCandidates are the ways to take a tensor for an entry by the shapes of most layers, without rotary pairs as neighbours. Of a form whose axes are in the
// order of the entry's, that way is the only one. An axis is not taken apart where the axes are the entry's but for axes of 1: nothing but values says more.
func (p *model) plainCandidates(t *template, r *role) []candidate {
	var list []candidate
	for _, f := range t.Forms {
		ways := slices.DeleteFunc(p.fits(t, f, r), func(w candidate) bool { return w.how.Interleaved })
		most := 0
		for _, w := range ways {
			most = max(most, len(w.layers))
		}
		ways = slices.DeleteFunc(ways, func(w candidate) bool { return len(w.layers) < most })
		if i := slices.IndexFunc(ways, func(w candidate) bool { return w.how.Same }); i >= 0 {
			ways = ways[i : i+1]
		}
		if slices.ContainsFunc(ways, func(w candidate) bool { return w.how.InOrder() }) {
			ways = slices.DeleteFunc(ways, func(w candidate) bool { return strings.Contains(w.how.Text, "(") })
		}
		list = append(list, ways...)
	}
	nearest := 2
	for _, w := range list {
		if w.f.Join == names.JoinAxis {
			nearest = min(nearest, w.how.Distance())
		}
	}
	return slices.DeleteFunc(list, func(w candidate) bool { return w.f.Join == names.JoinAxis && w.how.Distance() > nearest })
}

// fitsLater checks the shapes of later passes, which tell a cache from new keys: in the first pass the values are the same. Joined ranks
// are not checked.
func (p *model) fitsLater(t *template, f *names.Form, r *role) bool {
	if f.Join != "" {
		return true
	}
	for _, x := range t.All {
		pass := t.PassOf(x)
		e := r.layers[x.Best.Layer+f.Stages[x.Rank.Number]]
		if pass == 0 || pass >= len(p.passes) || e == nil || len(e.Shape) == 0 {
			continue
		}
		want := e.Size(p.passes[pass], p.list.Config.SlidingWindow)
		if f.Last && len(want) > 1 {
			want[1] = 1
		}
		if tensors.Elements(want) != tensors.Elements(x.Record.Shape) {
			return false
		}
	}
	return true
}

// follows reports whether an entry is computed from another without a weight, and is as large: a port may leave out what is done.
func (p *model) follows(next, r *role) bool {
	for layer, e := range next.layers {
		from := r.layers[layer]
		if from == nil || len(e.Weights) > 0 || !slices.ContainsFunc(e.Inputs, func(in order.Ref) bool { return in.Name == from.Name }) || !slices.Equal(p.want(e), p.want(from)) {
			return false
		}
	}
	return len(next.layers) == len(r.layers) && len(next.layers) > 0
}

// passesOf are the passes of a trace up to the first one without token ids.
func passesOf(t *capture.Trace) []order.Pass {
	var tokens []int
	for pass := 0; ; pass++ {
		r, ok := t.Lookup(pass, order.InputIDs)
		if !ok || len(r.Shape) != 2 {
			return order.Passes(tokens)
		}
		tokens = append(tokens, r.Shape[1])
	}
}

func isFloat(e *order.Entry) bool {
	d := e.DTypeOf(hooks.F32)
	return d.Float()
}

// handsOn reports whether an entry has the numbers of its operand.
func handsOn(e *order.Entry) bool {
	return slices.Contains([]string{"cache", "cast", "identity"}, e.Op.Kind())
}

// candidate is a form of a tensor as an entry, in one layout. Its fields fill up: first the layers whose shapes fit, then how near the
// values are, then names and later passes.
type candidate struct {
	t      *template
	f      *names.Form
	r      *role
	how    axes.Layout
	layers map[int]bool // whose shapes it fits; nil where nobody looked
	good   int          // layers with the values of the reference
	of     int          // layers that were compared, or have another shape
	error  float64      // of the good ones: the largest distance
	named  bool         // its name is a known one of the entry
	later  bool         // the tensors of later passes are as large as the entry is there
	alike  float64      // how alike its name is, see [alikeness]
	ends   bool         // its name ends like the entry's; decides between entries with the same numbers
}

func (f candidate) why() string {
	text := fmt.Sprintf("values: %d of %d, relative L2 %.1e", f.good, f.of, f.error)
	if f.how.Interleaved {
		text += "; interleaved rotary pairs"
	}
	return text + f.f.Why()
}

// counts says in how many layers the values are the same, of those that can be computed.
func (f *candidate) counts() string {
	text := fmt.Sprintf("%d of %d, relative L2 %.1e", f.good, f.of, f.error)
	if n := len(f.f.Layers) - f.of; n > 0 {
		text += fmt.Sprintf("; %d more could not be computed", n)
	}
	return text
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func keysOf[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
