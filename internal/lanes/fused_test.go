package lanes_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

var floatTypes = []hooks.DType{hooks.F64, hooks.F32, hooks.BF16, hooks.F16, hooks.F8E4M3, hooks.F8E5M2}

// pair is a strip of two tensors, and what is to be done with it.
type pair struct {
	d       hooks.DType
	raw     [2][]byte
	n       int
	huge    [2]float64
	allowed bool
	runs    []int // where they begin
}

// Kinds of elements of which a strip is drawn.
const (
	ordinary = iota
	subnormal
	special // NaN, infinities, mask values and anything else that the type has
	equal   // the same bytes on both sides
	kinds
)

// draw makes a strip of n elements that begins shift bytes behind a place in memory that suits every register.
func draw(rng *rand.Rand, d hooks.DType, n, shift, kind int) pair {
	p := pair{d: d, n: n, allowed: rng.IntN(2) == 0}
	size := d.Size()
	for side := range p.raw {
		all := make([]byte, 64+shift+n*size)
		p.raw[side] = all[shift : shift+n*size : shift+n*size]
	}
	largest := floats.Largest(d)
	if d == hooks.F64 {
		largest = 0x1p299 // tensors beyond are measured scaled, not by these passes
	}
	p.huge = [2]float64{largest / 2, largest / 2}
	if rng.IntN(3) == 0 {
		p.huge[rng.IntN(2)] = min(0x1p26, largest/2, 65504/2)
	}
	set := func(side, i int, bits uint64) {
		for b := range size {
			p.raw[side][i*size+b] = byte(bits >> (8 * b))
		}
	}
	codes := func(x float64) uint64 { return encode(d, x) }
	holes := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -largest, largest, -p.huge[0], -p.huge[1], 0, math.Copysign(0, -1)}
	for i := range n {
		x := rng.NormFloat64()
		l, r := codes(x*(1+1e-2*rng.NormFloat64())), codes(x)
		switch {
		case kind == subnormal:
			l, r = uint64(rng.IntN(4)), uint64(rng.IntN(4))|uint64(rng.IntN(2))<<(8*size-1)
		case kind == special && rng.IntN(3) > 0:
			anything := rng.Uint64()
			if d == hooks.F64 {
				anything = codes(math.Ldexp(x, rng.IntN(500)-250))
			}
			l = codes(holes[rng.IntN(len(holes))])
			r = []uint64{l, l, r, codes(holes[rng.IntN(len(holes))]), anything}[rng.IntN(5)]
		}
		if kind == equal {
			l = r
		}
		set(0, i, l)
		set(1, i, r)
	}
	for at := 0; at < n; {
		p.runs = append(p.runs, at)
		at += 1 + rng.IntN(n)
		if rng.IntN(2) == 0 {
			at = (at + lanes.Count - 1) &^ (lanes.Count - 1)
		}
	}
	return p
}

// encode is the bits of the number of d that is nearest to x.
func encode(d hooks.DType, x float64) uint64 {
	switch d {
	case hooks.F64:
		return math.Float64bits(x)
	case hooks.F32:
		return uint64(math.Float32bits(float32(x)))
	case hooks.BF16:
		return uint64(floats.BF16(float32(x)))
	case hooks.F16:
		return uint64(floats.F16(float32(x)))
	case hooks.F8E4M3:
		return uint64(floats.F8E4M3(float32(x)))
	}
	return uint64(floats.F8E5M2(float32(x)))
}

// found is all that is measured of a strip.
type found struct {
	Masked, NaN, Low int64
	Odd              []int
	Unequal          int64
	Steps            uint64
	Largest          float64
	Runs             []lanes.Squares
	Diff, Ref        []float64 // columns
	Moments          [2]lanes.Moments
}

