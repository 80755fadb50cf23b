package arithmetic_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// matrix is a weight, row by row.
type matrix [][]float64

func (m matrix) Size() (rows, cols int)         { return len(m), len(m[0]) }
func (m matrix) Row(dst []float64, i int) error { copy(dst, m[i]); return nil }

// size draws the size of a mistake, as far as errors of codes go.
func size(rng *rand.Rand) float64 { return 3e-3 * math.Pow(0.35/3e-3, rng.Float64()) }

// timesColumns is a matrix with each column times a factor.
func timesColumns(w matrix, factor func() float64) matrix {
	factors := make([]float64, len(w[0]))
	for k := range factors {
		factors[k] = factor()
	}
	for _, row := range w {
		for k := range row {
			row[k] *= factors[k]
		}
	}
	return w
}

// inBlocks is a matrix in codes, each block of 32 numbers with a scale: most is the largest code.
func inBlocks(most float64) func(*rand.Rand, float64, matrix) matrix {
	return func(_ *rand.Rand, _ float64, w matrix) matrix {
		for _, row := range w {
			for block := range slices.Chunk(row, 32) {
				scale := 0.0
				for _, x := range block {
					scale = max(scale, math.Abs(x)/most)
				}
				for k, x := range block {
					if scale > 0 {
						block[k] = scale * math.Round(x/scale)
					}
				}
			}
		}
		return w
	}
}

// everywhere are mistakes in every product of a port: what each does to a weight, or to a result. A mistake is as large in all products.
var everywhere = []struct {
	name   string
	dtype  string // "" for both
	weight func(rng *rand.Rand, size float64, w matrix) matrix
	result func(rng *rand.Rand, size float64, y []float64, channels int)
}{
	{name: "a factor", weight: func(_ *rand.Rand, size float64, w matrix) matrix {
		return timesColumns(w, func() float64 { return 1 + size })
	}},
	{name: "a factor in an eighth of the channels", weight: func(rng *rand.Rand, size float64, w matrix) matrix {
		from := rng.IntN(8) * len(w) / 8
		timesColumns(w[from:from+max(1, len(w)/8)], func() float64 { return 1 + 3*size })
		return w
	}},
	{name: "channels of halves interleaved", weight: func(_ *rand.Rand, _ float64, w matrix) matrix {
		var out matrix
		for k := range w {
			out = append(out, w[k/2+k%2*(len(w)/2)])
		}
		return out
	}},
	{name: "two channels in 16 exchanged", weight: func(_ *rand.Rand, _ float64, w matrix) matrix {
		for k := 0; k+1 < len(w); k += 16 {
			w[k], w[k+1] = w[k+1], w[k]
		}
		return w
	}},
	{name: "channels moved by one", weight: func(_ *rand.Rand, _ float64, w matrix) matrix { return append(w[1:], w[0]) }},
	{name: "inputs moved by one", weight: func(_ *rand.Rand, _ float64, w matrix) matrix {
		for k, row := range w {
			w[k] = append(slices.Clone(row[1:]), row[0])
		}
		return w
	}},
	{name: "the last input left out", weight: func(_ *rand.Rand, _ float64, w matrix) matrix {
		for _, row := range w {
			row[len(row)-1] = 0
		}
		return w
	}},
	{name: "weights rounded to bfloat16", dtype: "float32", weight: func(rng *rand.Rand, _ float64, w matrix) matrix {
		for _, row := range w { // the port has the weights, and these are numbers that round to them
			for k, x := range row {
				_, exponent := math.Frexp(x)
				row[k] = x + (rng.Float64()-0.5)*math.Ldexp(1, exponent-8)
			}
		}
		return w
	}},
	{name: "inputs times their own factors", weight: func(rng *rand.Rand, size float64, w matrix) matrix {
		return timesColumns(w, func() float64 { return 1 + size*rng.NormFloat64() })
	}},
	{name: "an adapter of rank 1", weight: func(rng *rand.Rand, size float64, w matrix) matrix {
		squares := 0.0
		for _, row := range w {
			for _, x := range row {
				squares += x * x
			}
		}
		by := size * math.Sqrt(squares/float64(len(w)*len(w[0])))
		in := make([]float64, len(w[0]))
		for k := range in {
			in[k] = by * rng.NormFloat64()
		}
		for _, row := range w {
			out := rng.NormFloat64()
			for k := range row {
				row[k] += out * in[k]
			}
		}
		return w
	}},
	{name: "a bias added", result: func(rng *rand.Rand, size float64, y []float64, channels int) {
		squares := 0.0
		for _, v := range y {
			squares += v * v
		}
		bias := make([]float64, channels)
		for k := range bias {
			bias[k] = size * math.Sqrt(squares/float64(len(y))) * rng.NormFloat64()
		}
		for k := range y {
			y[k] += bias[k%channels]
		}
	}},
	{name: "the first token in place of the last", result: func(_ *rand.Rand, _ float64, y []float64, channels int) {
		copy(y[len(y)-channels:], y[:channels])
	}},
	{name: "tokens moved by one", result: func(_ *rand.Rand, _ float64, y []float64, channels int) {
		copy(y, append(slices.Clone(y[channels:]), y[:channels]...))
	}},
	{name: "clipped results", result: func(_ *rand.Rand, size float64, y []float64, _ int) {
		most := 0.0
		for _, v := range y {
			most = max(most, math.Abs(v))
		}
		for k, v := range y {
			y[k] = max(-most*(1-size), min(most*(1-size), v))
		}
	}},
	{name: "a soft cap", result: func(_ *rand.Rand, size float64, y []float64, _ int) {
		most := 0.0
		for _, v := range y {
			most = max(most, math.Abs(v))
		}
		for k, v := range y {
			y[k] = most / size * math.Tanh(v*size/most)
		}
	}},
	{name: "no mistake, but codes of 8 bits", weight: inBlocks(127)},
	{name: "no mistake, but codes of 4 bits", weight: inBlocks(7)},
}

