package portweights

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// mostProbed is how many entries are looked at for a set of formats. Where a way gives half of them, it has to give leastProbed.
const mostProbed, leastProbed = 8, 2

// use identifies the products with weights of one format in passes of one kind.
type use struct {
	kind   int
	format string
}

// probed is a captured entry and the uses of weights between the entry and its captured inputs: the entry's own
// product, and uncaptured products on the way.
type probed struct {
	node order.Node
	uses []use
}

// Ways finds how the engine multiplied in a trace. It tries each way on a sample of entries, computed from their
// own captured inputs. A way must reproduce every element of an entry, and more than half of the entries. A way
// valid for most products of a format belongs to the engine, and the other products of the format are wrong. If no
// way is valid for most, the products count as unverified.
//
// An entry with products of one format decides for the format. The entries with one undecided format come next. In
// an entry with several undecided formats, one way is chosen for all of them.
func (p *Port) Ways(ctx context.Context, t *capture.Trace, list *order.List, dtype hooks.DType) (*Ways, error) {
	w := &Ways{of: [2]map[string]way{{}, {}}, plain: dtype, port: p}
	passes, err := t.IDs()
	if err != nil { // what it lacks is said where it is isolated
		return w, nil
	}
	for _, ids := range passes {
		w.lone = append(w.lone, len(ids) == 1)
	}
	f := &finder{Ways: w, trace: t, list: list}
	rest := f.entries()
	for len(rest) > 0 {
		rest, err = f.next(ctx, rest)
		if err != nil {
			return nil, err
		}
	}
	for _, h := range f.halves {
		settled, wrong := f.settle(ctx, h)
		if err = errors.Join(err, wrong); settled {
			err = errors.Join(err, f.alike(ctx, h.nodes, h.uses))
		}
	}
	if err != nil {
		return nil, err
	}
	for kind := range w.of { // of what was not captured, the other kind of pass decides
		for format, is := range w.of[1-kind] {
			if _, ok := w.of[kind][format]; !ok {
				w.of[kind][format] = is
			}
		}
	}
	return w, nil
}

// finder looks for the ways of a trace.
type finder struct {
	*Ways
	trace *capture.Trace
	list  *order.List

	halves []half
}

// half records uses with a way for exactly half of the entries, and no way for the rest: too few entries for a
// majority, such as one of two.
type half struct {
	nodes []order.Node
	uses  []use
	best  way
	left  []order.Node // that the way does not give
}

// settle accepts the way of h if two conditions hold: other products of the trace confirm the way, and the
// remaining entries cannot come from a different kernel, as engines use for the head or for a second device. The
// remaining entries are then wrong. settle reports whether it accepted the way.
func (f *finder) settle(ctx context.Context, h half) (bool, error) {
	for _, u := range h.uses {
		if !slices.Contains(f.port.Coded, u.format) || !f.shown(f.by(h.best, u.format), u.format) {
			return false, nil
		}
	}
	for _, n := range h.left {
		if may, err := f.byAnother(ctx, n, h.uses); may || err != nil {
			return false, err
		}
	}
	for _, u := range h.uses {
		f.of[u.kind][u.format] = f.by(h.best, u.format)
	}
	return true, nil
}

const (
	// mostCoarser bounds an unknown kernel: its codes of the inputs are at most this many times coarser than the
	// coarsest known kernel's.
	mostCoarser = 4
	// aboutCodes is what codes of 8 bits are off by, of a product, where no kernel is known.
	aboutCodes = 0.01
)

// byAnother reports whether no element of an entry is farther from the product with float32 weights than codes of the inputs take it: then
// a kernel that is not known may have made it.
func (f *finder) byAnother(ctx context.Context, n order.Node, uses []use) (bool, error) {
	name := f.list.At(n).Name
	exact := f.isolator(uses, wide)
	if exact == nil {
		return true, nil
	}
	off, want, err := exact.Differences(ctx, name, n.Pass)
	if err != nil { // it cannot be computed
		return true, ctx.Err()
	}
	squares := 0.0
	for _, x := range want {
		squares += float64(x * x)
	}
	codes, known := 0.0, false
	for _, try := range f.tries(uses) {
		i := f.isolator(uses, try)
		if try < kernel || i == nil {
			continue
		}
		with, _, err := i.Differences(ctx, name, n.Pass)
		if err != nil {
			return true, ctx.Err()
		}
		known = true
		for k, x := range off {
			codes = max(codes, math.Abs(x-with[k]))
		}
	}
	if !known {
		codes = aboutCodes * math.Sqrt(squares/float64(max(len(want), 1)))
	}
	return !slices.ContainsFunc(off, func(x float64) bool { return !(math.Abs(x) <= mostCoarser*codes) }), nil
}

// shown reports whether products of the trace are known to be computed by a way: those with codes of any format, in either kind of pass.
func (w *Ways) shown(is way, format string) bool {
	for kind := range w.of {
		for other, by := range w.of[kind] {
			if !slices.Contains(w.port.Coded, other) || by == unknown || (by < kernel) != (is < kernel) {
				continue
			}
			if by < kernel && by == is || by >= kernel && w.kernels(other)[by-kernel].Name == w.kernels(format)[is-kernel].Name {
				return true
			}
		}
	}
	return false
}

