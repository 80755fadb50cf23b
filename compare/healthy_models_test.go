package compare_test

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// errWhole is returned for a weight of whole numbers, which is no draw.
var errWhole = errors.New("a weight of whole numbers is not drawn")

// drawnRows is a weight of random numbers, the same for each name.
type drawnRows struct {
	rows, cols int
	x          []float64
}

func (r *drawnRows) Size() (rows, cols int) { return r.rows, r.cols }

func (r *drawnRows) Row(dst []float64, i int) error {
	copy(dst[:r.cols], r.x[i*r.cols:][:r.cols])
	return nil
}

// drawnWeights are drawn by their names: matrices about a mean of 0, vectors about one of 1.
func drawnWeights(w order.Weight) (program.Rows, error) {
	n, ok := hooks.Elements(w.Shape)
	if d, err := hooks.ParseDType(w.DType); err == nil && !d.Float() || !ok || n == 0 {
		return nil, errWhole
	}
	r := &drawnRows{rows: 1, cols: n, x: make([]float64, n)}
	if last := len(w.Shape) - 1; last > 0 {
		r.rows, r.cols = n/w.Shape[last], w.Shape[last]
	}
	name := fnv.New64()
	name.Write([]byte(w.Name))
	rng := rand.New(rand.NewPCG(name.Sum64(), 1))
	for i := range r.x {
		if r.x[i] = rng.NormFloat64() / math.Sqrt(float64(r.cols)); r.rows == 1 {
			r.x[i] = 1 + r.x[i]
		}
		r.x[i] = floats.Round(hooks.BF16, r.x[i])
	}
	return r, nil
}

// healthyRun is a run in float32 of [drawnWeights], computed step by step: of a model's first passes, as far as its operations
// have a formula.
func healthyRun(ctx context.Context, m *mappingtest.Model, r *rand.Rand, passes int) (run []capture.Source, err error) {
	var geometry []order.Pass
	for _, p := range m.Passes[:min(passes, len(m.Passes))] {
		geometry = append(geometry, order.Pass{Past: p.Past, Tokens: p.Tokens})
	}
	values := map[order.Node]program.Value{}
	env := order.Env{
		Arith: program.Arith{DType: hooks.F32, Emulated: true}, Passes: geometry, Weights: drawnWeights,
		Read: func(n order.Node) (program.Value, error) { return values[n], nil },
	}
	has := func(n order.Node) bool { _, ok := values[n]; return ok }
	named := m.List.Named()
	for pass, p := range geometry {
		for at := range m.List.Entries {
			n := order.Node{Entry: at, Pass: pass}
			e := m.List.At(n)
			if e == nil {
				continue
			}
			if _, given := e.Op.(op.Given); given {
				values[n] = drawnArgument(r, e, p, m.List.Config.VocabSize)
			} else if v, ok := computedEntry(ctx, m.List, n, has, env); ok {
				env.Round(v, e.DTypeOf(hooks.F32))
				values[n] = v
			}
			if v, ok := values[n]; ok && named.Index(e.Name) >= 0 {
				run = append(run, dumpedSource(e, pass, v))
			}
		}
	}
	return run, ctx.Err()
}

// computedEntry computes an entry, if the entry and its inputs have formulas.
func computedEntry(ctx context.Context, list *order.List, n order.Node, has func(order.Node) bool, env order.Env) (program.Value, bool) {
	cut, err := list.Cut(has, n)
	if err != nil || len(cut.Steps) > 1 {
		return program.Value{}, false
	}
	v, err := cut.Value(ctx, env)
	return v, err == nil
}

// drawnArgument has drawn token ids, or positions.
func drawnArgument(r *rand.Rand, e *order.Entry, p order.Pass, vocabulary int) program.Value {
	v := program.Value{Shape: e.Size(p, 0)}
	n, _ := hooks.Elements(v.Shape)
	for i := range n {
		x := p.Past + i
		if e.Name == order.InputIDs {
			x = r.IntN(max(vocabulary, 2))
		}
		v.Data = append(v.Data, float64(x))
	}
	return v
}

// dumpedSource is a value as a dump has it.
func dumpedSource(e *order.Entry, pass int, v program.Value) capture.Source {
	s := capture.Source{Key: capture.Key(pass, e.Name, 0), Name: e.Name, Pass: pass, DType: hooks.F32, Shape: v.Shape}
	if d := e.DTypeOf(hooks.F32); !d.Float() {
		s.DType = hooks.I64
	}
	s.Data = bytes.NewReader(floats.Append(nil, s.DType, v.Data...))
	return s
}
