package portweights

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// right returns the entries with every element reproduced by a way of some uses, and the number of computable
// entries.
func (f *finder) right(ctx context.Context, nodes []order.Node, uses []use, try way) (good []order.Node, looked int, err error) {
	i := f.isolator(uses, try)
	if i == nil {
		return nil, 0, nil
	}
	for _, n := range nodes {
		right, err := i.Reproduces(ctx, f.list.At(n).Name, n.Pass)
		switch {
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case err != nil: // it cannot be computed from what was captured
			continue
		}
		if looked++; right {
			good = append(good, n)
		}
	}
	return good, looked, nil
}

// isolator returns an isolator with a way for some uses. It returns nil if the trace cannot be isolated; the
// isolation of the comparison reports the reason.
func (f *finder) isolator(uses []use, try way) *compare.Isolator {
	of := func(kind int) func(string) way {
		return func(format string) way {
			if slices.Contains(uses, use{kind, format}) {
				return f.by(try, format)
			}
			return f.of[kind][format]
		}
	}
	i, err := compare.NewIsolator(f.trace, f.list, f.reader(of(0)), isolate.Options{Arithmetic: isolate.Strict, DType: f.plain, PortWeights: isolate.PortWeights{Single: f.reader(of(1))}})
	if err != nil {
		return nil
	}
	return i
}

// differing returns a sample of entries whose captured inputs are rounded differently by two kernels.
func (f *finder) differing(ctx context.Context, nodes []order.Node, one, other quant.Kernel) (some []order.Node, err error) {
	for _, n := range nodes {
		if len(some) == mostProbed || ctx.Err() != nil {
			return some, ctx.Err()
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

// tries returns the distinct ways for some uses, in the order of the search.
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

// by translates a way of several formats to one format. A format with fewer kernels uses its last kernel.
func (w *Ways) by(try way, format string) way {
	n := len(w.kernels(format))
	switch {
	case try < kernel:
		return try
	case n == 0:
		return wide
	}
	return min(try, kernel+way(n-1))
}
