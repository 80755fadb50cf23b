package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/order"
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
		where := map[string][]string{} // by what it is rounded to
		for kind, name := range []string{"passes of several tokens", "passes of one token"} {
			if is := w.of[kind][format]; is >= rounds {
				to := quant.Operands(format)[is-rounds].Name
				where[to] = append(where[to], name)
			}
		}
		for _, to := range slices.Sorted(maps.Keys(where)) {
			said = append(said, fmt.Sprintf("arithmetic: the port rounds the inputs of products with %s weights to %s, in %s; transformers does not",
				format, to, strings.Join(where[to], " and ")))
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
func (r rounding) RoundOperand(x, bound []float64) {
	_, columns := r.Size()
	r.o.Round(columns, x, bound)
}
