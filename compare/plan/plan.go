package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// maxPasses bounds the forward calls of a trace. No capture has more decode steps than a context has tokens.
const maxPasses = 1 << 16

// maxEmpty bounds the number of entries to look up over all passes, in addition to 64 for each recorded tensor: a
// claim in a manifest or a key must not cost more than the trace's real content. The largest model has some 2000
// entries a pass.
const maxEmpty = 1 << 23

// Options are the inputs of a plan other than the two traces.
type Options struct {
	Order *order.List   // nil: the names of the reference trace, as they were first fired
	Scope capture.Scope // that was asked for
	// Named says that a user asked for the entries of Order by name. An absent entry is then MISSING even in a
	// trace without a declared scope.
	Named bool
	// Mapped says that the names of the local tensors come from a map, and Absent has the map's reasons for absent
	// entries, by name.
	Mapped bool
	Absent map[string]string
	Fused  []string // further modules of the local side with fused attention, in addition to the manifest's
	// OneSided says that Order belongs to only one of the sides, so shapes are not checked against the order.
	OneSided bool
}

// Plan is the plan of a comparison: the entries in the order of the walk, and their scopes. It does not change.
type Plan struct {
	*sides.Pair
	List    *order.List // of the options
	Entries []order.Entry
	Scopes  Scopes
	Tokens  Tokens
	Passes  int // of the side that has more

	promises promises
	before   int // entries before the first layer; 0 for an order of plain names
	last     int // the last entry of the layers; −1 without layers
	window   int // the window of sliding layers; −1 if the order gives no shapes
}

// New makes the plan of a comparison. The error is an [*sides.UnsuitableError] if nothing says in which order tensors were computed.
func New(pair *sides.Pair, o Options) (*Plan, error) {
	p := &Plan{Pair: pair, List: o.Order, Passes: max(pair.Sides[0].Passes, pair.Sides[1].Passes)}
	list := o.Order
	if list == nil {
		var err error
		if list, err = orderOf(pair.Sides[sides.Reference].Trace); err != nil {
			return nil, err
		}
	}
	held := len(pair.Sides[sides.Local].Trace.Records()) + len(pair.Sides[sides.Reference].Trace.Records())
	if err := walkable(p.Passes, len(list.Entries), held); err != nil {
		return nil, err
	}
	p.promises = promisesOf(pair, list, o)
	p.Entries = slices.Clone(list.Entries)
	p.Scopes.Of = [3]capture.Scope{pair.Sides[sides.Local].Manifest.Scope, pair.Sides[sides.Reference].Manifest.Scope, o.Scope}
	for n, s := range p.Scopes.Of {
		p.Scopes.chosen[n] = sides.Selected(s, list)
	}
	p.inputsFirst()
	if first := slices.IndexFunc(p.Entries, func(e order.Entry) bool { return e.Layer >= 0 }); first >= 0 && list.Config != nil {
		p.before = first
	}
	p.last = -1
	for i := range p.Entries {
		if p.Entries[i].Layer >= 0 {
			p.last = i
		}
	}
	if p.window = -1; list.Config != nil && !o.OneSided {
		p.window = list.Config.SlidingWindow
	}
	p.Tokens = countTokens(pair, p.Passes)
	return p, nil
}

// orderOf makes an order from the names of a trace, in the order of their first firings.
func orderOf(t *capture.Trace) (*order.List, error) {
	if !t.Sequence() {
		return nil, &sides.UnsuitableError{
			What: "sequence", Reason: fmt.Sprintf("nothing says in which order the tensors of %s were computed", t.Path()),
			Hint: "name the model of both with --model DIR, or give the order with --order FILE, one tensor name a line",
		}
	}
	var names strings.Builder
	seen := map[string]bool{}
	for _, r := range t.Records() {
		if !seen[r.Name] {
			seen[r.Name] = true
			names.WriteString(r.Name + "\n")
		}
	}
	list, err := order.ReadNames(strings.NewReader(names.String()))
	if err != nil {
		return nil, fmt.Errorf("the names of %s as an order: %w", t.Path(), err)
	}
	return list, nil
}

// inputsFirst moves the token ids to the front. If the order lacks the ids but both traces have them, inputsFirst
// adds them.
func (p *Plan) inputsFirst() {
	ids := order.Entry{Name: order.InputIDs, Layer: -1, Level: 1}
	i := slices.IndexFunc(p.Entries, func(e order.Entry) bool { return e.Name == order.InputIDs })
	if i >= 0 {
		ids = p.Entries[i]
		p.Entries = slices.Delete(p.Entries, i, i+1)
	} else if !hasInputs(&p.Sides[sides.Local]) || !hasInputs(&p.Sides[sides.Reference]) {
		return
	}
	p.Entries = slices.Insert(p.Entries, 0, ids)
}

func hasInputs(s *sides.Side) bool {
	return slices.ContainsFunc(s.Trace.Records(), func(r capture.Record) bool { return r.Name == order.InputIDs })
}

