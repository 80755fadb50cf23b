package isolate

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// AtOnce is how many elements of an entry are certified at one time: see block.
func AtOnce(i *Isolator, name string, passes []int, elements int) int {
	if elements <= i.Block || len(passes) > 1 {
		return elements
	}
	t, err := i.Unread(order.Node{Entry: i.list.Index(name), Pass: passes[0]}, i.Has)
	if err != nil {
		return elements
	}
	if tokens := t.Block(); tokens > 0 {
		return elements / i.env.Passes[t.Node.Pass].Tokens * tokens
	}
	return elements
}

// Costs returns the number of elements of an entry in a pass, its approximate cost, and whether the entry can be
// computed together with the same entry of other passes: a product with a weight read in the same way by all
// passes.
func Costs(i *Isolator, name string, pass int) (elements, cost int, joins bool) {
	n := order.Node{Entry: i.list.Index(name), Pass: pass}
	if n.Entry < 0 || !i.list.In(n) {
		return 0, 0, false
	}
	e := i.list.At(n)
	elements = program.Size(i.list.Size(n, i.env.Passes))
	o, linear := e.Op.(op.Linear)
	if !linear || len(e.Weights) == 0 || len(e.Weights[0].Shape) == 0 {
		return elements, elements, false
	}
	shape := e.Weights[0].Shape
	// A row of W is decoded whatever the number of tokens, and costs about as much as the products of a few.
	const decoded = 4
	rows := elements / max(shape[0], 1)
	return elements, program.Size(shape) * (rows + decoded) / decoded, !o.Bias && i.o.Single == nil && !i.list.IsRecorded()
}

const (
	// largeElements is the size of a large entry. Smaller entries are certified concurrently with any other entry.
	largeElements = 1 << 22
	// perElement is how many bytes the certification of an element takes: the element, its value, its bound, the inputs, and garbage of the same size.
	perElement = 80
	// DefaultMemory is what a comparison keeps to, in bytes; see [Options].
	DefaultMemory = 1 << 30
)

// MostLarge bounds the total elements of large entries certified at one time. A larger entry is certified without
// other large entries.
func MostLarge(i *Isolator) int { return int(cmp.Or(i.o.Room, DefaultMemory) / perElement) }

// InTurns calls do with the numbers of entries on all cores, the most costly entry first. elements says how many elements of each entry are in memory at one
// time; large entries have no more than most together.
func InTurns(elements, costs []int, most int, do func(n int)) {
	order := make([]int, len(costs))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	q := queue{most: most}
	for _, n := range order {
		q.waiting = append(q.waiting, elements[n])
	}
	q.freed.L = &q.mu
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(order)) {
		wait.Go(func() {
			for at := q.take(); at >= 0; at = q.take() {
				do(order[at])
				q.done(elements[order[at]])
			}
		})
	}
	wait.Wait()
}

// queue hands out entries in order. A large entry may have to wait until other entries are done.
type queue struct {
	mu      sync.Mutex
	freed   sync.Cond
	waiting []int // elements; −1 of one that was taken
	next    int   // all before it were taken
	large   int   // elements of large entries that are being certified
	most    int   // that these may have together
}

// take is the next entry; −1 where none is left.
func (q *queue) take() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for q.next < len(q.waiting) && q.waiting[q.next] < 0 {
			q.next++
		}
		left := false
		for n := q.next; n < len(q.waiting); n++ {
			elements := q.waiting[n]
			if elements < 0 {
				continue
			}
			if left = true; elements >= largeElements {
				if q.large > 0 && q.large+elements > q.most {
					continue
				}
				q.large += elements
			}
			q.waiting[n] = -1
			return n
		}
		if !left {
			return -1
		}
		q.freed.Wait()
	}
}

// done says that an entry of so many elements was certified.
func (q *queue) done(elements int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if elements >= largeElements {
		q.large -= elements
	}
	q.freed.Broadcast()
}

