package propose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"

	"github.com/tracediff/tracediff/capture/mapping/propose/axes"

	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// Proposal is a map that a dump may need.
type Proposal struct {
	Lines   []Line
	Choices []Choice
	Swapped []Line   // of tensors that have each other's names, or are wrong
	Copies  []Copy   // of tensors that have an entry, and are left out
	Others  []string // patterns of tensors that are no entries
	Left    []string // patterns of what fits nothing
	Known   int      // tensors that need no line
	Without []int    // the layers that the dump has no tensor of, if it has tensors of other layers

	computed bool // there were weights to compute with
}

// Line is a line of a map, and why it is proposed.
type Line struct {
	From  string
	To    []string
	Axes  string
	Split string
	Join  string
	Ring  string
	Pass  string
	Rows  string
	By    string // what it stands on where no value says that it is right: "name" or "guess"
	Why   string

	at     int  // in the order
	proven bool // the tensors of several layers have the values of the reference
}

// Choice is a tensor for which several lines are possible, of which a person takes one.
type Choice struct {
	From  string
	Lines []Line
	More  int // entries that would fit, too
}

// ErrNoTokens is returned where it is not known how many tokens the first pass has.
var ErrNoTokens = errors.New("neither the dump nor the reference has the token ids of the first pass")

// Options say what a proposal may use beside the two traces. The zero value is nothing.
type Options struct {
	Weights Weights                            // of the checkpoint, to compute entries from what the dump has; nil: none
	Tell    func(step, steps int, name string) // is told how far a proposal is, and which tensor or entry is looked at; nil for nobody
}

// Map finds what the tensors of a dump are in the order of a model: by known names, by shapes and, where a reference is given, by
// values. A name stands for all layers that it has, so that layers that are wrong have the names of those that are right, and for all ranks or
// stages. fitted is the dump with what needs no map already read; its tensors stand in the same order. ref may be nil. The error is that of
// ctx or of reading, or [ErrNoTokens].
func Map(ctx context.Context, t, fitted *capture.Trace, list *order.List, ref *capture.Trace, o Options) (*Proposal, error) {
	d, err := fromFirst(traces{trace: t, fitted: fitted, ref: ref})
	if err != nil {
		return nil, err
	}
	p, err := proposed(ctx, d, list, o, false)
	if err != nil || !inList(d.trace) || p.provenLayers() {
		return p, err
	}
	other, err := proposed(ctx, d, list, o, true)
	if errors.Is(err, ErrNoTokens) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if len(other.Lines)+len(other.Choices) == 0 {
		return p, nil
	}
	if sure, err := other.provenPasses(d.trace, d.ref); sure || err != nil {
		return other, err
	}
	return p.orPasses(other), nil
}

// proposed is Map for one reading of a dump that is a list: its elements are passes, or not.
func proposed(ctx context.Context, d traces, list *order.List, o Options, passes bool) (*Proposal, error) {
	fitted := d.fitted
	p := &proposer{inPasses: passes, list: list, trace: d.trace, ref: d.ref, values: tensors.NewComparison(), passes: passesOf(fitted), past: d.past, sizes: mapping.SizesOf(list), named: map[string]bool{}, valued: map[string]float64{}, tried: map[string]bool{}}
	if len(p.passes) == 0 && d.ref != nil {
		p.passes = passesOf(d.ref)
	}
	for i := range p.passes {
		p.passes[i].Past += d.past
	}
	if len(p.passes) > 0 {
		p.tokens = p.passes[0].Tokens
	}
	known := func(i int) bool { return p.known(fitted.Records()[i]) }
	all, err := p.templatesOf(ctx, list.Config.NumLayers, known)
	if err != nil {
		return nil, err
	}
	p.of = make([]*template, len(fitted.Records()))
	for _, q := range all {
		for _, x := range q.All {
			p.of[x.At] = q
		}
		if q.NeedsNoLine {
			p.out.Known += len(q.Sources)
		} else {
			p.open = append(p.open, q)
		}
	}
	if n := len(p.open); n > mapping.MaxRules {
		return nil, hint.Add(fmt.Errorf("the names need %d lines, and a map has at most %d", n, mapping.MaxRules),
			"give the tensors of all layers one name with the number of the layer in it, such as h.0.attn, and leave out what is no tensor of the model")
	}
	if err := p.integers(fitted); err != nil {
		return nil, err
	}
	if p.tokens == 0 {
		return nil, ErrNoTokens
	}
	if err := p.swapped(ctx, fitted); err != nil {
		return nil, err
	}
	p.roles(fitted)
	p.first = slices.Clone(p.free)
	if err := p.note(fitted); err != nil {
		return nil, err
	}
	if o.Weights != nil && len(p.passes) > 0 && hasOperands(list) {
		p.computed, p.out.computed = p.newComputed(fitted, o.Weights), true
	}
	for _, q := range p.open {
		q.AddLastRows(p.tokens)
	}
	steps := []func(context.Context) error{
		p.byValues, p.byComputing, p.exchange, p.byNames, p.byComputing, p.byRest, p.byConsumers,
		p.alone, p.byValues, p.byComputing, p.byRest, p.byConsumers, p.together,
		p.copies, p.fusedChoices, p.byShapes,
	}
	for k, step := range steps {
		p.looking = func(name string) {
			if o.Tell != nil {
				o.Tell(k, len(steps), name)
			}
		}
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	p.leaveOut()
	whole := p.whole()
	for _, q := range p.open {
		switch {
		case !q.settled && whole && !p.soundsLike(q):
			p.out.Others = append(p.out.Others, q.Text)
		case !q.settled:
			p.out.Left = append(p.out.Left, q.Text)
		}
	}
	p.joinLines()
	p.out.Without = p.withoutTensors()
	slices.SortStableFunc(p.out.Lines, func(a, b Line) int { return a.at - b.at })
	return &p.out, nil
}

type proposer struct {
	list   *order.List
	trace  *capture.Trace
	ref    *capture.Trace
	values tensors.Comparison
	passes []order.Pass   // as far as they are known
	tokens int            // of the first
	past   int            // those before the first
	of     []*template    // by tensor
	open   []*template    // some are settled
	free   []*role        // some are taken
	first  []*role        // all that were free at first
	sizes  map[string]int // those that layouts may leave out
	ways   map[string][]axes.Layout
	out    Proposal

	computed *computed          // nil without a checkpoint
	made     int                // tensors that were computed
	work     int                // what that took, see [program.Program.Time]
	supposed int                // the part of it for pairs that were none
	pairs    []pairing          // in the order in which they were found
	named    map[string]bool    // the entries that have a tensor
	valued   map[string]float64 // by entry with the values of the reference: how far they are
	tried    map[string]bool    // pairs that are none
	turned   *turns             // see [proposer.turns]
	inPasses bool               // the elements of a dump that is a list are passes
	digests  tensors.Digests    // of the tensors of the dump
	looking  func(name string)  // is told the name of the tensor, or of the entry, that is looked at
}

// want is the shape of an entry in the first pass.
func (p *proposer) want(e *order.Entry) []int {
	return e.Size(order.Pass{Past: p.past, Tokens: p.tokens}, p.list.Config.SlidingWindow)
}

// known reports whether a tensor has the name and the shape of an entry, so that it needs no line.
func (p *proposer) known(r capture.Record) bool {
	e, ok := p.list.Lookup(r.Name)
	return ok && (r.Name == order.InputIDs || r.LastRow || r.Pass > 0 || slices.Equal(r.Shape, p.want(e)))
}

// fitting is a way to take a form of a tensor for an entry, and the layers whose shapes it fits.
type fitting struct {
	axes.Layout
	layers map[int]bool
}

// fits are the ways to take a form of a tensor for an entry, by shape. A way has to fit more than half of the layers: a port may be wrong in
// some. One layer is enough for a tensor that is called like the entry.
func (p *proposer) fits(t *template, f *names.Form, r *role) []fitting {
	var all []fitting
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
		for _, how := range p.arrangements(x.Shape, want, letters, f.Sharding()) {
			i := slices.IndexFunc(all, func(o fitting) bool { return o.Layout == how })
			if i < 0 {
				i, all = len(all), append(all, fitting{how, map[int]bool{}})
			}
			all[i].layers[layer] = true
		}
	}
	return slices.DeleteFunc(all, func(w fitting) bool {
		few := 2*len(w.layers) <= len(layers) && !t.Called(r.text)
		return len(w.layers) < len(layers) && (few || f.Last || f.Join == names.JoinAxis || f.Stages != nil && len(p.unfit(f, w.Text)) > 0)
	})
}

