package certify

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/mistakes"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Sight is which of the usual mistakes of docs/mistakes.md a run would have shown: as a BUG in one entry at least, whatever the engine's
// roundings. Each was made in the run's own numbers. Mistakes that the model cannot have do not count.
type Sight struct {
	Known  int      `json:"known"`
	Seen   []string `json:"seen"`             // their names
	Unseen []Unseen `json:"unseen,omitempty"` // what would change no element, or none by more than roundings may
	// Skipped were not looked at: the search came to its end before them.
	Skipped []string `json:"skipped,omitempty"`
}

// Unseen is a mistake that a run would not have shown.
type Unseen struct {
	Name    string `json:"name"`
	Mistake string `json:"mistake"` // in words
	Page    string `json:"page"`    // its heading in docs/mistakes.md
	ShownBy string `json:"shown_by"`
	// Rounding: elements would change, by no more than some choice of roundings may.
	Rounding bool `json:"rounding,omitempty"`
}

// What would show a mistake that a run lacks nothing to show.
const (
	byLevel = "a capture with --level 3"
	byHooks = "hooks in more places"
	byDType = "float32"
	// ByNumbers: nothing is known that would, but numbers of another size.
	ByNumbers = "other weights or another prompt"
)

const (
	// A search may compute sightWork elements and products on any trace, about half a second, or one part in sightShare of what
	// certifying took: a step by element takes about four times as long as a product, so that it is a tenth of the time.
	sightWork  = 1 << 25
	sightShare = 40
	sightFocus = 1 << 17 // of an entry that takes more than this, some tokens are looked at
)

// Unite is what several runs would have shown together: a mistake that one shows is shown. nil runs count for nothing; it is nil where
// all are.
func Unite(runs []*Sight) *Sight {
	var all *Sight
	state := map[string]int{} // 1 unseen, 2 skipped, 3 seen
	for _, r := range runs {
		if r == nil {
			continue
		}
		if all == nil {
			all = &Sight{Seen: []string{}}
		}
		for _, name := range r.Seen {
			state[name] = 3
		}
		for _, name := range r.Skipped {
			state[name] = max(state[name], 2)
		}
		for _, u := range r.Unseen {
			state[u.Name] = max(state[u.Name], 1)
		}
	}
	if all == nil {
		return nil
	}
	done := map[string]bool{}
	// What a run that shows more lacks to show the rest is less.
	runs = slices.DeleteFunc(slices.Clone(runs), func(r *Sight) bool { return r == nil })
	slices.SortStableFunc(runs, func(a, b *Sight) int { return len(b.Seen) - len(a.Seen) })
	add := func(name string, is int) bool {
		if done[name] || state[name] != is {
			return false
		}
		done[name] = true
		all.Known++
		return true
	}
	for _, r := range runs {
		for _, name := range r.Seen {
			if add(name, 3) {
				all.Seen = append(all.Seen, name)
			}
		}
		for _, u := range r.Unseen {
			if add(u.Name, 1) {
				all.Unseen = append(all.Unseen, u)
			}
		}
		for _, name := range r.Skipped {
			if add(name, 2) {
				all.Skipped = append(all.Skipped, name)
			}
		}
	}
	return all
}

// sighted is a mistake that is being looked for.
type sighted struct {
	*mistakes.Mistake
	edits           []bool // by entry
	shows           []bool // by entry
	seen            bool
	touched, looked bool     // some captured entry is computed by what is edited; it was looked at
	moved           bool     // float32 would show it
	rounds          bool     // an element changed
	near            []string // forms of entries in which it does no more than roundings may
}

// sight is the search.
type sight struct {
	i         *Isolator
	ctx       context.Context
	all       []*sighted
	work      int
	most      int
	of        func(name string, pass int) bool
	certified Certified
}

