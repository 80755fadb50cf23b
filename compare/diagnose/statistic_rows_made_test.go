package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// plainNorm is a norm of rows of 16 with an epsilon of 0.01 that is multiplied by its weight.
func plainNorm() operation {
	o := normOf8()
	o.op = op.RMSNorm{Eps: 0.01, Gain: op.Plain}
	return o
}

// normBy is a norm of rows of 16 with an epsilon of 0.01 that is a function of the epsilon and of the row.
func normBy(epsilon func(eps float64, row []float64) float64) func(in [][]float64, y []float64) {
	w := wave(16, 5)
	return func(in [][]float64, y []float64) {
		for i := range y {
			row := in[0][i/16*16:][:16]
			y[i] = in[0][i] / math.Sqrt(meanSquare(row, 16, 16)+epsilon(0.01, row)) * w[i%16]
		}
	}
}

// meanPower is the mean of a power of the magnitudes of a row.
func meanPower(row []float64, power float64) float64 {
	sum := 0.0
	for _, x := range row {
		sum += math.Pow(math.Abs(x), power)
	}
	return sum / float64(len(row))
}

func largestMagnitude(row []float64) float64 {
	most := 0.0
	for _, x := range row {
		most = max(most, math.Abs(x))
	}
	return most
}

// A number of a formula that is multiplied or divided by a statistic of each row, or is one, is named; a number that is another function of the row is not.
func TestNumbersOfRowsMadeInLoopsAreNamed(t *testing.T) {
	norm := plainNorm()
	scale := sumOf8()
	scale.op = &madeOf{func(b *program.Builder, in, _ []program.Var) program.Var {
		return b.Add("sum", b.Mul("product", in[0], b.Scalar("scale", 0.5)), in[1])
	}}
	scaled := func(by func(row []float64) float64) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = in[0][i]*by(in[1][i/16*16:][:16]) + in[1][i]
			}
		}
	}
	another := normBy(func(eps float64, row []float64) float64 { return eps * math.Sin(40*row[0]+row[1]) })
	for _, c := range []rowPlant{
		{"number.times-statistic(place=rms_norm.eps,of=epsilon,by=tensor:layers.*.in,for=row-statistic:mean-magnitude)", norm, normBy(func(eps float64, row []float64) float64 { return eps * meanPower(row, 1) }), another},
		{"number.times-statistic(place=rms_norm.eps,of=epsilon,by=tensor:layers.*.in,for=row-statistic:largest-magnitude)", norm, normBy(func(eps float64, row []float64) float64 { return eps * largestMagnitude(row) }), another},
		{"number.over-statistic(place=rms_norm.eps,of=epsilon,by=tensor:layers.*.in,for=row-statistic:length)", norm, normBy(func(eps float64, row []float64) float64 { return eps / math.Sqrt(16*meanPower(row, 2)) }), another},
		{"number.statistic(place=rms_norm.eps,of=epsilon,by=tensor:layers.*.in,for=row-statistic:mean-magnitude)", norm, normBy(func(_ float64, row []float64) float64 { return meanPower(row, 1) }), another},
		{"number.statistic(place=rms_norm.eps,of=epsilon,by=tensor:layers.*.in,for=row-statistic:mean-magnitude,x=0.3)", norm, normBy(func(_ float64, row []float64) float64 { return 0.3 * meanPower(row, 1) }), another},
		{
			"number.over-statistic(place=made.scale,of=a-factor,by=tensor:layers.*.self_attn.o_proj,for=row-statistic:root-mean-square)", scale,
			scaled(func(row []float64) float64 { return 0.5 / math.Sqrt(meanPower(row, 2)) }), scaled(func(row []float64) float64 { return 0.5 / math.Sqrt(meanPower(row, 3)) }),
		},
	} {
		c.look(t)
	}
}

// An activation that is 0 below a number is named with it, also where an input is just this number, on either side.
func TestCutsAtAnInputAreNamed(t *testing.T) {
	silu := operation{"layers.0.mlp.act_fn", op.SiLU{}, "btc", []int{1, 8, 16}, []program.Value{{Shape: []int{1, 8, 16}, Data: each(wave(128, 1), func(v float64) float64 { return math.Round(2*v) / 2 })}}, nil, nil}
	cut := func(zero func(x float64) bool) func(in [][]float64, y []float64) {
		return func(in [][]float64, y []float64) {
			for i, x := range in[0] {
				if zero(x) {
					y[i] = 0
				}
			}
		}
	}
	for _, c := range []rowPlant{
		{"activation.zero-below(place=silu,x=-1.6)", silu, cut(func(x float64) bool { return x < -1.5 }), cut(func(x float64) bool { return x == -1.5 })},
		{"activation.zero-below(place=silu,x=-1)", silu, cut(func(x float64) bool { return x <= -1.5 }), cut(func(x float64) bool { return x == -1.5 })},
	} {
		c.look(t)
	}
}
