package certify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// An engine has one arithmetic for all operations of a form. So what an entry is explained by, when transformers' own
// arithmetic does not, is held against other entries of the form: free arithmetic allows every element half a unit at each
// step, and a mistake of one unit in a few elements of one norm would hide in it.

const (
	// proof is in how many elements a definite arithmetic has to differ from transformers' for the entry to speak for itself:
	// no mistake hits exactly those by chance.
	proof = 8
	// contrary is in how many elements other entries have to show transformers' arithmetic against a definite one that
	// explains fewer than proof. One is a bound that nearly every sum keeps.
	contrary = 4
	// improbable is −log of the chance that entries of one arithmetic are as unlike as those seen: one in a million.
	improbable = 14
)

// Other entries of a form are looked at until there are maxSiblings, or siblingElements elements of minSiblings, spread over
// the trace: the cost of a judgement that is rare does not grow with the trace.
const (
	maxSiblings     = 256
	minSiblings     = 4
	siblingElements = 1 << 18
)

// explanations are the elements of one entry that each arithmetic leaves, by its words.
type explanations struct {
	left  map[string][]int
	width int // of a row
	slack int // rows in which free arithmetic leaves an element a choice

	choices map[int]int // how many elements of a row it leaves a choice

	keys   []uint64        // of each row the number that decides, see [trial.deciding]
	open   map[uint64]bool // those of the rows with a choice
	shifts shifts          // of the rows, in free arithmetic
}

func newExplanations(y op.Value) *explanations {
	x := &explanations{left: map[string][]int{}, width: 1}
	if n := len(y.Shape); n > 0 {
		x.width = max(y.Shape[n-1], 1)
	}
	return x
}

// rows counts the rows in which some elements, which ascend, lie. Rows are what is counted: an engine that rounds a norm's
// factor changes all of a row or nothing.
func (x *explanations) rows(at []int) int {
	n, last := 0, -1
	for _, i := range at {
		if row := i / x.width; row != last {
			n, last = n+1, row
		}
	}
	return n
}

// free notes the rows in which free arithmetic leaves an element more than one value, and how far rows are off in it.
func (x *explanations) free(j *judged, t *trial) (err error) {
	if x.keys, err = t.deciding(j, x.width); err != nil {
		return err
	}
	x.open, x.choices = map[uint64]bool{}, map[int]int{}
	for i, v := range j.x.Data {
		if e := j.x.Bound[i]; floats.Round(j.d, v-e) != floats.Round(j.d, v+e) {
			x.choices[i/x.width]++
			x.open[x.keys[i/x.width]] = true
		}
	}
	x.slack = len(x.choices)
	x.shifts = t.shifts(j, x.keys, x.width)
	return nil
}

// siblings are what entries of one form show.
type siblings struct {
	once sync.Once
	all  map[order.Node]*explanations
	err  error
}

// equals are those of the others whose operation has the same constants: that of a division by a power of two is rounded shows
// nowhere.
func (t *trial) equals(others map[order.Node]*explanations) map[order.Node]*explanations {
	same := map[order.Node]*explanations{}
	for n, o := range others {
		if n != t.node && t.i.list.Entries[n.Entry].Op == t.entry.Op {
			same[n] = o
		}
	}
	return same
}

// siblings looks at entries of a form, once.
func (i *Isolator) siblings(ctx context.Context, form string) (map[order.Node]*explanations, error) {
	i.mu.Lock()
	s := i.kinds[form]
	if s == nil {
		s = &siblings{}
		i.kinds[form] = s
	}
	i.mu.Unlock()
	s.once.Do(func() { s.all, s.err = i.look(ctx, form) })
	return s.all, s.err
}

func (i *Isolator) look(ctx context.Context, form string) (map[order.Node]*explanations, error) {
	var nodes []order.Node
	for _, r := range i.trace.Records() {
		n := order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}
		if n.Entry >= 0 && r.Firing == 0 && i.has(n) && op.Form(i.list.Entries[n.Entry].Op) == form {
			nodes = append(nodes, n)
		}
	}
	all := map[order.Node]*explanations{}
	elements := 0
	for _, k := range scattered(len(nodes)) {
		if len(all) >= maxSiblings || len(all) >= minSiblings && elements >= siblingElements {
			break
		}
		t, err := i.trial(ctx, nodes[k])
		var bare *order.BareError
		var bad *misfit
		switch {
		case errors.As(err, &bare), errors.As(err, &bad):
			continue
		case err != nil:
			return nil, err
		}
		if all[nodes[k]], err = t.explain(); err != nil {
			return nil, err
		}
		elements += len(t.y.Data)
	}
	return all, nil
}

