package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// way is how an engine multiplies with the weights that a file has in one format.
type way int

const (
	asModel way = iota // the dequantised weight, rounded to the dtype of the model
	wide               // the dequantised weight in float32
	unknown            // none of these
	rounds             // the dequantised weight in float32, and the other operand as the first of [quant.Operands]; then as the second
)

// ways are those of the products of a trace, by the format of the weight. Passes of one token have their own: engines have a kernel for
// each.
type ways struct {
	of    [2]map[string]way
	lone  []bool // by pass: it has one token
	plain hooks.DType
	port  *port
}

// kind is 1 for a pass of one token, and 0 for any other.
func (w *ways) kind(pass int) int {
	if pass < len(w.lone) && w.lone[pass] {
		return 1
	}
	return 0
}

// mostProbed is how many products of a format and a kind of pass are looked at.
const mostProbed = 8

// waysOf finds by which way the products of a trace were computed: the one that gives every element of most of the products that are looked
// at, each from its own captured input, and of more than half. What holds for most products of a format is the engine's, and what it leaves
// is wrong. Where none does, nothing is known of these products, and nothing is said of them.
func (p *port) waysOf(ctx context.Context, t *capture.Trace, list *order.List, dtype hooks.DType) (*ways, error) {
	w := &ways{of: [2]map[string]way{{}, {}}, plain: dtype, port: p}
	passes, err := t.IDs()
	if err != nil { // what it lacks is said where it is isolated
		return w, nil
	}
	for _, ids := range passes {
		w.lone = append(w.lone, len(ids) == 1)
	}
	for kind, by := range w.products(t, list) {
		for _, format := range slices.Sorted(maps.Keys(by)) {
			if err := w.find(&probe{ctx, t, list, by[format]}, kind, format); err != nil {
				return nil, err
			}
		}
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

// products are the captured products whose inputs were captured, by kind of pass and format.
func (w *ways) products(t *capture.Trace, list *order.List) (all [2]map[string][]order.Node) {
	all = [2]map[string][]order.Node{{}, {}}
	for pass := range w.lone {
		for at := range list.Entries {
			e := &list.Entries[at]
			if _, product := e.Op.(op.Linear); !product || len(e.Weights) == 0 || len(e.Inputs) == 0 {
				continue
			}
			_, captured := t.Lookup(pass, e.Name)
			_, fed := t.Lookup(pass, e.Inputs[0].Name)
			if format := w.port.stored(e.Weights[0]); captured && fed && format != "" {
				by := all[w.kind(pass)]
				by[format] = append(by[format], order.Node{Entry: at, Pass: pass})
			}
		}
	}
	return all
}

// probe is the products of one format in a trace.
type probe struct {
	ctx      context.Context
	trace    *capture.Trace
	list     *order.List
	products []order.Node
}

// spread are some of the products, from all over the model and the run.
func (p *probe) spread() []order.Node {
	n := len(p.products)
	if n <= mostProbed {
		return p.products
	}
	var some []order.Node
	for i := range mostProbed {
		some = append(some, p.products[i*(n-1)/(mostProbed-1)])
	}
	return some
}

// find tries the ways of one format on its products.
func (w *ways) find(p *probe, kind int, format string) error {
	best, most, looked := unknown, 0, 0
	for _, try := range w.tries(format) {
		good, of, err := w.right(p, p.spread(), try)
		if err != nil {
			return err
		}
		if looked = of; good > most {
			best, most = try, good
		}
		if looked == 0 || good == looked {
			break
		}
	}
	if looked == 0 {
		return nil
	}
	w.of[kind][format] = asModel // weights that are no codes are multiplied as without --weights, unless most show another way
	if slices.Contains(w.port.Coded, format) {
		w.of[kind][format] = unknown
	}
	if 2*most > looked {
		w.of[kind][format] = best
	}
	if best < rounds || len(quant.Operands(format)) == 1 {
		return nil
	}
	differ, err := p.differing(quant.Operands(format))
	if err != nil {
		return err
	}
	most = -1
	for i := range quant.Operands(format) { // kernels that differ in few codes, and most often in none
		good, _, err := w.right(p, differ, rounds+way(i))
		if err != nil {
			return err
		}
		if good > most {
			w.of[kind][format], most = rounds+way(i), good
		}
	}
	return nil
}

// right is of how many products a way gives every element, and how many can be looked at.
func (w *ways) right(p *probe, products []order.Node, try way) (good, looked int, err error) {
	i, err := certify.NewIsolator(p.trace, p.list, w.reader(func(string) way { return try }), certify.IsolateOptions{Arithmetic: certify.Strict, DType: w.plain})
	if err != nil { // what the trace lacks is said where it is isolated
		return 0, 0, nil
	}
	for _, n := range products {
		right, err := i.Reproduces(p.ctx, p.list.At(n).Name, n.Pass)
		switch {
		case p.ctx.Err() != nil:
			return 0, 0, p.ctx.Err()
		case err != nil: // it cannot be computed from what was captured
			continue
		}
		if looked++; right {
			good++
		}
	}
	return good, looked, nil
}

// differing are products, some of them, whose inputs two kernels round differently.
func (p *probe) differing(kernels []quant.Operand) (some []order.Node, err error) {
	for _, n := range p.products {
		if len(some) == mostProbed || p.ctx.Err() != nil {
			return some, p.ctx.Err()
		}
		v, err := p.trace.Value(n.Pass, p.list.At(n).Inputs[0].Name)
		if err != nil {
			return nil, err
		}
		other := slices.Clone(v.Data)
		kernels[0].Round(v.Data, nil)
		kernels[1].Round(other, nil)
		if !slices.Equal(v.Data, other) {
			some = append(some, n)
		}
	}
	return some, nil
}

// tries are the ways that differ for a format, in the order in which they are tried.
func (w *ways) tries(format string) []way {
	list := []way{asModel}
	if w.plain != hooks.F32 {
		list = append(list, wide)
	}
	for i := range quant.Operands(format) {
		list = append(list, rounds+way(i))
	}
	return list
}

// reader reads the port's weights by a way for each format.
func (w *ways) reader(of func(format string) way) func(order.Weight) (program.Rows, error) {
	inModel, inFull := reference.Weights(w.port.ck, w.plain), reference.Weights(w.port.ck, hooks.F32)
	return func(weight order.Weight) (program.Rows, error) {
		format := w.port.stored(weight)
		is := of(format)
		if is == asModel || is == unknown {
			return inModel(weight)
		}
		rows, err := inFull(weight)
		if err != nil || is == wide {
			return rows, err
		}
		return rounding{rows, quant.Operands(format)[is-rounds]}, nil
	}
}

// read reads the port's weights, and says of which products nothing is known.
func (w *ways) read(io *certify.IsolateOptions) func(order.Weight) (program.Rows, error) {
	of := func(kind int) func(order.Weight) (program.Rows, error) {
		return w.reader(func(format string) way { return w.of[kind][format] })
	}
	io.Single, io.Own = of(1), true
	io.Opaque = func(weight order.Weight, pass int) string {
		format := w.port.stored(weight)
		if w.of[w.kind(pass)][format] != unknown {
			return ""
		}
		return "the file has as " + format + ": " + noWay(format)
	}
	return of(0)
}

// noWay says of a format what was tried.
func noWay(format string) string {
	if len(quant.Operands(format)) == 0 {
		return "float32 weights do not give most of such products, and how engines round their inputs is not known"
	}
	return "neither float32 weights nor the blocks of ggml's own kernels give most of such products"
}

// flaws say which products nothing verifies: a comparison that rests on their limits alone shows too little.
func (w *ways) flaws() []string {
	var all []string
	for kind, passes := range []string{"passes of several tokens", "passes of one token"} {
		for _, format := range slices.Sorted(maps.Keys(w.of[kind])) {
			if w.of[kind][format] == unknown && slices.Contains(w.lone, kind == 1) {
				all = append(all, fmt.Sprintf("products with %s weights in %s are not verified: %s", format, passes, noWay(format)))
			}
		}
	}
	return all
}

// remarks say what an engine does with the other operand.
func (w *ways) remarks() []string {
	var said []string
	for _, format := range slices.Sorted(maps.Keys(w.of[0])) {
		var where []string
		for kind, name := range []string{"passes of several tokens", "passes of one token"} {
			if w.of[kind][format] >= rounds {
				where = append(where, name)
			}
		}
		if len(where) > 0 {
			said = append(said, fmt.Sprintf("arithmetic: the port rounds the inputs of products with %s weights to %s, in %s; transformers does not",
				format, quant.Operands(format)[0].Name, strings.Join(where, " and ")))
		}
	}
	return said
}

// stored is the format that the port's file has a weight in; empty where that is not known.
func (p *port) stored(w order.Weight) string {
	for _, name := range []string{w.Name, w.Fallback} {
		for _, full := range []string{p.ck.Prefix() + name, name, "language_model." + name} {
			if format := p.Stored[full]; name != "" && format != "" {
				return format
			}
		}
	}
	return ""
}

// rounding is a weight whose engine rounds the other operand.
type rounding struct {
	program.Rows
	o quant.Operand
}

// RoundOperand rounds whole rows of it.
func (r rounding) RoundOperand(x, bound []float64) { r.o.Round(x, bound) }
