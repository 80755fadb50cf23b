package diagnose

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// draws is in how many rooms each kind is made. The wide run, of all rooms, takes an hour: TRACEDIFF_KINDS=1 go test ./compare/diagnose -run AllKinds -draws 1000 -timeout 2h.
var draws = flag.Int("draws", 3, "in how many roles of the random models each kind of mistakes is made")

// room is a role of a model with the entries in which mistakes are made.
type room struct {
	m       *Model
	name    string
	entries []*Entry
	all     []Mistake // that generators yield for it
}

// cut is what counts as captured for the program of a node, where all tensors are.
type cut struct {
	name string
	has  func(m *Model, n, o order.Node) bool
}

var cuts = []cut{
	{"", func(*Model, order.Node, order.Node) bool { return true }},
	{"opened", func(m *Model, _, o order.Node) bool {
		name := m.List.At(o).Name
		return !strings.HasPrefix(name, "mask.") && !strings.HasPrefix(name, "rotary.")
	}},
	{"caches", func(m *Model, n, o order.Node) bool {
		return o.Pass == n.Pass || !slices.ContainsFunc(m.List.At(o).Inputs, func(r order.Ref) bool { return r.Prev })
	}},
}

// roomsOf are the roles of a model: each with an operation by itself, with masks and tables inside, and with what earlier passes have put into caches.
func roomsOf(t *testing.T, m *Model, name string) (all []*room) {
	t.Helper()
	var roles []string
	nodes := map[string][]order.Node{}
	for _, pass := range []int{0, 1} {
		for k := range m.List.Entries {
			e := &m.List.Entries[k]
			if _, given := e.Op.(op.Given); given {
				continue
			}
			role := order.NameOf(e.Name).Role()
			if nodes[role] == nil {
				roles = append(roles, role)
			}
			nodes[role] = append(nodes[role], order.Node{Entry: k, Pass: pass})
		}
	}
	for _, role := range roles {
		for _, c := range cuts {
			r := &room{m: m, name: strings.TrimSpace(fmt.Sprintf("%s %s %s", name, role, c.name))}
			changes := c.name == ""
			for _, n := range few(nodes[role], c.name) {
				e := soundEntry(t, m, n, func(o order.Node) bool { return m.Has(o) && c.has(m, n, o) })
				if e == nil || len(e.Program.Steps) == 0 {
					continue
				}
				if c.name != "" {
					own := soundEntry(t, m, n, m.Has)
					changes = changes || own != nil && len(own.Program.Steps) != len(e.Program.Steps)
				}
				r.entries = append(r.entries, e)
			}
			if changes && len(r.entries) > 0 {
				all = append(all, r)
			}
		}
	}
	return all
}

// few are the first, the last of the prompt and one of a step; of caches, of steps alone.
func few(nodes []order.Node, cut string) []order.Node {
	n := slices.IndexFunc(nodes, func(n order.Node) bool { return n.Pass == 1 })
	if cut == "caches" {
		return nodes[n:]
	}
	if len(nodes) < 4 {
		return nodes
	}
	return []order.Node{nodes[0], nodes[n-1], nodes[n]}
}

// search is a search over some entries of a room, on an account of its own.
func (r *room) search(t *testing.T, entries []*Entry) *search {
	m := *r.m
	m.tried, m.work, m.kept, m.Study = 0, 0, nil, Study{}
	return newSearch(t.Context(), &m, entries)
}

// spelled is a mistake with the kind of its edit.
func spelled(s *search, is Mistake) Mistake {
	if d, ok := s.edit(is); ok && is.Kind == "" {
		named := editMistake(s.subject, s.first, d)
		named.Edit, named.Tokens = is.Edit, is.Tokens
		return named
	}
	return is
}

// yield fills the room with the mistakes that all generators yield while its tensors are noise, in the prompt and in steps, and with usual mistakes.
func (r *room) yield(t *testing.T) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for _, step := range []bool{false, true} {
		var entries []*Entry
		for _, e := range r.entries {
			if (e.Node.Pass > 0) == step {
				e.Judge.(*port).hold(noise(e, rng))
				entries = append(entries, e)
			}
		}
		if len(entries) == 0 {
			continue
		}
		s := r.search(t, entries)
		hears := func(is Mistake) {
			is = spelled(s, is)
			if is.Tokens.Some { // which tokens are wrong is found in the tensors of a port
				return
			}
			if key := is.Key() + string(is.Rounding) + is.Source; !seen[key] {
				seen[key], r.all = true, append(r.all, is)
			}
		}
		s.m.Tried = hears
		if _, err := s.find(stages()); err != nil {
			t.Fatal(err)
		}
		r.describe(t)
		for _, u := range Usuals(r.m.List) {
			if u.is != nil && u.Edits(r.m.List.At(s.first.Node)) {
				if is := u.is(s.subject, s.first); is != (Mistake{}) {
					hears(is)
				}
			}
		}
	}
}

// describe describes what the room's entries hold, those of all passes and layers together: whatever it is, there is an end of it.
func (r *room) describe(t *testing.T) {
	t.Helper()
	var wrong []*Entry
	for _, e := range r.entries {
		if len(e.Left) > 0 {
			wrong = append(wrong, e)
		}
	}
	if len(wrong) == 0 {
		return
	}
	if _, err := describe(r.search(t, wrong)); err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
}

