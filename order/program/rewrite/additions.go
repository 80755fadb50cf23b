package rewrite

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// chain is a sum of three or more terms, built from additions of two operands. Only the next addition reads the
// result of an addition. An engine may add the terms in another order: it rounds after each addition, too, but rounds
// other sums.
type chain struct {
	root  int           // the last addition
	inner []int         // the others
	terms []program.Var // each in the shape of the root
	own   *sum          // the program's order
}

// sum is one term of a chain, by its number, or the sum of two sums. The sum with the first term stands first: x + y
// and y + x are the same.
type sum struct {
	first int  // term
	x, y  *sum // nil for a term
	text  string
}

func term(k int) *sum { return &sum{first: k, text: string(rune('a' + k))} }

// plus returns x + y. The text names terms by letters, for example "(a + c) + b".
func plus(x, y *sum) *sum {
	if x.first > y.first {
		x, y = y, x
	}
	return &sum{first: x.first, x: x, y: y, text: x.inside() + " + " + y.inside()}
}

// inside is the text of a sum as a part of another.
func (s *sum) inside() string {
	if s.x == nil {
		return s.text
	}
	return "(" + s.text + ")"
}

const (
	// maxTerms is the number of terms up to which other orders of a chain are tried.
	maxTerms = 16
	// allOrders is up to how many terms every order is tried.
	allOrders = 4
	// maxSaidTerms is up to how many terms an order is written down.
	maxSaidTerms = 6
)

// orders are the orders in which an engine may add n terms, the plainest first: from the first to the last, from the last to
// the first, in halves, one term last, one first; of few terms all there are, 3 for three terms and 15 for four.
func orders(n int) []*sum {
	terms := make([]*sum, n)
	for k := range terms {
		terms[k] = term(k)
	}
	back := slices.Clone(terms)
	slices.Reverse(back)
	all := []*sum{inTurn(terms), inTurn(back), inHalves(terms)}
	for k := range terms {
		rest := slices.Concat(terms[:k], terms[k+1:])
		all = append(all, plus(inTurn(rest), terms[k]), inTurn(append([]*sum{terms[k]}, rest...)))
	}
	if n <= allOrders {
		all = append(all, everyOrder(terms)...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s *sum) bool {
		again := seen[s.text]
		seen[s.text] = true
		return again
	})
}

func inTurn(terms []*sum) *sum {
	s := terms[0]
	for _, t := range terms[1:] {
		s = plus(s, t)
	}
	return s
}

func inHalves(terms []*sum) *sum {
	if len(terms) == 1 {
		return terms[0]
	}
	return plus(inHalves(terms[:len(terms)/2]), inHalves(terms[len(terms)/2:]))
}

// everyOrder parts the terms in two in every way, the first term being in the first part.
func everyOrder(terms []*sum) []*sum {
	if len(terms) == 1 {
		return terms
	}
	var all []*sum
	for with := range 1<<(len(terms)-1) - 1 { // which of the others are in the first part: not all
		first, second := []*sum{terms[0]}, []*sum(nil)
		for k, t := range terms[1:] {
			if with>>k&1 == 1 {
				first = append(first, t)
			} else {
				second = append(second, t)
			}
		}
		for _, x := range everyOrder(first) {
			for _, y := range everyOrder(second) {
				all = append(all, plus(x, y))
			}
		}
	}
	return all
}

// chains are the chains of a program, by what they have in common: copies of an operation add in one order.
func chains(p *program.Program) [][]*chain {
	readers := readersOf(p)
	var all [][]*chain
	kinds := map[string]int{}
	part := make([]bool, len(p.Steps)) // of a later chain
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if p.Steps[i].Prim != program.Add || part[i] {
			continue
		}
		c := &chain{root: i}
		kind := ""
		var of func(v program.Var) *sum
		add := func(i int, shown func(program.Var) (program.Var, bool)) *sum {
			s := &p.Steps[i]
			kind += s.Form + "/" + s.Site + "\n"
			x, ok := shown(s.Args[0])
			y, too := shown(s.Args[1])
			if !ok || !too {
				return nil
			}
			a := of(x) // terms are numbered from the left
			return plus(a, of(y))
		}
		of = func(v program.Var) *sum {
			if p.Steps[v.Step].Prim == program.Add && readers[v.Step] == 1 {
				if s := add(v.Step, seenAs(p, v)); s != nil {
					part[v.Step] = true
					c.inner = append(c.inner, v.Step)
					return s
				}
			}
			c.terms = append(c.terms, v)
			return term(len(c.terms) - 1)
		}
		c.own = add(i, func(v program.Var) (program.Var, bool) { return v, true })
		if n := len(c.terms); n < 3 || n > maxTerms {
			continue
		}
		k, ok := kinds[kind]
		if !ok {
			k, kinds[kind] = len(all), len(all)
			all = append(all, nil)
		}
		all[k] = append(all[k], c)
	}
	return all
}