// fused measures by the passes.
func (p pair) fused(f *lanes.Fused) (out found, ok bool) {
	lim := lanes.NewLimits(p.d, p.huge, p.allowed)
	if lim == nil {
		return out, false
	}
	l := p.raw[0]
	if slices.Equal(l, p.raw[1]) {
		l = nil
	}
	seen, count := f.Look(lim, l, p.raw[1]), p.n
	if !seen.Plain {
		if !lim.Sorts() {
			return out, false
		}
		s := f.Classify()
		out.Masked, out.NaN, out.Low, out.Odd = s.Masked, s.NaN, s.Low, s.Odd
		seen, count = f.Again()
	}
	out.Unequal, out.Steps = seen.Unequal, seen.Steps
	out.Diff, out.Ref = make([]float64, p.n), make([]float64, p.n)
	aligned := !slices.ContainsFunc(p.runs, func(at int) bool { return at%lanes.Count != 0 })
	if !aligned {
		f.Totals()
	}
	for i, at := range p.runs {
		n := append(p.runs, p.n)[i+1] - at
		out.Runs = append(out.Runs, f.Run(at, n, aligned, out.Diff[at:], out.Ref[at:]))
	}
	out.Largest = f.Largest()
	out.Moments = f.Moments(count)
	return out, true
}

// plain measures the numbers, one by one or by the functions for numbers.
func (p pair) plain() (out found) {
	var x [2][]float64
	for side := range x {
		x[side] = make([]float64, p.n)
		if err := floats.Decode(x[side], p.d, p.raw[side]); err != nil {
			panic(err)
		}
	}
	surveys := [2]lanes.Survey{lanes.Nothing, lanes.Nothing}
	finite := func(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
	raw := [2][]byte{slices.Clone(p.raw[0]), slices.Clone(p.raw[1])}
	var holes []int
	for i, a := range x[0] {
		b := x[1][i]
		maskA, maskB := a < -p.huge[0], b < -p.huge[1]
		switch {
		case p.allowed && maskA && maskB, finite(a) && a == b && maskA && maskB:
			out.Masked++
		case p.allowed && maskA != maskB:
			out.Odd = append(out.Odd, i)
		case finite(a) && finite(b):
			surveys[0].Add(a)
			surveys[1].Add(b)
			continue
		case a != a && b != b:
			out.NaN++
		case a == b && a < 0:
			out.Low++
		default:
			out.Odd = append(out.Odd, i)
		}
		holes = append(holes, i)
		x[0][i], x[1][i] = 0, 0
		size := p.d.Size()
		clear(raw[0][i*size : (i+1)*size])
		clear(raw[1][i*size : (i+1)*size])
	}
	out.Unequal, out.Steps = floats.Steps(p.d, raw[0], raw[1], p.n)
	out.Largest = lanes.Largest(x[0], x[1])
	out.Diff, out.Ref = make([]float64, p.n), make([]float64, p.n)
	for i, at := range p.runs {
		end := append(p.runs, p.n)[i+1]
		var sum lanes.Squares
		sum.Add(lanes.Products(x[0][at:end], x[1][at:end])) // as sums do that begin at +0: alone a product of one element may be −0
		out.Runs = append(out.Runs, sum)
		lanes.AddColumns(out.Diff[at:end], out.Ref[at:end], x[0][at:end], x[1][at:end])
	}
	for side := range x {
		surveys[side].Total = lanes.Total(x[side])
		out.Moments[side] = lanes.MomentsOf(x[side], holes, surveys[side])
	}
	return out
}

// check compares what two ways have found, with all bits; a zero has no sign where it is an extreme.
func (p pair) check(t *testing.T, f *lanes.Fused, what string) {
	t.Helper()
	got, ok := p.fused(f)
	if !ok {
		return
	}
	undo := lanes.SetVectors(false)
	want := p.plain()
	undo()
	for _, m := range []*lanes.Moments{&got.Moments[0], &got.Moments[1], &want.Moments[0], &want.Moments[1]} {
		m.Min, m.Max = m.Min+0, m.Max+0
	}
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Fatalf("%s, %s, %d elements, runs %v, allowed %t, masked below %v:\n%x\n%x\ngot  %s\nwant %s",
			what, p.d, p.n, p.runs, p.allowed, p.huge, p.raw[0], p.raw[1], g, w)
	}
}