// scattered lists 0 to n−1 in an order whose beginnings are spread over all: by steps of about the golden section of n that
// have no common divisor with it.
func scattered(n int) []int {
	step := max(int(float64(n)*(math.Sqrt(5)-1)/2), 1)
	for divisor(step, n) != 1 {
		step++
	}
	list := make([]int, n)
	for k := range list {
		list[k] = k * step % n
	}
	return list
}

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// explain tries all arithmetics on an entry.
func (t *trial) explain() (*explanations, error) {
	x := newExplanations(t.y)
	for _, e := range append([]engine{t.i.strict()}, t.engines()...) {
		j, err := t.in(e)
		if err != nil {
			return nil, err
		}
		x.left[e.words] = j.outside()
		if e.Inner == op.Free {
			if err := x.free(j, t); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

// contradicted returns what is left of an entry that the engine explains when the other entries of its form say that it was
// not computed so, or when a known mistake gives all of it, and why; nil when neither does.
func (t *trial) contradicted(e engine, x *explanations) (left []int, why string, err error) {
	off := x.left[string(Strict)]
	if e.Inner != op.Free && len(off) >= proof {
		return nil, "", nil
	}
	form := op.Form(t.entry.Op)
	others, err := t.i.siblings(t.ctx, form)
	if err != nil {
		return nil, "", err
	}
	equals := t.equals(others)
	why = fmt.Sprintf("an engine that %s might give them, but other entries of %s show that this one does not", e.words, form)
	if e.Inner != op.Free {
		if against(equals, e.words) < contrary {
			return nil, "", nil
		}
		return off, why, nil
	}
	if mistake, err := t.mistaken(off, x, equals); err != nil || mistake != "" {
		return off, "they are those of an engine that " + mistake, err
	}
	if why := t.shifted(others, x); why != "" {
		return off, why, nil
	}
	if t.lonely(equals, x) {
		return off, why, nil
	}
	for _, base := range append([]engine{t.i.strict()}, t.engines()...) {
		if base.Inner != op.Free && t.unlike(equals, base.words, x) {
			return x.left[base.words], why, nil
		}
	}
	return nil, "", nil
}

// against counts the elements of entries that follow transformers which an arithmetic does not explain.
func against(others map[order.Node]*explanations, words string) int {
	sum := 0
	for _, o := range others {
		if len(o.left[string(Strict)]) == 0 {
			sum += len(o.left[words])
		}
	}
	return sum
}

// evidence is over how many different numbers that decide a mistake has to explain rows that transformers' arithmetic does
// not: of one or two, an engine's rounding may be the same by chance.
const evidence = 4

// mistaken returns the known mistake that gives all of the entry, in transformers' arithmetic, where the right operation
// leaves enough of it: what is definite comes before a choice. Where that are few rows, or few elements, it has to give all
// of other entries, too. It is empty where none does.
func (t *trial) mistaken(off []int, x *explanations, others map[order.Node]*explanations) (string, error) {
	if len(off) == 0 {
		return "", nil
	}
	nodes := sorted(others)
	for _, m := range op.Mistakes(t.entry.Op) {
		all, err := t.by(m.Op)
		if err != nil {
			return "", err
		}
		numbers, elements := map[uint64]bool{}, len(off)
		x.numbers(numbers)
		enough := func() bool { return elements >= proof && (len(numbers) >= evidence || pointwise(t.entry.Op)) }
		for _, n := range nodes {
			if !all || enough() {
				break
			}
			o := others[n]
			if len(o.left[string(Strict)]) == 0 {
				continue
			}
			other, err := t.i.trial(t.ctx, n)
			if err != nil {
				return "", err
			}
			if all, err = other.by(m.Op); err != nil {
				return "", err
			}
			o.numbers(numbers)
			elements += len(o.left[string(Strict)])
		}
		if all && enough() {
			return m.Words, nil
		}
	}
	return "", nil
}

// numbers takes in those that decide over the rows in which transformers' arithmetic leaves something.
func (x *explanations) numbers(all map[uint64]bool) {
	for _, i := range x.left[string(Strict)] {
		all[x.keys[i/x.width]] = true
	}
}

// by reports whether another operation, in transformers' arithmetic, gives all of the entry.
func (t *trial) by(other op.Op) (bool, error) {
	e := t.i.strict()
	e.ops = func(o op.Op) op.Op {
		if o == t.entry.Op {
			return other
		}
		return o
	}
	j, err := t.in(e)
	return err == nil && len(j.outside()) == 0, err
}

// leastShare is the lower end of the interval of Wilson (1927) for a share of which some rows, changed or not, are a sample,
// with two and a half standard deviations.
func leastShare(changed, rows int) float64 {
	const z = 2.5
	n := float64(max(rows, changed, 1))
	p := float64(changed) / n
	return (p + z*z/(2*n) - z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))) / (1 + z*z/n)
}

// unlike reports whether others follow a definite arithmetic too closely to be of one that changes as many rows of this
// entry, or as few as of those of them that it changes some of: p is the least of these shares, N the different numbers that
// decide over the rows of the entries of which it changes none, and (1−p)^N, times in how many ways that many of them can be chosen, the chance.
//
// What a rounding changes of a function that saturates depends on its arguments, so p is then the least share of any entry;
// of other operations it is a matter of the arithmetic alone, and p the share of all. A share is the least that the rows
// allow. Where a number of a row is rounded in words, too, something that is rounded otherwise before it
// shows now and then only, and then in a whole row: nothing is known of p.
func (t *trial) unlike(others map[order.Node]*explanations, words string, x *explanations) bool {
	own := x.rows(x.left[words])
	if own == 0 || words != string(Strict) && x.whole(words, 4) > 0 {
		return false
	}
	least := leastShare(own, x.slack)
	sum, of := own, max(x.slack, own)
	follow, total, followed := 0, 0, map[uint64]bool{}
	for _, o := range others {
		rest, known := o.left[words]
		if !known || o.slack == 0 {
			continue
		}
		total++
		changed := o.rows(rest)
		if changed == 0 {
			follow++
			maps.Copy(followed, o.open)
			continue
		}
		sum, of = sum+changed, of+max(o.slack, changed)
		least = min(least, leastShare(changed, o.slack))
	}
	p := least
	if !saturates(t.entry.Op) {
		p = min(leastShare(own, x.slack), leastShare(sum, of))
	}
	return -float64(len(followed))*math.Log1p(-p)-choices(total, follow) >= improbable
}

// pointwise reports whether an operation computes every element by itself, so that each is a proof of its own.
func pointwise(o op.Op) bool {
	s, _ := op.Shares(o)
	return s == op.SharedElement
}

// saturates reports whether an operation has ranges of arguments in which rounding inside it shows nowhere.
func saturates(o op.Op) bool {
	_, is := o.(op.Saturating)
	return is
}

// choices is the log of the number of ways to choose k of n.
func choices(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