// entries are the captured entries that are made with products, and with which.
func (f *finder) entries() []probed {
	have := func(n order.Node) bool { _, ok := f.trace.Lookup(n.Pass, f.list.At(n).Name); return ok }
	var all []probed
	for pass := range f.lone {
		for at := range f.list.Entries {
			n := order.Node{Entry: at, Pass: pass}
			if !have(n) {
				continue
			}
			cut, err := f.list.Cut(have, n)
			if err != nil {
				continue
			}
			p := probed{node: n}
			for _, step := range cut.Steps {
				e := f.list.At(step)
				if _, product := e.Op.(op.Linear); !product || len(e.Weights) == 0 {
					continue
				}
				u := use{f.kind(step.Pass), f.port.stored(e.Weights[0])}
				if u.format != "" && !slices.Contains(p.uses, u) {
					p.uses = append(p.uses, u)
				}
			}
			if len(p.uses) > 0 {
				all = append(all, p)
			}
		}
	}
	return all
}

// next decides for the entries with the fewest undecided uses, and returns the entries with undecided uses left.
func (f *finder) next(ctx context.Context, entries []probed) (rest []probed, err error) {
	for _, p := range entries {
		p.uses = slices.DeleteFunc(slices.Clone(p.uses), func(u use) bool { _, known := f.of[u.kind][u.format]; return known })
		if len(p.uses) > 0 {
			slices.SortFunc(p.uses, func(a, b use) int { return cmp.Or(a.kind-b.kind, cmp.Compare(a.format, b.format)) })
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	fewest := slices.MinFunc(rest, func(a, b probed) int { return len(a.uses) - len(b.uses) }).uses
	var nodes []order.Node
	var others []probed
	for _, p := range rest {
		if slices.Equal(p.uses, fewest) {
			nodes = append(nodes, p.node)
		} else {
			others = append(others, p)
		}
	}
	return others, f.find(ctx, nodes, fewest)
}

// find tries the ways of some uses on entries with these products, and records the result. It records nothing if no
// entry can be computed. A way for only half of the entries is accepted if no other way reproduces any of the rest.
// Among equally good ways, the way with more reproduced lookups wins.
func (f *finder) find(ctx context.Context, nodes []order.Node, uses []use) error {
	best, most, read := unknown, 0, 0
	rows := f.lookups(uses)
	var given []order.Node // by the best
	others := map[order.Node]bool{}
	some := arithmetic.Spread(nodes, mostProbed)
	looked := len(some)
	for _, try := range f.tries(uses) {
		good, of, err := f.right(ctx, some, uses, try)
		if err != nil {
			return err
		}
		same, _, err := f.right(ctx, rows, uses, try)
		if err != nil {
			return err
		}
		for _, n := range good {
			others[n] = true
		}
		if looked = of; len(good) > most || len(good) == most && most > 0 && len(same) > read {
			best, most, given, read = try, len(good), good, len(same)
		}
		if looked == 0 || most == looked && read == len(rows) {
			break
		}
	}
	if looked == 0 {
		return nil
	}
	alone := 2*most == looked && len(others) == len(given) // the only way that gives any
	found := 2*most > looked || most >= leastProbed && alone
	for _, u := range uses {
		f.of[u.kind][u.format] = asModel // an unquantised weight multiplies as without --weights, unless most entries show another way
		if slices.Contains(f.port.Coded, u.format) {
			f.of[u.kind][u.format] = unknown
		}
		if found {
			f.of[u.kind][u.format] = f.by(best, u.format)
		}
	}
	if !found && alone {
		left := slices.DeleteFunc(slices.Clone(some), func(n order.Node) bool { return slices.Contains(given, n) })
		f.halves = append(f.halves, half{nodes, uses, best, left})
	}
	if best < kernel || !found {
		return nil
	}
	return f.alike(ctx, nodes, uses)
}

// lookups returns a sample of captured rows of weights, for formats with a kernel dequantising in its own way.
func (f *finder) lookups(uses []use) (some []order.Node) {
	var formats []string
	for _, u := range uses {
		if slices.ContainsFunc(f.kernels(u.format), quant.Kernel.Dequantises) {
			formats = append(formats, u.format)
		}
	}
	for pass := range f.lone {
		for at := range f.list.Entries {
			e := &f.list.Entries[at]
			if _, lookup := e.Op.(op.Lookup); !lookup || len(e.Weights) == 0 || !slices.Contains(formats, f.port.stored(e.Weights[0])) {
				continue
			}
			if _, ok := f.trace.Lookup(pass, e.Name); ok && len(some) < mostProbed {
				some = append(some, order.Node{Entry: at, Pass: pass})
			}
		}
	}
	return some
}

// alike chooses between the kernels of one name. Their codes rarely differ, so only products with differently
// rounded inputs are compared, and a kernel with more reproduced products replaces the current kernel.
func (f *finder) alike(ctx context.Context, nodes []order.Node, uses []use) error {
	for _, u := range uses {
		is := f.of[u.kind][u.format]
		if is < kernel {
			continue
		}
		all := f.kernels(u.format)
		good := func(nodes []order.Node, w way) (int, error) {
			given, _, err := f.right(ctx, nodes, []use{u}, w)
			return len(given), err
		}
		for i := range all {
			other := kernel + way(i)
			if other == is || all[i].Name != all[is-kernel].Name {
				continue
			}
			differ, err := f.differing(ctx, nodes, all[is-kernel], all[i])
			if err != nil {
				return err
			}
			mine, err := good(differ, is)
			if err != nil {
				return err
			}
			theirs, err := good(differ, other)
			if err != nil {
				return err
			}
			if theirs > mine {
				is = other
			}
		}
		f.of[u.kind][u.format] = is
	}
	return nil
}
