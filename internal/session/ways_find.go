package session

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// mostProbed is how many entries are looked at for a set of formats. Where a way gives half of them, it has to give leastProbed.
const mostProbed, leastProbed = 8, 2

// use is the products with weights of one format in passes of one kind.
type use struct {
	kind   int
	format string
}

// probed is a captured entry, and of which products nothing else that was captured lies between: its own, and those on the way to it.
type probed struct {
	node order.Node
	uses []use
}

// waysOf finds by which way the products of a trace were computed: the one that gives every element of most of the entries that are looked
// at, each from what was captured before it, and of more than half. What holds for most products of a format is the engine's, and what it
// leaves is wrong. Where none does, nothing is known of these products, and nothing is said of them.
//
// An entry with products of one format decides for that; then those follow in which one is left, and of entries with products of several that
// are left, one way for all of these.
func (p *port) waysOf(ctx context.Context, t *capture.Trace, list *order.List, dtype hooks.DType) (*ways, error) {
	w := &ways{of: [2]map[string]way{{}, {}}, plain: dtype, port: p}
	passes, err := t.IDs()
	if err != nil { // what it lacks is said where it is isolated
		return w, nil
	}
	for _, ids := range passes {
		w.lone = append(w.lone, len(ids) == 1)
	}
	f := &finder{ways: w, ctx: ctx, trace: t, list: list}
	rest := f.entries()
	for len(rest) > 0 {
		rest, err = f.next(rest)
		if err != nil {
			return nil, err
		}
	}
	for _, h := range f.halves {
		settled, wrong := f.settle(h)
		if err = errors.Join(err, wrong); settled {
			err = errors.Join(err, f.alike(h.nodes, h.uses))
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
	*ways
	ctx   context.Context
	trace *capture.Trace
	list  *order.List

	halves []half
}

// half are uses of which a way gives half of the entries, and no other way any of the rest: too few of themselves, such as one of two.
type half struct {
	nodes []order.Node
	uses  []use
	best  way
	left  []order.Node // that the way does not give
}

// settle takes the way where it is that of other products of the trace, and what it leaves of these few is no product by another kernel, as an
// engine may have for its head or for what another device computes: that is then wrong. It reports whether it did.
func (f *finder) settle(h half) (bool, error) {
	for _, u := range h.uses {
		if !slices.Contains(f.port.Coded, u.format) || !f.shown(f.by(h.best, u.format), u.format) {
			return false, nil
		}
	}
	for _, n := range h.left {
		if may, err := f.byAnother(n, h.uses); may || err != nil {
			return false, err
		}
	}
	for _, u := range h.uses {
		f.of[u.kind][u.format] = f.by(h.best, u.format)
	}
	return true, nil
}

const (
	// mostCoarser is how many times as coarse as the coarsest kernel that is known of a format another one's codes of its inputs may be.
	mostCoarser = 4
	// aboutCodes is what codes of 8 bits are off by, of a product, where no kernel is known.
	aboutCodes = 0.01
)

// byAnother reports whether no element of an entry is farther from the product with float32 weights than codes of the inputs take it: then
// a kernel that is not known may have made it.
func (f *finder) byAnother(n order.Node, uses []use) (bool, error) {
	name := f.list.At(n).Name
	exact := f.isolator(uses, wide)
	if exact == nil {
		return true, nil
	}
	off, want, err := exact.Differences(f.ctx, name, n.Pass)
	if err != nil { // it cannot be computed
		return true, f.ctx.Err()
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
		with, _, err := i.Differences(f.ctx, name, n.Pass)
		if err != nil {
			return true, f.ctx.Err()
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
func (w *ways) shown(is way, format string) bool {
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

// next decides for the uses of the entries with the fewest of which nothing is known yet, and returns the entries with others.
func (f *finder) next(entries []probed) (rest []probed, err error) {
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
	return others, f.find(nodes, fewest)
}

// find tries the ways of some uses on entries that are made with them, and notes what it found. Nothing is noted where no entry can be
// computed. A way that gives half of the entries is the engine's, too, where no other gives any of the rest. Of ways that give as many, it
// is the one that gives more of the lookups.
func (f *finder) find(nodes []order.Node, uses []use) error {
	best, most, read := unknown, 0, 0
	rows := f.lookups(uses)
	var given []order.Node // by the best
	others := map[order.Node]bool{}
	some := arithmetic.Spread(nodes, mostProbed)
	looked := len(some)
	for _, try := range f.tries(uses) {
		good, of, err := f.right(some, uses, try)
		if err != nil {
			return err
		}
		same, _, err := f.right(rows, uses, try)
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
		f.of[u.kind][u.format] = asModel // weights that are no codes are multiplied as without --weights, unless most show another way
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
	return f.alike(nodes, uses)
}

// lookups are the captured rows of weights, some of them, that a kernel dequantises as no other way does.
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

// alike chooses between the kernels of one name, which differ in few codes, and most often in none: another one is taken where it gives
// more of the products whose inputs they round differently.
func (f *finder) alike(nodes []order.Node, uses []use) error {
	for _, u := range uses {
		is := f.of[u.kind][u.format]
		if is < kernel {
			continue
		}
		all := f.kernels(u.format)
		good := func(nodes []order.Node, w way) (int, error) {
			given, _, err := f.right(nodes, []use{u}, w)
			return len(given), err
		}
		for i := range all {
			other := kernel + way(i)
			if other == is || all[i].Name != all[is-kernel].Name {
				continue
			}
			differ, err := f.differing(nodes, all[is-kernel], all[i])
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

// right are the entries of which a way of some uses gives every element, and how many can be looked at.
func (f *finder) right(nodes []order.Node, uses []use, try way) (good []order.Node, looked int, err error) {
	i := f.isolator(uses, try)
	if i == nil {
		return nil, 0, nil
	}
	for _, n := range nodes {
		right, err := i.Reproduces(f.ctx, f.list.At(n).Name, n.Pass)
		switch {
		case f.ctx.Err() != nil:
			return nil, 0, f.ctx.Err()
		case err != nil: // it cannot be computed from what was captured
			continue
		}
		if looked++; right {
			good = append(good, n)
		}
	}
	return good, looked, nil
}

// isolator computes with a way of some uses; nil where it cannot: what the trace lacks is said where it is isolated.
func (f *finder) isolator(uses []use, try way) *compare.Isolator {
	of := func(kind int) func(string) way {
		return func(format string) way {
			if slices.Contains(uses, use{kind, format}) {
				return f.by(try, format)
			}
			return f.of[kind][format]
		}
	}
	i, err := compare.NewIsolator(f.trace, f.list, f.reader(of(0)), isolate.Options{Arithmetic: isolate.Strict, DType: f.plain, Single: f.reader(of(1))})
	if err != nil {
		return nil
	}
	return i
}

// differing are entries, some of them, that are a product whose captured inputs two kernels round differently.
func (f *finder) differing(nodes []order.Node, one, other quant.Kernel) (some []order.Node, err error) {
	for _, n := range nodes {
		if len(some) == mostProbed || f.ctx.Err() != nil {
			return some, f.ctx.Err()
		}
		e := f.list.At(n)
		if _, product := e.Op.(op.Linear); !product {
			continue
		}
		if _, fed := f.trace.Lookup(n.Pass, e.Inputs[0].Name); !fed {
			continue
		}
		v, err := f.trace.Value(n.Pass, e.Inputs[0].Name)
		if err != nil {
			return nil, err
		}
		row := v.Shape[len(v.Shape)-1]
		codes := slices.Clone(v.Data)
		one.Round(row, v.Data, nil)
		other.Round(row, codes, nil)
		if !slices.Equal(v.Data, codes) {
			some = append(some, n)
		}
	}
	return some, nil
}

// tries are the ways that differ for some uses, in the order in which they are tried.
func (f *finder) tries(uses []use) []way {
	list := []way{asModel}
	if f.plain != hooks.F32 {
		list = append(list, wide)
	}
	most := 0
	for _, u := range uses {
		most = max(most, len(f.kernels(u.format)))
	}
	for i := range most {
		list = append(list, kernel+way(i))
	}
	return list
}

// by is a way of several formats for one of them, which may have fewer kernels.
func (w *ways) by(try way, format string) way {
	n := len(w.kernels(format))
	switch {
	case try < kernel:
		return try
	case n == 0:
		return wide
	}
	return min(try, kernel+way(n-1))
}