// products are the names of the entries that are a product with a weight, and of their weights.
func products(list *order.List) (entries, weights map[string]bool) {
	entries, weights = map[string]bool{}, map[string]bool{}
	for _, e := range list.Entries {
		if _, is := e.Op.(op.Linear); !is || len(e.Weights) == 0 {
			continue
		}
		entries[e.Name], weights[e.Weights[0].Name] = true, true
	}
	return entries, weights
}

// mistaken is the isolator of a healthy trace with a mistake in every product.
func (p *plantedRuns) mistaken(r *plantedRun, trace *capture.Trace, k int) (*compare.Isolator, error) {
	what, of := everywhere[k], p.models[r.Checkpoint]
	seed := fnv.New64()
	fmt.Fprint(seed, r.Name, what.name)
	at := seed.Sum64()
	size := size(rand.New(rand.NewPCG(at, 0)))
	entries, weights := products(of.list)
	d := trace.Manifest().DType
	ids, err := trace.IDs()
	if err != nil {
		return nil, err
	}
	if what.result != nil {
		sources := trace.Sources()
		for k := range sources {
			s := &sources[k]
			if !entries[s.Name] || !s.DType.Float() {
				continue
			}
			rec, _ := trace.LookupFiring(s.Pass, s.Name, s.Firing)
			x, err := trace.Read(rec)
			if err != nil {
				return nil, err
			}
			tokens := len(ids[s.Pass])
			y := make([]float64, len(x.Data)/s.DType.Size())
			if err := floats.Decode(y, s.DType, x.Data); err != nil {
				return nil, err
			}
			what.result(rand.New(rand.NewPCG(at, uint64(k))), size, y, len(y)/max(1, tokens))
			var data []byte
			for _, v := range y {
				if s.DType == hooks.F32 {
					data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
				} else {
					data = binary.LittleEndian.AppendUint16(data, floats.BF16(float32(v)))
				}
			}
			s.Data = bytes.NewReader(data)
		}
		if trace, err = trace.Reassemble(sources); err != nil {
			return nil, err
		}
	}
	right := reference.Weights(of.ck, d)
	i, err := compare.NewIsolator(trace, of.list, func(w order.Weight) (program.Rows, error) {
		rows, err := right(w)
		if err != nil || what.weight == nil || !weights[w.Name] {
			return rows, err
		}
		n, cols := rows.Size()
		m := make(matrix, n)
		for k := range m {
			m[k] = make([]float64, cols)
			if err := rows.Row(m[k], k); err != nil {
				return nil, err
			}
		}
		name := fnv.New64()
		fmt.Fprint(name, w.Name)
		return what.weight(rand.New(rand.NewPCG(at, name.Sum64())), size, m), nil
	}, isolate.Options{})
	return i, err
}

// ratesOfCodesEverywhere measures how often a mistake in every product looks like quantised weights. Each trace of the bug bench without a mistake
// gets each mistake of [everywhere], in its results, or in the weights that it is held to: then the port has the mistake the other way round.
func (p *plantedRuns) ratesOfCodesEverywhere(t *testing.T) {
	conditions, tokens := codesConditions(), slices.Index(arithmetic.CodeConditions, "Alike")
	var out strings.Builder
	fmt.Fprintf(&out, "\n| mistake in every product | traces | wrong products | look coded | only Alike says no | traces that look quantised | without %s |\n|---|---|---|---|---|---|%s\n", strings.Join(conditions, " | without "), strings.Repeat("---|", len(conditions)))
	for k, what := range everywhere {
		var mu sync.Mutex
		traces, wrong, coded, alike := 0, 0, 0, 0
		var yes []string
		without := make([]int, len(conditions))
		p.each(t, p.healthy, func(r *plantedRun, _ func(isolate.Options) (*compare.Isolator, error)) error {
			if what.dtype != "" && what.dtype != r.DType {
				return nil
			}
			all, some, err := p.lookEverywhere(t, r, k)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			traces++
			for _, l := range all {
				if l.Wrong {
					wrong++
				}
				if l.but(noCondition) {
					coded++
				} else if l.but(tokens) {
					alike++
				}
			}
			for k, name := range conditions {
				if likeCodesBut(some, name) {
					without[k]++
				}
			}
			if likeCodesBut(some, "") {
				yes = append(yes, r.Name)
			}
			return nil
		})
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %d | %d |", what.name, traces, wrong, coded, alike, len(yes))
		for _, n := range without {
			fmt.Fprintf(&out, " %d |", n)
		}
		out.WriteString("\n")
		slices.Sort(yes)
		t.Logf("%s: %s", what.name, strings.Join(yes, ", "))
	}
	p.page(t, "mistakes in every product", len(p.runs) == ratesMeasured, out.String())
}

// lookEverywhere looks at the products of a trace with mistake k in every product: at all, and at those that LooksQuantised looks at.
func (p *plantedRuns) lookEverywhere(t *testing.T, r *plantedRun, k int) (all, some []codeProduct, err error) {
	t.Helper()
	from, err := capture.Open(p.path(r))
	if err != nil {
		return nil, nil, err
	}
	defer from.Close()
	i, err := p.mistaken(r, from, k)
	if err != nil {
		return nil, nil, err
	}
	nodes := arithmetic.ProductsOf(i.Isolator)
	if all, err = lookedAt(t, i.Isolator, nodes); err != nil {
		return nil, nil, err
	}
	some, err = lookedAt(t, i.Isolator, arithmetic.Spread(nodes, arithmetic.MostLooked))
	return all, some, err
}