// TestFusedPasses holds the passes of every instruction set to the plain functions, in every bit: every type of floats, every length up
// to 200 and some up to a strip, every place in memory, and whatever a float can be.
func TestFusedPasses(t *testing.T) {
	for _, bits := range []int{512, 256} {
		defer lanes.SetWidest(bits)()
		for _, d := range floatTypes {
			t.Run(fmt.Sprint(bits, " bits, ", d), func(t *testing.T) {
				if runtime.GOARCH == "amd64" && d != hooks.F64 && lanes.NewLimits(d, [2]float64{1, 1}, false) == nil {
					t.Skip("this processor has no such registers")
				}
				rng := rand.New(rand.NewPCG(19, uint64(bits)))
				var f lanes.Fused
				for n := 1; n <= 200; n++ {
					for kind := range kinds {
						draw(rng, d, n, n%64, kind).check(t, &f, fmt.Sprint("kind ", kind))
					}
				}
				for _, n := range []int{1023, 2000, lanes.Strip} {
					for kind := range kinds {
						draw(rng, d, n, 3, kind).check(t, &f, fmt.Sprint("kind ", kind))
					}
				}
			})
		}
	}
}

// FuzzFused is the same of any two strips.
func FuzzFused(f *testing.F) {
	f.Add(uint8(1), uint64(1), true, []byte{0, 0, 0x80, 0x7f, 1, 0, 0, 0, 0, 0, 0x80, 0xff, 0, 0, 0, 0x80})
	f.Fuzz(func(t *testing.T, of uint8, seed uint64, allowed bool, data []byte) {
		d := floatTypes[int(of)%len(floatTypes)]
		n := min(len(data)/(2*d.Size()), lanes.Strip)
		if n == 0 {
			return
		}
		p := draw(rand.New(rand.NewPCG(seed, 1)), d, n, int(seed%64), ordinary)
		p.allowed = allowed
		copy(p.raw[0], data)
		copy(p.raw[1], data[n*d.Size():])
		for _, bits := range []int{512, 256} {
			undo := lanes.SetWidest(bits)
			p.check(t, new(lanes.Fused), fmt.Sprint(bits, " bits"))
			undo()
		}
	})
}

// BenchmarkFused measures strips of two tensors that differ in every element, out of the first-level cache.
func BenchmarkFused(b *testing.B) {
	for _, bits := range []int{512, 256} {
		for _, d := range floatTypes {
			for _, kind := range []int{ordinary, special, equal} {
				b.Run(fmt.Sprint(bits, "/", d, "/", []string{"ordinary", "", "special", "equal"}[kind]), func(b *testing.B) {
					defer lanes.SetWidest(bits)()
					p := draw(rand.New(rand.NewPCG(1, 1)), d, lanes.Strip, 0, kind)
					lim := lanes.NewLimits(d, p.huge, false)
					if lim == nil || kind == special && !lim.Sorts() {
						b.Skip("no such registers")
					}
					if kind == special { // no element that is for the caller to judge
						copy(p.raw[0], p.raw[1])
						binary.LittleEndian.PutUint16(p.raw[0], 1)
					}
					l := p.raw[0]
					if kind == equal {
						l = nil
					}
					diff, ref := make([]float64, p.n), make([]float64, p.n)
					f := new(lanes.Fused)
					b.SetBytes(int64(2 * len(p.raw[0])))
					for b.Loop() {
						count := p.n
						if s := f.Look(lim, l, p.raw[1]); !s.Plain {
							f.Classify()
							_, count = f.Again()
						}
						f.Run(0, p.n, true, diff, ref)
						f.Largest()
						f.Moments(count)
					}
				})
			}
		}
	}
}
