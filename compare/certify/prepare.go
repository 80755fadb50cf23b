package certify

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// maxTogether bounds the elements of products of several passes that are computed together: they are in memory at one time.
const maxTogether = 1 << 22

// prepared is one entry in some passes: in several where a product with a weight is, which is then read once.
type prepared struct {
	name     string
	passes   []int
	elements int
	cost     int
}

// Prepare certifies entries, given by pass, on all cores, the most costly entry first. No certificate depends on the order: an entry is computed without
// the other entries, or together with the same entry of other passes. Right: Prepare leaves out the entries that need a search for an
// arithmetic, so that a comparison that ends before them has not searched in vain; [Chain.At] certifies them.
func (c *Chain) Prepare(ctx context.Context, entries map[int][]string, right bool) {
	var all []prepared
	open := map[string]int{} // the last of an entry
	for _, pass := range slices.Sorted(maps.Keys(entries)) {
		for _, name := range entries[pass] {
			if pass >= len(c.i.env.Passes) {
				continue
			}
			elements, cost, joins := c.i.costs(name, pass)
			if at, ok := open[name]; ok && joins && all[at].elements+elements <= maxTogether {
				p := &all[at]
				p.passes, p.elements, p.cost = append(p.passes, pass), p.elements+elements, p.cost+cost
				continue
			}
			if all = append(all, prepared{name, []int{pass}, elements, cost}); joins {
				open[name] = len(all) - 1
			}
		}
	}
	together, costs := make([]int, len(all)), make([]int, len(all))
	for n := range all {
		together[n], costs[n] = c.i.atOnce(all[n]), all[n].cost
	}
	results := make([][]result, len(all))
	inTurns(together, costs, c.i.mostLarge(), func(n int) {
		if ctx.Err() == nil {
			results[n] = c.i.results(ctx, all[n].name, all[n].passes, right)
		}
	})
	for n, of := range results {
		for k, r := range of {
			if r.cert != nil || r.err != nil {
				c.ready[capture.Key(all[n].passes[k], all[n].name, 0)] = r
			}
		}
	}
}

// atOnce is how many elements of an entry are certified at one time: see [trial.block].
func (i *Isolator) atOnce(p prepared) int {
	if p.elements <= i.block || len(p.passes) > 1 {
		return p.elements
	}
	t, err := i.unread(order.Node{Entry: i.list.Index(p.name), Pass: p.passes[0]}, i.has)
	if err != nil {
		return p.elements
	}
	if tokens := t.block(); tokens > 0 {
		return p.elements / i.env.Passes[t.node.Pass].Tokens * tokens
	}
	return p.elements
}

// costs are how many elements an entry has in a pass, about what they cost, and whether it may be computed with itself in other passes: a
// product with a weight that all passes read alike.
func (i *Isolator) costs(name string, pass int) (elements, cost int, joins bool) {
	n := order.Node{Entry: i.list.Index(name), Pass: pass}
	if n.Entry < 0 || !i.list.In(n) {
		return 0, 0, false
	}
	e := i.list.At(n)
	elements = size(i.list.Size(n, i.env.Passes))
	o, linear := e.Op.(op.Linear)
	if !linear || len(e.Weights) == 0 || len(e.Weights[0].Shape) == 0 {
		return elements, elements, false
	}
	shape := e.Weights[0].Shape
	// A row of W is decoded whatever the number of tokens, and costs about as much as the products of a few.
	const decoded = 4
	rows := elements / max(shape[0], 1)
	return elements, size(shape) * (rows + decoded) / decoded, !o.Bias && i.o.Single == nil && !i.list.IsRecorded()
}

const (
	// largeElements is how many elements a large entry has. Entries that are not large are certified beside any other.
	largeElements = 1 << 22
	// perElement is how many bytes the certification of an element takes: the element, its value, its bound, the inputs, and garbage of the same size.
	perElement = 80
	// DefaultMemory is what a comparison keeps to, in bytes; see [IsolateOptions].
	DefaultMemory = 1 << 30
)

// mostLarge bounds the elements of large entries that are certified at one time. An entry with more is certified without another large one.
func (i *Isolator) mostLarge() int { return int(cmp.Or(i.o.Room, DefaultMemory) / perElement) }

// inTurns calls do with the numbers of entries on all cores, the most costly entry first. elements says how many elements of each entry are in memory at one
// time; large entries have no more than most together.
func inTurns(elements, costs []int, most int, do func(n int)) {
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

// queue hands out entries in their order, but for large ones that have to wait for others to be done.
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

// results certifies one entry in several passes; see [Chain.Prepare] for right.
func (i *Isolator) results(ctx context.Context, name string, passes []int, right bool) []result {
	all := make([]result, len(passes))
	if len(passes) == 1 {
		all[0] = i.result(ctx, name, passes[0], right)
		return all
	}
	trials := make([]*trial, len(passes))
	var some []*trial
	for k, pass := range passes {
		n, err := i.node(name, pass)
		if err == nil {
			trials[k], err = i.unread(n, i.has)
		}
		if all[k].err = err; err != nil {
			continue
		}
		if c := i.memory.known(trials[k]); c != nil {
			all[k], trials[k] = result{c, trials[k].cut, nil}, nil
			continue
		}
		if all[k].err = trials[k].readAll(); all[k].err != nil {
			continue
		}
		trials[k].right = right
		if all[k].err = trials[k].prepare(ctx); all[k].err == nil && trials[k].product() {
			some = append(some, trials[k])
		}
	}
	if len(some) > 1 {
		together(some)
	}
	for k, t := range trials {
		if t == nil || all[k].err != nil {
			continue
		}
		var err error
		if all[k].cert, all[k].cut, err = t.certified(ctx); err != nil {
			all[k] = result{err: err}
		}
		trials[k] = nil
	}
	return all
}

// product reports whether a trial is one operation on captured tensors as they are, that is evaluated first as itself alone.
func (t *trial) product() bool {
	return t.formula != nil && len(t.cut.Steps) == 1 && !t.last && !t.mixed && len(t.formula.Weights) == 1
}

// together evaluates trials of one entry for the first time, where that can be done with its weight being read once. Where it cannot, each
// is evaluated when it is certified.
func together(some []*trial) {
	var programs []*program.Program
	var calls []program.Call
	for _, t := range some {
		if t.formula.Weights[0].Name != some[0].formula.Weights[0].Name {
			return
		}
		call := t.call
		call.Arith, call.Held, call.Open = t.i.env.Arith, t.held(), true
		programs, calls = append(programs, t.formula.Program), append(calls, call)
	}
	values, ok, err := program.Together(programs, calls)
	if !ok || err != nil { // the error comes again
		return
	}
	for k, t := range some {
		t.value = &values[k]
	}
}

// onAllCores calls do with the numbers below n, several at once.
func onAllCores(n int, do func(int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wait.Go(func() {
			for at := int(next.Add(1)) - 1; at < n; at = int(next.Add(1)) - 1 {
				do(at)
			}
		})
	}
	wait.Wait()
}