// noise is a tensor that no mistake gives.
func noise(e *Entry, rng *rand.Rand) program.Value {
	right := e.Judge.(*port).right
	x := program.Value{Shape: right.Shape}
	for _, v := range right.Data {
		if v-v != 0 {
			v = 0
		}
		x.Data = append(x.Data, v+rng.NormFloat64()*(1+math.Min(math.Abs(v), 100)))
	}
	return x
}

// make makes the tensors of the room's entries what a mistake makes of them. It reports whether the mistake goes with an entry, and returns the entries that are wrong then, and
// how many of their elements and rows.
func (r *room) make(is Mistake) (goes bool, wrong []*Entry, shown, rows int) {
	for _, e := range r.entries {
		j := e.Judge.(*port)
		j.hold(j.right) // what is found in the tensors of a port is not made from them
		d, err := r.m.Apply(is, e)
		if d == nil || err != nil {
			continue
		}
		p, c := d.Whole(e.Call)
		x, err := p.Eval(c)
		if err != nil || x.Bound == nil {
			continue
		}
		goes = true
		if j.hold(x); len(e.Left) > 0 {
			wrong = append(wrong, e)
		}
		n, m := j.differs(x)
		shown, rows = shown+n, rows+m
	}
	return goes, wrong, shown, rows
}

// plant is a mistake in a room, and what came of it.
type plant struct {
	*room
	is      Mistake
	outcome string // one of the outcomes below
	found   string // the key of the name, or why there is none
	as      Kind   // the kind of the name
}

// The outcomes of a search for a planted mistake.
const (
	itself   = "itself"         // its own name
	aliased  = "alias"          // another name of equal values
	stated   = "relation"       // a statement about the port's tensor
	among    = "undecided"      // no name, and one of those that it may be has equal values
	misnamed = "misnamed"       // a name of other values
	notAmong = "not among them" // no name, and none of those that it may be has equal values
	unnamed  = "unnamed"        // nothing was found
)

// look searches for what is planted.
func (p *plant) look(t *testing.T) {
	t.Helper()
	_, wrong, _, _ := p.make(p.is)
	s := p.search(t, wrong)
	f, err := s.find(stages())
	if err != nil {
		t.Errorf("%s: %s: %v", p.name, p.is.Key(), err)
		return
	}
	equals := func(o survivor) bool { return o.statement == nil && p.equal(t, s, o) }
	p.found, p.as = f.Name.Key(), cmp.Or(f.Mistake.Kind, f.Relation.Kind)
	switch {
	case f.Named() && f.Relation.Kind != "":
		p.outcome = stated
	case f.Named() && f.Name.reads(p.is.name()):
		p.outcome = itself
	case f.Named():
		if p.outcome = misnamed; equals(s.found[0]) {
			p.outcome = aliased
		}
	case len(f.Undecided) > 0:
		p.found = textOf(f.Undecided, "; or ")
		if p.outcome = notAmong; slices.ContainsFunc(s.found, equals) {
			p.outcome = among
		}
	default:
		p.outcome, p.found = unnamed, f.Text()
	}
}

// lookInAnotherOrder searches again, with all stages of a reach in an order that a seed draws. The name is the same.
func (p *plant) lookInAnotherOrder(t *testing.T, seed uint64) {
	t.Helper()
	_, wrong, _, _ := p.make(p.is)
	s := p.search(t, wrong)
	s.m.Drawn = seed
	f, err := s.find(stages())
	if err != nil {
		t.Errorf("%s: %s: %v", p.name, p.is.Key(), err)
		return
	}
	if found := f.Name.Key(); f.Named() != (p.as != "") || f.Named() && found != p.found {
		t.Errorf("%s: %s is planted, and is %s; in an order of stages that %d draws it is %q, or %s", p.name, p.is.Key(), p.found, seed, found, textOf(f.Undecided, "; or "))
	}
}

// equal reports whether a hypothesis has the values of what is planted in the entries of a search.
func (p *plant) equal(t *testing.T, s *search, o survivor) bool {
	t.Helper()
	equal, err := s.equal(survivor{hypothesis: s.hypothesis(p.is)}, o)
	if err != nil {
		t.Errorf("%s: %s: %v", p.name, p.is.Key(), err)
	}
	return equal
}

// equals reports whether another mistake has the values of what is planted.
func (p *plant) equals(t *testing.T, other Mistake) bool {
	t.Helper()
	_, wrong, _, _ := p.make(p.is)
	s := p.search(t, wrong)
	for _, e := range wrong {
		if s.apply(other, e) == nil {
			return false
		}
	}
	return p.equal(t, s, survivor{hypothesis: s.hypothesis(other)})
}

// inDrawOrder are candidates for a kind in the order in which they are drawn: by a digest of their names, so that another mistake changes none of the others.
func inDrawOrder(all []*plant) []*plant {
	place := func(p *plant) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, p.name, p.is.Key(), p.is.Rounding)
		return h.Sum64()
	}
	slices.SortFunc(all, func(a, b *plant) int { return cmp.Compare(place(a), place(b)) })
	return all
}