// asLarge reports whether a form has as many elements as an entry, in some layer.
func (p *proposer) asLarge(f *names.Form, r *role) bool {
	for layer, x := range f.Layers {
		if e := r.layers[layer]; e != nil && tensors.Elements(x.Shape) == tensors.Elements(p.want(e)) {
			return true
		}
	}
	return false
}

// unfit are the layers of a form whose shapes no layout with these axes takes apart.
func (p *proposer) unfit(f *names.Form, axes string) (layers []int) {
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

// arrangements are those of two shapes, worked out once.
func (p *proposer) arrangements(have, want []int, letters string, parts axes.Sharding) []axes.Layout {
	if len(have) > axes.MaxAxes {
		return nil
	}
	key := fmt.Sprint(have, want, letters, parts)
	ways, ok := p.ways[key]
	if !ok {
		ways = axes.Layouts(have, want, letters, p.sizes, parts)
		for i := range ways {
			if w := &ways[i]; w.Text == "" && len(have) < len(want) && p.trace.Status() != "" { // to a trace with a manifest nothing adds axes
				w.Text = w.Whole
			}
		}
		if len(p.ways) == 0 || len(p.ways) > 1<<14 {
			p.ways = map[string][]axes.Layout{}
		}
		p.ways[key] = ways
	}
	return slices.Clone(ways)
}

func isFloat(e *order.Entry) bool {
	d := e.DTypeOf(hooks.F32)
	return d.Float()
}

// lines completes a line: it is several for stages that are not even, and for layers to whose shapes its axes cannot be given.
func (p *proposer) lines(t *template, f *names.Form, roles []*role, l Line) []Line {
	l.From, l.at = t.Text, roles[0].at
	for _, r := range roles {
		l.To = append(l.To, r.text)
	}
	if t.Steps {
		l.Pass = "S"
		if t.First != 0 {
			l.Pass = fmt.Sprintf("S-%d", t.First)
		}
	}
	if f.Join == "" && f.Stages == nil {
		if mapping.OfLayers(t.Text) && slices.ContainsFunc(l.To, func(to string) bool { return !strings.Contains(to, "{L}") }) {
			return oneByOne(t, f, l, nil) // one layer computes what has the number of none
		}
		unfit := p.unfit(f, l.Axes)
		if l.Split != "" {
			unfit = f.Uncommon()
		}
		if len(unfit) > 0 {
			return oneByOne(t, f, l, unfit)
		}
	}
	list := put(f, l)
	if t.From > 0 {
		for _, l := range list {
			for i := range l.To {
				l.To[i] = layerOfTarget.ReplaceAllString(l.To[i], fmt.Sprintf("{$1-%d}", t.From))
			}
		}
	}
	return list
}
