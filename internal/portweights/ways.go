package portweights

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/isolate"
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
	kernel             // as the first of [quant.Kernels] has it; then as the second
)

// Ways are those of the products of a trace, by the format of the weight. Passes of one token have their own: engines have a kernel for
// each.
type Ways struct {
	of    [2]map[string]way
	lone  []bool // by pass: it has one token
	plain hooks.DType
	port  *Port
	held  sync.Pool // memory for rows of steps and offsets
}

// kind is 1 for a pass of one token, and 0 for any other.
func (w *Ways) kind(pass int) int {
	if pass < len(w.lone) && w.lone[pass] {
		return 1
	}
	return 0
}

// kernels are those that are known of a format.
func (w *Ways) kernels(format string) []quant.Kernel { return quant.Kernels(format, w.plain) }

// reader reads the port's weights by a way for each format.
func (w *Ways) reader(of func(format string) way) func(order.Weight) (program.Rows, error) {
	inModel, inFull := reference.Weights(w.port.Checkpoint, w.plain), reference.Weights(w.port.Checkpoint, hooks.F32)
	return func(weight order.Weight) (program.Rows, error) {
		format := w.port.stored(weight)
		is := of(format)
		if is == asModel && w.plain == hooks.F32 {
			is = wide
		}
		if is == asModel || is == unknown {
			return inModel(weight)
		}
		rows, err := inFull(weight)
		if err != nil {
			return nil, err
		}
		steps, err := w.port.steps(weight)
		if is == wide {
			return w.inFloat32(rows, steps, format), err
		}
		k := w.kernels(format)[is-kernel]
		switch {
		case !k.OfCodes():
			return multiplied{Rows: rows, Kernel: k}, nil
		case steps == nil:
			return rows, err
		}
		return multiplied{rows, k, steps, &w.held}, err
	}
}

// Read returns a reader of the port's weights, and sets the hooks of io to report products of unknown arithmetic.
func (w *Ways) Read(io *isolate.Options) func(order.Weight) (program.Rows, error) {
	of := func(kind int) func(order.Weight) (program.Rows, error) {
		return w.reader(func(format string) way { return w.of[kind][format] })
	}
	io.Single, io.Own = of(1), true
	io.Opaque = func(weight order.Weight, pass int) string {
		format := w.port.stored(weight)
		switch is := w.of[w.kind(pass)][format]; {
		case is >= kernel && w.kernels(format)[is-kernel].OfCodes():
			if steps, err := w.port.steps(weight); steps == nil && err == nil {
				return "the file has as " + format + ", in groups that do not lie in its rows"
			}
			return ""
		case is != unknown:
			return ""
		}
		return "the file has as " + format + ": " + w.noWay(format)
	}
	return of(0)
}

// noWay lists the arithmetics tried for a format, for the reason of an unverified product.
func (w *Ways) noWay(format string) string {
	if len(w.kernels(format)) == 0 {
		return "float32 weights do not give most of these products, and how engines round the inputs is not known"
	}
	return "neither float32 weights nor the known kernels of the format give most of these products"
}

// Flaws returns a sentence for each kind of unverified product: for these products a comparison has only the
// limits, and limits show too little.
func (w *Ways) Flaws() []string {
	var all []string
	for kind, passes := range []string{"passes of several tokens", "passes of one token"} {
		for _, format := range slices.Sorted(maps.Keys(w.of[kind])) {
			if w.of[kind][format] == unknown && slices.Contains(w.lone, kind == 1) {
				all = append(all, fmt.Sprintf("products with %s weights in %s are not verified: %s", format, passes, w.noWay(format)))
			}
		}
	}
	return all
}

// Remarks say by which kernels an engine multiplies.
func (w *Ways) Remarks() []string {
	var said []string
	for _, format := range slices.Sorted(maps.Keys(w.of[0])) {
		where := map[string][]string{} // by what it does
		for kind, name := range []string{"passes of several tokens", "passes of one token"} {
			if is := w.of[kind][format]; is >= kernel {
				does := w.kernels(format)[is-kernel].Does(format)
				where[does] = append(where[does], name)
			}
		}
		for _, does := range slices.Sorted(maps.Keys(where)) {
			said = append(said, fmt.Sprintf("arithmetic: the port %s, in %s; transformers does not", does, strings.Join(where[does], " and ")))
		}
	}
	return said
}

// stored is the format that the port's file has a weight in; empty where that is not known.
func (p *Port) stored(w order.Weight) string {
	for _, full := range p.names(w) {
		if format := p.Stored[full]; format != "" {
			return format
		}
	}
	return ""
}