// Sight returns which of the usual mistakes the trace would have shown. Work bounds it: the elements and products that are computed;
// 0 for as many as take half a second, or a tenth of the time that certifying took so far. The error is that of ctx, or of reading the trace or
// the weights. Of says which entries count; nil for all.
func (i *Isolator) Sight(ctx context.Context, work int, of func(name string, pass int) bool) (*Sight, error) {
	if work == 0 {
		work = max(sightWork, int(i.worked.Load())/sightShare)
	}
	s := &sight{i: i, ctx: ctx, most: work, of: of}
	for _, k := range mistakes.In(i.list) {
		m := &sighted{Mistake: k}
		for e := range i.list.Entries {
			m.edits = append(m.edits, k.Edits(&i.list.Entries[e]))
			m.shows = append(m.shows, k.ShownBy(&i.list.Entries[e]))
		}
		s.all = append(s.all, m)
	}
	if i.o.Certified != nil {
		var err error
		if s.certified, err = i.o.Certified(); err != nil {
			return nil, err
		}
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	if i.o.Arithmetic == Auto {
		if err := s.nearly(); err != nil {
			return nil, err
		}
	}
	return s.found()
}

// run looks at the captured entries: one of each form, then the next of each, until every mistake was seen.
func (s *sight) run() error {
	forms := s.i.capturedForms()
	var turns [][]order.Node
	for _, name := range forms.names {
		nodes := forms.nodes[name]
		for turn, n := range permuted(nodes, scattered(len(nodes))) {
			if turn == len(turns) {
				turns = append(turns, nil)
			}
			turns[turn] = append(turns[turn], n)
		}
	}
	for _, n := range slices.Concat(turns...) {
		if s.of != nil && !s.of(s.i.list.Entries[n.Entry].Name, n.Pass) {
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if err := s.node(n); err != nil {
			return err
		}
	}
	return nil
}

// node looks at one entry.
func (s *sight) node(n order.Node) error {
	for _, opened := range []bool{false, true} {
		if !slices.ContainsFunc(s.all, func(k *sighted) bool { return !k.seen && k.shows[n.Entry] && k.Opens() == opened }) {
			continue
		}
		has := s.i.has
		if opened {
			has = func(n order.Node) bool { return s.i.given(n) || s.i.has(n) && !s.i.fixed(n.Entry) }
		}
		cut, err := s.i.list.Cut(has, n)
		if err != nil { // the arguments of the model were not captured
			continue
		}
		var open []*sighted
		for _, k := range s.all {
			if !k.seen && k.Opens() == opened && k.shows[n.Entry] && slices.ContainsFunc(cut.Steps, func(at order.Node) bool { return k.edits[at.Entry] }) {
				k.touched = true
				open = append(open, k)
			}
		}
		if len(open) == 0 || !s.accuses(cut) {
			continue
		}
		if err := s.look(n, has, opened, open); err != nil {
			return err
		}
	}
	return nil
}

// accuses reports whether the operations of a cut may accuse.
func (s *sight) accuses(cut *order.Plan) bool {
	return s.certified == nil || !slices.ContainsFunc(cut.Steps, func(n order.Node) bool { return !s.certified[op.Form(s.i.list.Entries[n.Entry].Op)] })
}

// look makes mistakes in one entry.
func (s *sight) look(n order.Node, has func(order.Node) bool, opened bool, open []*sighted) error {
	if s.work >= s.most {
		return nil
	}
	r, err := s.right(n, has, opened, true)
	if r == nil || err != nil {
		return err
	}
	for _, k := range open {
		k.looked = true
		wrong, d, err := s.wrong(r, k)
		if err != nil {
			return err
		}
		if wrong == nil {
			continue
		}
		was := k.rounds
		if k.seen, err = r.shows(wrong, k); err != nil {
			return err
		}
		if s.i.env.DType != hooks.F32 && !k.seen && !k.moved {
			if k.moved, err = r.inFloat32(d); err != nil {
				return err
			}
		}
		if name := s.i.formOf(r.cut, n); !opened && k.rounds && !was && !slices.Contains(k.near, name) {
			k.near = append(k.near, name)
		}
	}
	s.work += r.work
	return nil
}

// right is an entry as it should be, of which some tokens do where it is large; nil where nothing can be said of it, or where there is
// no work left for it.
func (s *sight) right(n order.Node, has func(order.Node) bool, opened, some bool) (*right, error) {
	t, err := s.i.trialFrom(s.ctx, n, has)
	if lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if opened {
		t.read = s.i.orArgument
	}
	if err := t.prepare(); err != nil || t.formula == nil {
		return nil, err
	}
	if some && !streams(t) {
		t = (&evidence{t, spread(t)}).focusAbove(sightFocus).trial
	}
	work := t.formula.Work()
	if s.work+work > s.most {
		return nil, nil
	}
	s.work += 2 * work
	r := &right{trial: t}
	if r.a, err = s.arithmetic(t); r.a == nil || err != nil {
		return nil, err
	}
	if r.whole, r.parts, err = t.cut.Parts(t.passes(), s.i.env.DType, r.a.rewrites); errors.Is(err, order.ErrOwn) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	call := t.call
	call.Arith = s.i.env.Arith
	if call.In, call.W, err = r.inOrder(r.whole); err != nil {
		return nil, err
	}
	if r.kept, err = r.whole.Keep(call, r.a.choices); err != nil {
		return nil, err
	}
	r.given = call
	x, err := r.kept.Own()
	if err != nil {
		return nil, err
	}
	r.own, err = t.judge(copied(x), r.a, false)
	return r, err
}

// wrong is an entry with a mistake; nil where the mistake is none in it, or gives no numbers.
func (s *sight) wrong(r *right, k *sighted) (*judged, *program.Edited, error) {
	d := k.Apply(s.model(r.trial), r.whole, r.parts, r.given)
	if d == nil {
		return nil, nil, nil
	}
	before := r.kept.Work
	x, err := r.kept.Eval(d)
	s.work += r.kept.Work - before
	if err != nil || size(x.Shape) != len(r.y.Data) { // such as an index out of range
		return nil, nil, nil
	}
	j, err := r.judge(copied(x), r.a, false)
	return j, d, err
}

// model is what mistakes are made in.
func (s *sight) model(t *trial) *mistakes.Model {
	return &mistakes.Model{
		List: s.i.list, Passes: t.passes(), DType: s.i.env.DType, Weights: s.i.env.Weights,
		Read: func(n order.Node) (program.Value, bool) {
			rec, ok := s.i.trace.Lookup(n.Pass, s.i.list.Entries[n.Entry].Name)
			if !ok || rec.Firing != 0 || s.i.misfit(n) != nil || t.tokens > 0 {
				return program.Value{}, false
			}
			v, _, err := s.i.value(n)
			return v, err == nil
		},
	}
}

// nearly looks at the mistakes that move elements by no more than roundings may, several at once: each has its share of the work.
func (s *sight) nearly() error {
	var near []*sighted
	for _, k := range s.all {
		if !k.seen && len(k.near) > 0 {
			near = append(near, k)
		}
	}
	errs := make([]error, len(near))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(near)) {
		wait.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(near); n = int(next.Add(1)) - 1 {
				own := *s
				own.work, own.most = 0, (s.most-s.work)/len(near)
				errs[n] = own.named(near[n])
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// named looks at a mistake that moves elements by no more than roundings may. It is a BUG all the same where the form's entries together
// show that it is that and no rounding, see [diagnose.FindNumber].
func (s *sight) named(k *sighted) error {
	for _, name := range k.near {
		other, found := strings.CutSuffix(name, oneToken)
		if !found {
			other = name + oneToken
		}
		var together []*evidence
		for _, of := range []string{name, other} {
			entries, err := s.wrongOf(of, k)
			if err != nil {
				return err
			}
			if entries == nil {
				continue
			}
			together = append(together, entries...)
			f := &form{entries: together, carry: func() ([]*arithmetic, error) { return s.i.carry(s.ctx, name) }}
			if found, err := f.number(f.left()); err != nil {
				return err
			} else if found == nil {
				continue
			}
			if err := f.decide(); err != nil { // no arithmetic gives it, too
				return err
			}
			if k.seen = f.wrong != nil; k.seen {
				return nil
			}
		}
	}
	return nil
}

// searches is about how many evaluations of its entries a search for the arithmetic of a form takes.
const searches = 256

// wrongOf are the entries of a form as a port with a mistake would have them; nil where there is no work left for a search among them.
func (s *sight) wrongOf(name string, k *sighted) ([]*evidence, error) {
	nodes := s.i.capturedForms().nodes[name]
	var all []*evidence
	elements := 0
	for _, n := range permuted(nodes, scattered(len(nodes))) {
		if len(all) >= maxEntries || len(all) >= minEntries && elements >= formElements {
			break
		}
		r, err := s.right(n, s.i.has, false, false)
		if r == nil || err != nil {
			return nil, err
		}
		t := *r.trial
		if wrong, _, err := s.wrong(r, k); err != nil {
			return nil, err
		} else if wrong != nil {
			t.y.Data = make([]float64, len(wrong.x.Data))
			for i, x := range wrong.x.Data {
				t.y.Data[i] = floats.Round(t.d, x)
			}
		}
		s.work += searches * t.formula.Work()
		_, left, _, err := t.strict(&arithmetic{})
		if err != nil {
			return nil, err
		}
		all = append(all, &evidence{&t, left})
		elements += len(t.y.Data)
	}
	return all, nil
}

func copied(x program.Value) program.Value {
	return program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: slices.Clone(x.Bound)}
}

// arithmetic is that in which an entry is right: transformers', or that of its form; nil where none is known to be.
func (s *sight) arithmetic(t *trial) (*arithmetic, error) {
	_, left, _, err := t.strict(&arithmetic{})
	if err != nil || len(left) == 0 {
		return &arithmetic{}, err
	}
	if s.i.o.Arithmetic != Auto {
		return nil, nil
	}
	v, err := s.i.form(s.ctx, s.i.formOf(t.cut, t.node))
	if err != nil {
		return nil, err
	}
	for _, a := range []*arithmetic{v.own, v.second} {
		if a == nil || a.wide {
			continue
		}
		if _, left, _, err := t.strict(a); err != nil || len(left) == 0 {
			return a, err
		}
	}
	return nil, nil
}

// right is what an entry may be.
type right struct {
	*trial
	whole     *order.Formula // of the cut, with what each entry has of it
	parts     []order.Part
	given     program.Call
	kept      *program.Kept
	float     *program.Kept // in float32
	a         *arithmetic
	own       *judged
	rigorous  *judged
	hulls     []*judged
	rewritten []program.Rewrite
	work      int
}

// spread are elements all over an entry: what is looked at of it where it is large.
func spread(t *trial) []int {
	tokens := strings.IndexRune(t.entry.Axes, order.AxisToken)
	if tokens < 0 || len(t.y.Shape) <= tokens {
		return nil
	}
	n, inner := t.y.Shape[tokens], size(t.y.Shape[tokens+1:])
	width := t.y.Shape[len(t.y.Shape)-1]
	step := max(width/focusColumns, 1)
	var all []int
	for i := range t.y.Data {
		if column := i % width; i/inner%n%max(n/focusTokens, 1) == 0 && column%step == column/step%step { // odd ones, too
			all = append(all, i)
		}
	}
	return all
}

// streams reports whether one stream is read of a stack.
func streams(t *trial) bool {
	for k, n := range t.formula.Inputs {
		if len(t.call.In[k].Shape) != len(t.i.list.Entries[n.Entry].Axes) {
			return true
		}
	}
	return false
}

// inOrder are the inputs and weights of a formula, which may number them otherwise than the trial's.
func (r *right) inOrder(f *order.Formula) (in []program.Value, w []program.Rows, err error) {
	for _, n := range f.Inputs {
		at := slices.Index(r.formula.Inputs, n)
		v := r.call.In[at]
		if len(v.Shape) != len(r.i.list.Entries[n.Entry].Axes) { // one stream was read
			if v, err = r.i.env.Read(n); err != nil {
				return nil, nil, err
			}
		}
		in = append(in, v)
	}
	for _, weight := range f.Weights {
		at := slices.IndexFunc(r.formula.Weights, func(o order.Weight) bool { return o.Name == weight.Name })
		w = append(w, r.call.W[at])
	}
	return in, w, nil
}

// shows reports whether a mistake gives an element that no choice of roundings gives, and one that no order of summation gives. That
// is a BUG whatever the engine's arithmetic is, and whatever the other entries have.
func (r *right) shows(wrong *judged, k *sighted) (bool, error) {
	off := r.own.apartFrom(wrong, nil)
	if len(off) == 0 {
		return false, nil
	}
	k.rounds = true
	var err error
	if r.rigorous == nil {
		r.work += r.formula.Work()
		if r.rigorous, err = r.in(evaluated{arithmetic: r.a, rigorous: true}); err != nil {
			return false, err
		}
	}
	if len(r.rigorous.apartFrom(wrong, off)) == 0 {
		return false, nil
	}
	if r.rewritten == nil {
		if r.rewritten, err = r.rewrites(); err != nil {
			return false, err
		}
	}
	for at, w := range r.rewritten {
		if at == len(r.hulls) {
			r.work += r.formula.Work()
			j, err := r.in(evaluated{arithmetic: &arithmetic{rewrites: w}, hull: true})
			if err != nil {
				return false, err
			}
			r.hulls = append(r.hulls, j)
		}
		if off = r.hulls[at].apartFrom(wrong, off); len(off) == 0 {
			return false, nil
		}
	}
	return true, nil
}

// inFloat32 reports whether a mistake would move an element in float32: the same formula of the same inputs, rounded to that.
func (r *right) inFloat32(d *program.Edited) (bool, error) {
	if r.float == nil {
		r.work += r.formula.Work()
		call := r.given
		call.DType = hooks.F32
		var err error
		if r.float, err = r.whole.Keep(call, nil); err != nil {
			return false, err
		}
	}
	x, err := r.float.Own()
	if err != nil {
		return false, err
	}
	y, err := r.float.Eval(d)
	if err != nil || len(x.Data) != len(y.Data) {
		return false, nil
	}
	own, wrong := &judged{x: x, d: hooks.F32, model: hooks.F32, rule: r.entry.Compare}, &judged{x: y}
	return len(own.apartFrom(wrong, nil)) > 0, nil
}

// apartFrom lists elements, of some or of all for nil, of which two values have no number in common.
func (j *judged) apartFrom(k *judged, some []int) []int {
	var at []int
	n := len(some)
	if some == nil {
		n = len(j.x.Data)
	}
	limit := measure.MaskLimit(j.d, j.model)
	to := func(x float64) float64 { return floats.Round(j.d, x) }
	for c := range n {
		i := c
		if some != nil {
			i = some[c]
		}
		x, y := j.x.Data[i], k.x.Data[i]
		e, f := j.x.Bound[i], k.x.Bound[i]
		switch {
		case x != x || y != y:
			if (x != x) == (y != y) {
				continue
			}
		case math.IsInf(e, 0) || math.IsInf(f, 0) || e != e || f != f:
			continue
		case j.rule != order.All && to(x) < limit && to(y) < limit:
			continue
		case to(y+f) >= to(x-e) && to(y-f) <= to(x+e):
			continue
		}
		at = append(at, i)
	}
	return at
}

// found sums up.
func (s *sight) found() (*Sight, error) {
	f := &Sight{Known: len(s.all), Seen: []string{}}
	ids, err := s.i.trace.IDs()
	if err != nil {
		return nil, err
	}
	run := mistakes.Run{Passes: s.i.env.Passes, IDs: ids, DType: s.i.env.DType}
	for _, k := range s.all {
		switch {
		case k.seen:
			f.Seen = append(f.Seen, k.Name)
			continue
		case k.touched && !k.looked:
			f.Skipped = append(f.Skipped, k.Name)
			continue
		}
		u := Unseen{Name: k.Name, Mistake: k.What, Page: k.Page, Rounding: k.rounds, ShownBy: k.Needs(s.i.list.Config).Lacks(run)}
		switch {
		case u.ShownBy != "":
		case !k.touched && s.i.trace.Manifest().Scope.Level < 3:
			u.ShownBy = byLevel
		case !k.touched:
			u.ShownBy = byHooks
		case run.DType.Size() == 2 && k.moved:
			u.ShownBy = byDType
		default:
			u.ShownBy = ByNumbers
		}
		f.Unseen = append(f.Unseen, u)
	}
	return f, nil
}