// seenAs shows the operands of an addition in the shape in which its result is read; not where the result is read in another
// order, or a part of it.
func seenAs(p *program.Program, v program.Var) func(program.Var) (program.Var, bool) {
	whole := p.Result(v.Step)
	return func(operand program.Var) (program.Var, bool) {
		if len(whole.Shape) <= len(v.Shape) {
			if shape, ok := program.Broadcast(whole.Shape, v.Shape); ok && slices.Equal(shape, v.Shape) && alike(whole.Expanded(v.Shape), v) {
				return operand.Expanded(v.Shape), true
			}
		}
		if v.Off != 0 || !v.Plain() || program.Size(v.Shape) != program.Size(whole.Shape) || operand.Repeats() || !operand.Plain() {
			return operand, false
		}
		return program.Var{Step: operand.Step, Off: operand.Off, Shape: v.Shape, Stride: program.Contiguous(v.Shape)}, true
	}
}

// alike is [Var.Same] but for the strides of axes of one element.
func alike(a, b program.Var) bool {
	if a.Step != b.Step || a.Off != b.Off || !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	for k, n := range a.Shape {
		if n > 1 && a.Stride[k] != b.Stride[k] {
			return false
		}
	}
	return true
}

// Orders is in how many other orders the additions of a program can be; inOrder makes them.
func Orders(p *program.Program) int { return ordersIn(chains(p)) }

func ordersIn(kinds [][]*chain) int {
	n, most := 0, 0
	for _, of := range kinds {
		k := len(of[0].others())
		n, most = n+k, max(most, k)
	}
	if len(kinds) > 1 {
		n += most
	}
	return n
}

// others are the orders of a chain that are not the program's.
func (c *chain) others() []*sum {
	n := len(c.terms)
	known, ok := ordersOf.Load(n)
	if !ok {
		known, _ = ordersOf.LoadOrStore(n, orders(n))
	}
	return slices.DeleteFunc(slices.Clone(known.([]*sum)), func(s *sum) bool { return s.text == c.own.text })
}

// ordersOf are the orders of so many terms.
var ordersOf sync.Map

// inOrder returns the program with the additions of its chains in another order k, numbered from 1: in the chains of
// one kind, or, for a program with several kinds, of all kinds. Each intermediate sum is rounded like the program's
// own. The additions are definite: an engine that adds two float32 numbers gives the number nearest to their sum.
// Hence the order determines the result, and there is no bound where the terms are known exactly. inOrder returns the
// program itself if order k does not exist.
func inOrder(p *program.Program, k int) (*program.Program, error) {
	if k < 1 {
		return p, nil
	}
	kinds := chains(p)
	if k > ordersIn(kinds) {
		return p, nil
	}
	e := edit.NewEditor(p)
	var said []string
	reorder := func(of []*chain, k int) {
		others := of[0].others()
		if k >= len(others) {
			return
		}
		for _, c := range of {
			c.reorder(e, others[k])
		}
		said = append(said, of[0].words(others[k]))
	}
	k--
	for _, of := range kinds {
		n := len(of[0].others())
		if k >= 0 && k < n {
			reorder(of, k)
		}
		k -= n
	}
	for _, of := range kinds {
		if k >= 0 {
			reorder(of, k)
		}
	}
	d, err := e.End()
	if err != nil {
		return nil, fmt.Errorf("adding in another order: %w", err)
	}
	q, _ := d.Whole(program.Call{})
	q.Reordered, q.Kernel = said, p.Kernel
	return q, nil
}

// words say what another order of a chain is.
func (c *chain) words(s *sum) string {
	if len(c.terms) > maxSaidTerms {
		return fmt.Sprintf("adds %d terms in another order", len(c.terms))
	}
	return fmt.Sprintf("adds %d terms in another order, %s for %s", len(c.terms), s.text, c.own.text)
}

// reorder puts the additions of a chain into the order to. Each addition except the last keeps the other properties,
// such as the rounding, of an addition of the chain.
func (c *chain) reorder(e *edit.Editor, to *sum) {
	used := 0
	var made func(s *sum) program.Var
	made = func(s *sum) program.Var {
		if s.x == nil {
			return c.terms[s.first].Expanded(e.Steps[c.root].Shape)
		}
		x, y := made(s.x), made(s.y)
		v := e.Move(c.inner[used])
		used++
		a := &e.Steps[v.Step]
		a.Args, a.Shape, a.Payload = []program.Var{x, y}, e.Steps[c.root].Shape, program.Definite
		v.Shape, v.Stride = a.Shape, program.Contiguous(a.Shape)
		return v
	}
	x, y := made(to.x), made(to.y)
	e.Become(c.root, program.Add, x, y)
	e.Steps[c.root].Payload = program.Definite
}
