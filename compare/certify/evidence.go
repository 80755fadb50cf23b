package certify

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// evidence is one entry of a form.
type evidence struct {
	*trial
	left []int // what transformers' arithmetic does not explain
}

// rowsIn counts the rows in which some elements, which ascend, lie.
func (t *trial) rowsIn(at []int) int {
	width := 1
	if n := len(t.y.Shape); n > 0 {
		width = max(t.y.Shape[n-1], 1)
	}
	n, last := 0, -1
	for _, i := range at {
		if row := i / width; row != last {
			n, last = n+1, row
		}
	}
	return n
}

// entriesOf are the captured entries of a form with what transformers' arithmetic leaves of each.
func (i *Isolator) entriesOf(ctx context.Context, name string) ([]*evidence, error) {
	var nodes []order.Node
	for _, r := range i.trace.Records() {
		n := order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}
		if n.Entry < 0 || r.Firing != 0 || n.Pass >= len(i.env.Passes) || !i.has(n) {
			continue
		}
		if cut, err := i.list.Cut(i.has, n); err == nil && i.formOf(cut, n) == name {
			nodes = append(nodes, n)
		}
	}
	var all []*evidence
	elements := 0
	for _, k := range scattered(len(nodes)) {
		if len(all) >= maxEntries || len(all) >= minEntries && elements >= formElements {
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
		_, left, _, err := t.strict(&arithmetic{})
		if err != nil {
			return nil, err
		}
		if t.formula == nil {
			continue
		}
		all = append(all, &evidence{t, left})
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

// samples are entries from which alone an arithmetic is looked for that explains most: they lie in the middle, by the
// share of their elements that transformers' does not explain, since what is wrong is seldom there.
func samples(left []*evidence) []*evidence {
	of := slices.Clone(left)
	share := func(e *evidence) float64 { return float64(len(e.left)) / float64(len(e.y.Data)) }
	slices.SortStableFunc(of, func(a, b *evidence) int { return cmp.Compare(share(a), share(b)) })
	var some []*evidence
	for _, at := range []int{len(of) / 2, len(of) / 4, len(of) * 3 / 4} {
		if !slices.Contains(some, of[at]) {
			some = append(some, of[at])
		}
	}
	return some
}

// beyond reports whether some element is outside of the hull.
func (e *evidence) beyond() (bool, error) {
	all, err := e.rewrites()
	if err != nil {
		return false, err
	}
	left := e.left
	for _, r := range all {
		j, err := e.in(evaluated{arithmetic: &arithmetic{rewrites: r}, hull: true})
		if err != nil {
			return false, err
		}
		left = slices.DeleteFunc(slices.Clone(left), func(i int) bool { return j.consistent(i) })
	}
	return len(left) > 0, nil
}

// proven reports whether some entries together show enough that transformers' arithmetic does not give.
func proven(of []*evidence) bool {
	elements, rows := 0, 0
	for _, e := range of {
		elements += len(e.left)
		rows += e.rowsIn(e.left)
	}
	return elements >= proofElements && rows >= proofRows
}

// proven reports whether an arithmetic that explains some entries shows enough in them. An element that it leaves a choice, since
// a rounding point before it lies at a midpoint, shows nothing.
func (a *arithmetic) proven(of []*evidence) (bool, error) {
	elements, rows := 0, 0
	for _, e := range of {
		if len(e.left) == 0 {
			continue
		}
		j, err := e.in(evaluated{arithmetic: a})
		if err != nil {
			return false, err
		}
		own, err := e.in(evaluated{arithmetic: &arithmetic{open: a.open}})
		if err != nil {
			return false, err
		}
		shown := slices.DeleteFunc(slices.Clone(e.left), func(i int) bool { return !j.definite(i) || !j.apart(own, i) })
		elements += len(shown)
		rows += e.rowsIn(shown)
		if elements >= proofElements && rows >= proofRows {
			return true, nil
		}
	}
	return false, nil
}

// definite reports whether an element is known to a quarter of a unit of the model's dtype. In float32 nothing is rounded to
// less than what bounds are made of.
func (j *judged) definite(i int) bool {
	if j.model == hooks.F32 {
		return !math.IsInf(j.x.Bound[i], 0)
	}
	return j.x.Bound[i] <= lastPlace(j.model, j.x.Data[i])/4
}

// thin reports whether what an arithmetic other than transformers' leaves of some entries is too little to accuse them of: it was
// found by what it gives, and another that gives as much may give these, too.
func (a *arithmetic) thin(of []*evidence) (bool, error) {
	if a.strict() {
		return false, nil
	}
	elements, rows := 0, 0
	for _, e := range of {
		_, rest, _, err := e.strict(a)
		if err != nil {
			return false, err
		}
		elements, rows = elements+len(rest), rows+e.rowsIn(rest)
	}
	return elements < proofElements || rows < proofRows, nil
}

// apart reports whether two arithmetics give an element no number in common. Where their bounds overlap, what one explains and the
// other does not is a matter of the bounds. In 16 bits a number is an interval of what it was rounded from, and bounds are narrow.
func (j *judged) apart(own *judged, i int) bool {
	if j.model != hooks.F32 {
		return true
	}
	to := func(k *judged, sign float64) float64 { return floats.Round(k.d, k.x.Data[i]+sign*k.x.Bound[i]) }
	return to(j, 1) < to(own, -1) || to(j, -1) > to(own, 1)
}