// Walkable reports a trace that claims more passes of the entries of a list than a comparison walks, given how many
// tensors it holds. [New] refuses such traces, counting the tensors of both sides; Walkable lets a caller refuse one before it runs a model.
func Walkable(t *capture.Trace, list *order.List) error {
	return walkable(sides.Passes(t), len(list.Entries), len(t.Records()))
}

func walkable(passes, entries, held int) error {
	if passes > maxPasses {
		return fmt.Errorf("comparing: a trace of %d passes, more than the %d that are walked", passes, maxPasses)
	}
	if passes*entries > maxEmpty+64*held {
		return fmt.Errorf("comparing: %d passes of %d entries are claimed, and %d tensors are there", passes, entries, held)
	}
	return nil
}

// Covered reports whether every scope selects an entry.
func (p *Plan) Covered(i int) bool { return p.Scopes.covers(p.Entries[i].Name) }

// Walked reports whether every scope selects an entry and leaves some of its rows in a pass.
func (p *Plan) Walked(i, pass int) bool { return p.Covered(i) && !p.rowless(i, pass) }

// rowless reports whether the scopes leave no row of an entry in a pass: it has a token axis, and none of the pass's
// positions is wanted by all of them.
func (p *Plan) rowless(i, pass int) bool {
	e := &p.Entries[i]
	if e.Name == order.InputIDs || !strings.ContainsRune(e.Axes, order.AxisToken) || !p.Tokens.Known(pass) {
		return false
	}
	for t := range p.Tokens.In[pass] {
		if p.Scopes.coverPosition(p.Tokens.Past[pass] + t) {
			return false
		}
	}
	return true
}

// Common returns the passes that both sides have and every scope includes.
func (p *Plan) Common() []int {
	var passes []int
	for pass := range min(p.Sides[sides.Local].Passes, p.Sides[sides.Reference].Passes) {
		if p.Scopes.CoverPass(pass) {
			passes = append(passes, pass)
		}
	}
	return passes
}

// Derived reports whether an entry was recomputed by the recorder instead of captured from the engine. The order
// decides, or the reference if the order has no operations. A trace with further entries declared as derived is not
// excused from comparing them.
func (p *Plan) Derived(i int) bool {
	e := &p.Entries[i]
	if e.Op != nil {
		return e.Derived()
	}
	return p.Sides[sides.Reference].Derived[e.Name]
}

// Early reports whether the order has an entry before the layers.
func (p *Plan) Early(i int) bool { return i < p.before }

// Behind reports whether an entry comes after all layers.
func (p *Plan) Behind(i int) bool { return p.last >= 0 && i > p.last }

// Index returns the position of an entry in the walk, or −1 for an unknown name.
func (p *Plan) Index(name string) int {
	return slices.IndexFunc(p.Entries, func(e order.Entry) bool { return e.Name == name })
}

// Isolable returns the names of the entries in a range of a pass with an operation and a tensor on both sides.
func (p *Plan) Isolable(pass, from, to int) []string {
	var names []string
	for i := from; i < min(to, len(p.Entries)); i++ {
		e := &p.Entries[i]
		_, argument := e.Op.(op.Given)
		if e.Op == nil || argument || !p.Walked(i, pass) {
			continue
		}
		if _, _, both := p.Lookup(pass, e.Name); both {
			names = append(names, e.Name)
		}
	}
	return names
}

// Entry looks an entry up in the order, if there is one.
func (p *Plan) Entry(name string) (*order.Entry, bool) {
	if p.List == nil {
		return nil, false
	}
	return p.List.Lookup(name)
}

// InPass returns an entry as computed in a pass. Some passes of a recorded program may use another dtype.
func (p *Plan) InPass(e *order.Entry, pass int) *order.Entry {
	if p.List == nil || !p.List.IsRecorded() {
		return e
	}
	n := order.Node{Entry: p.List.Index(e.Name), Pass: pass}
	if n.Entry < 0 || !p.List.In(n) {
		return e
	}
	return p.List.At(n)
}

// None reports whether the order is a recorded program without this tensor in a pass.
func (p *Plan) None(name string, pass int) bool {
	if p.List == nil || !p.List.IsRecorded() {
		return false
	}
	at := p.List.Index(name)
	return at >= 0 && !p.List.In(order.Node{Entry: at, Pass: pass})
}

// Ends returns the first and the last entry of a pass required for a complete way from the input to the logits, or
// −1 without an entry. A typed scope or level moves the ends; tensors absent from a trace do not.
func (p *Plan) Ends(pass int) (first, last int) {
	first, last = -1, -1
	for i := range p.Entries {
		if p.Derived(i) || !p.Scopes.coverLevel(&p.Entries[i]) || !p.Scopes.chosen[request][p.Entries[i].Name] || p.rowless(i, pass) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	return first, last
}
