package measure_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

// whole is a dtype as it is read where nothing is rounded: nil for what is not a number.
var whole = map[hooks.DType]func(bits uint64) *big.Float{
	hooks.I64: func(bits uint64) *big.Float { return new(big.Float).SetPrec(precision).SetInt64(int64(bits)) },
	hooks.U64: func(bits uint64) *big.Float { return new(big.Float).SetPrec(precision).SetUint64(bits) },
	hooks.F64: func(bits uint64) *big.Float {
		if x := math.Float64frombits(bits); !wild(x) {
			return number(x)
		}
		return nil
	},
}

// TestIntegersAreExact compares numbers of 64 bits, most of them where float64 has no room for all of them: near 2^53,
// 2^63 and 2^64.
func TestIntegersAreExact(t *testing.T) {
	order, err := order.ReadNames(strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	for dl := range whole {
		for dr := range whole {
			if dl.Float() && dr.Float() {
				continue
			}
			t.Run(fmt.Sprintf("%s-%s", dl, dr), func(outer *testing.T) {
				rapid.Check(outer, func(t *rapid.T) {
					n := rapid.IntRange(1, 5).Draw(t, "n")
					var raw [2][]byte
					var unequal int64
					most, at := 0.0, -1
					for i := range n {
						near := rapid.SampledFrom([]uint64{0, 1 << 53, 1 << 62, 1 << 63, math.MaxUint64}).Draw(t, "near")
						var x [2]*big.Float
						for side, d := range []hooks.DType{dl, dr} {
							bits := near + uint64(rapid.IntRange(-3, 3).Draw(t, "by"))
							if d.Float() {
								bits = math.Float64bits(float64(bits))
								if near == 1<<62 && rapid.Bool().Draw(t, "NaN") {
									bits = math.Float64bits(math.NaN())
								}
							}
							raw[side] = binary.LittleEndian.AppendUint64(raw[side], bits)
							x[side] = whole[d](bits)
						}
						if x[0] == nil || x[1] == nil {
							unequal++ // NaN differs from everything
							if at < 0 {
								at = i
							}
							continue
						}
						d, _ := x[0].Sub(x[0], x[1]).Float64()
						if d != 0 {
							unequal++
						}
						if d = math.Abs(d); d > most {
							most, at = d, i
						}
					}
					local, reference := testengine.OneTensor(outer, "local", dl, []int{n}, raw[0]), testengine.OneTensor(outer, "reference", dr, []int{n}, raw[1])
					res, err := compare.Traces(outer.Context(), local, reference, compare.Options{Order: order})
					if err != nil {
						t.Fatal(err)
					}
					if err := res.Contradiction(); err != nil {
						t.Fatal(err)
					}
					row := res.Rows[0]
					m := row.Metrics
					if m.Unequal != unequal || (row.Verdict == compare.Match) != (unequal == 0) {
						t.Fatalf("%d unequal, %s; want %d", m.Unequal, row.Verdict, unequal)
					}
					if float64(m.MaxAbs) != most || (at < 0) != (m.Worst == nil) || most > 0 && m.Worst[0] != at {
						t.Fatalf("max abs %g at %v, want %g at %d", m.MaxAbs, m.Worst, most, at)
					}
				})
			})
		}
	}
}
