package measure_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
	"github.com/tracediff/tracediff/internal/testengine"
)

// The canonical order of every sum, as package lanes says it, and nothing else: no thought of speed or of several cores.
const (
	canonicalBlock = 1 << 16
	canonicalStrip = 1 << 11
	canonicalLanes = 16
)

// inLanes adds up terms.
func inLanes(terms []float64) float64 {
	var lane [canonicalLanes]float64
	for i, x := range terms {
		lane[i%canonicalLanes] += x
	}
	for half := canonicalLanes / 2; half > 0; half /= 2 {
		for i := range half {
			lane[i] += lane[i+half]
		}
	}
	return lane[0]
}

// canonical adds up one term for each element of a tensor: over all of it, over each index of its last axis, and over
// each row.
func canonical(terms []float64, last int) (all float64, columns, rows []float64) {
	columns, rows = make([]float64, last), make([]float64, len(terms)/last)
	for b := 0; b < len(terms); b += canonicalBlock {
		end := min(b+canonicalBlock, len(terms))
		sum, column, row := 0.0, make([]float64, last), make([]float64, len(rows))
		for at := b; at < end; {
			// A run ends with its row, its strip or its block.
			n := min(last-at%last, canonicalStrip-(at-b)%canonicalStrip, end-at)
			run := inLanes(terms[at : at+n])
			sum += run
			row[at/last] += run
			for i := at; i < at+n; i++ {
				column[i%last] += terms[i]
			}
			at += n
		}
		all += sum
		for i, x := range column {
			columns[i] += x
		}
		for i, x := range row {
			rows[i] += x
		}
	}
	return all, columns, rows
}

// worstOf is the largest relative L2 of some slices.
func worstOf(diff, ref []float64) float64 {
	squares := append([]float64{}, ref...)
	median, worst := medianRoot(squares), 0.0
	for i := range ref {
		worst = max(worst, math.Sqrt(diff[i])/max(math.Sqrt(ref[i]), median))
	}
	return worst
}

func medianRoot(squares []float64) float64 {
	for i := range squares { // few enough to sort by hand
		for j := i; j > 0 && squares[j] < squares[j-1]; j-- {
			squares[j], squares[j-1] = squares[j-1], squares[j]
		}
	}
	return math.Sqrt(squares[(len(squares)-1)/2])
}

// TestCanonicalOrder holds the sums to the order in which they are defined, to the last bit: whoever makes them faster makes
// the same numbers. Any other order changes some of these bits.
func TestCanonicalOrder(t *testing.T) {
	for _, shape := range [][]int{{1}, {15}, {17, 1}, {3, 5}, {40, 33}, {7, 2048}, {9, 2051}, {66000, 1}, {33000, 3}, {3, 70001}, {140000}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			n, _ := hooks.Elements(shape)
			rng := rand.New(rand.NewPCG(7, uint64(n)))
			o := oracle{shape: shape, dl: hooks.F64, dr: hooks.F64}
			var diff, ref, local, cross []float64
			for range n {
				y := rng.NormFloat64()
				x := y + rng.NormFloat64()
				o.l, o.r = append(o.l, x), append(o.r, y)
				diff, ref = append(diff, float64((x-y)*(x-y))), append(ref, float64(y*y))
				local, cross = append(local, float64(x*x)), append(cross, float64(x*y))
			}
			pair := testengine.Pair{Shape: shape, DType: hooks.F64, Local: o.l, Reference: o.r}
			m := ofPair(t, pair)
			undo := lanes.SetVectors(false)
			defer undo()
			if diff := cmp.Diff(m, ofPair(t, pair), cmpopts.IgnoreUnexported(measure.AxisError{})); diff != "" {
				t.Errorf("without vectors:\n%s", diff)
			}
			last := shape[len(shape)-1]
			dd, columnsD, rowsD := canonical(diff, last)
			rr, columnsR, rowsR := canonical(ref, last)
			ll, _, _ := canonical(local, last)
			lr, _, _ := canonical(cross, last)
			same := func(what string, got measure.Number, want float64) {
				if float64(got) != want {
					t.Errorf("%s is %v, want %v: off by %g", what, got, want, float64(got)-want)
				}
			}
			same("norm", m.Norm, math.Sqrt(rr))
			same("relative L2", m.RelL2, math.Sqrt(dd)/math.Sqrt(rr))
			same("scale", m.Scale, lr/rr)
			if n > 1 {
				same("cosine", m.Cosine, lr/(math.Sqrt(ll)*math.Sqrt(rr)))
			}
			for _, a := range m.Axes {
				if a.Size > 10000 {
					continue // each of their slices is one element: nothing is added up
				}
				if a.Number == len(shape)-1 {
					same("worst column", a.RelL2, worstOf(columnsD, columnsR))
				} else {
					same("worst row", a.RelL2, worstOf(rowsD, rowsR))
				}
			}
		})
	}
}

// TestManyBlocksAgainstExactArithmetic is what the small tensors of the other test do not have: several blocks, rows that
// end within them and beyond, and numbers far from zero.
func TestManyBlocksAgainstExactArithmetic(t *testing.T) {
	for _, tt := range []struct {
		dtype  hooks.DType
		shape  []int
		center float64
	}{
		{hooks.F32, []int{3, 3, 8007}, 1e5}, // rows of several strips, one of them over the end of a block
		{hooks.F64, []int{5, 3, 4409}, 0},
	} {
		t.Run(fmt.Sprint(tt.dtype, tt.shape), func(t *testing.T) {
			n, _ := hooks.Elements(tt.shape)
			rng := rand.New(rand.NewPCG(9, uint64(n)))
			o := oracle{shape: tt.shape, dl: tt.dtype, dr: tt.dtype}
			var l, r []byte
			for range n {
				y := tt.center + rng.NormFloat64()
				r, l = floats.Append(r, tt.dtype, y), floats.Append(l, tt.dtype, y+0.1*rng.NormFloat64())
			}
			o.l, o.r = decoded(t, tt.dtype, l), decoded(t, tt.dtype, r)
			m := metricsOf(t, testengine.OneTensor(t, "local", tt.dtype, tt.shape, l), testengine.OneTensor(t, "reference", tt.dtype, tt.shape, r))
			o.check(t, m)
		})
	}
}

// TestLargestBesideHoles has the largest difference of a block beside and in strips with elements that do not count, at the places
// where those are.
func TestLargestBesideHoles(t *testing.T) {
	const strips = 4
	for at := range strips {
		l, r := make([]float64, strips*canonicalStrip), make([]float64, strips*canonicalStrip)
		for i := range r {
			l[i], r[i] = 1+float64(i%7)/64, 1
			if i/canonicalStrip%2 == 1 && i%2 == 0 {
				l[i], r[i] = math.NaN(), math.NaN()
			}
		}
		l[canonicalStrip+2] = math.Inf(1) // and one side alone
		place := at*canonicalStrip + 6 + at%2
		l[place] = 9
		m := ofPair(t, testengine.Pair{Shape: []int{strips, canonicalStrip}, DType: hooks.F32, Local: l, Reference: r})
		if fmt.Sprint(m.Worst) != fmt.Sprint([]int{place / canonicalStrip, place % canonicalStrip}) || m.MaxAbs != 8 || m.LocalAt != 9 {
			t.Errorf("%v at %v, want 8 at element %d", m.MaxAbs, m.Worst, place)
		}
	}
}