// Results certifies one entry in several passes; right: a certificate that needs a search for an arithmetic is left out.
func Results(ctx context.Context, i *Isolator, name string, passes []int, right bool) []Result {
	all := make([]Result, len(passes))
	if len(passes) == 1 {
		all[0] = ResultOf(ctx, i, name, passes[0], right)
		return all
	}
	trials := make([]*Trial, len(passes))
	var some []*Trial
	for k, pass := range passes {
		n, err := nodeOf(i, name, pass)
		if err == nil {
			trials[k], err = i.Unread(n, i.Has)
		}
		if all[k].Err = err; err != nil {
			continue
		}
		if c := i.memory.known(trials[k]); c != nil {
			all[k], trials[k] = Result{c, trials[k].Cut, nil}, nil
			continue
		}
		if all[k].Err = trials[k].ReadAll(); all[k].Err != nil {
			continue
		}
		trials[k].right = right
		if all[k].Err = trials[k].Prepare(ctx); all[k].Err == nil && isProduct(trials[k]) {
			some = append(some, trials[k])
		}
	}
	if len(some) > 1 {
		together(some)
	}
	for k, t := range trials {
		if t == nil || all[k].Err != nil {
			continue
		}
		var err error
		if all[k].Cert, all[k].Cut, err = certifiedTrial(ctx, t); err != nil {
			all[k] = Result{Err: err}
		}
		trials[k] = nil
	}
	return all
}

// isProduct reports whether a trial is a single product of captured tensors with one weight, and so can be
// evaluated by together.
func isProduct(t *Trial) bool {
	return t.Formula != nil && len(t.Cut.Steps) == 1 && !t.lastOnly && !t.mixed && len(t.Formula.Weights) == 1
}

// together evaluates trials of one entry, reading the common weight once. If the trials cannot be joined, each
// trial is evaluated at its certification.
func together(some []*Trial) {
	var programs []*program.Program
	var calls []program.Call
	for _, t := range some {
		if t.Formula.Weights[0].Name != some[0].Formula.Weights[0].Name {
			return
		}
		call := t.Call
		call.Arith, call.Held, call.Open = t.Isolator.env.Arith, t.held(), true
		programs, calls = append(programs, t.Formula.Program), append(calls, call)
	}
	values, ok, err := program.Together(programs, calls)
	if !ok || err != nil { // the error comes again
		return
	}
	for k, t := range some {
		t.Value = &values[k]
	}
}

// Result is a certificate and the cut used for it, or an error. It is empty if the entry was left for later.
type Result struct {
	Cert *Certificate
	Cut  *order.Plan
	Err  error
}

// ResultOf certifies an entry of a pass. If right is set and the entry needs a search for an arithmetic, the result
// is empty and the entry is left for later. An error of reading or an interrupt is only in the result, and ends
// nothing else.
func ResultOf(ctx context.Context, i *Isolator, name string, pass int, right bool) Result {
	cert, cut, err := certifyEntry(ctx, i, name, pass, right)
	if err != nil {
		return Result{Err: err}
	}
	return Result{cert, cut, nil}
}

// Account counts the work of the searches for one form. Only one search runs at a time.
type Account struct {
	work   int  // of the searches for the arithmetic
	Named  int  // of the searches for a mistake
	Most   int  // the limit of each of the two
	Naming bool // a search for a mistake is running
}

// Add counts work for the search that is running. On a nil account it does nothing.
func (a *Account) Add(work int) {
	switch {
	case a == nil:
	case a.Naming:
		a.Named += work
	default:
		a.work += work
	}
}

// Spent reports whether the searches for the arithmetic have reached their limit.
func (a *Account) Spent() bool { return a != nil && a.work >= a.Most }

// Ended reports whether the searches for the arithmetic or those for a mistake have reached their limit.
func (a *Account) Ended() bool { return a.Spent() || a != nil && a.Named >= a.Most }

// TimeOf is about how long one evaluation of a program takes; with call.Some, of some tokens.
func TimeOf(p *program.Program, call program.Call) int {
	return PartOf(p.Time()+program.StepTime*len(p.Steps), p, call.Some)
}

// PartOf returns the share of a program's work for some of its tokens.
func PartOf(work int, p *program.Program, some *program.Some) int {
	if some == nil {
		return work
	}
	if shape := p.Out.Shape; some.Axis < len(shape) && shape[some.Axis] > len(some.Keep) {
		work = work / shape[some.Axis] * len(some.Keep)
	}
	return work
}
