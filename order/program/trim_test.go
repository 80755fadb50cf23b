package program_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

const paddedTo = 24

// padding builds formulas over [heads,tokens,channels] that are padded to more tokens, out of a few instructions.
type padding struct {
	heads, tokens, channels int
	instructions            []int
}

// result is the formula's. All rows of it are read, or those of the tokens.
func (p padding) result(t rapid.TB, all bool) *program.Program {
	b := program.NewBuilder()
	rows := []int{p.heads, paddedTo, p.channels}
	zero := b.Literal(0)
	var have, square []program.Var // [heads,rows,channels] and [heads,rows,rows]
	for k := range 2 {
		x := b.Input(k, []int{p.heads, p.tokens, p.channels})
		have = append(have, b.Cat(1, x, b.Expand(zero, []int{p.heads, paddedTo - p.tokens, p.channels})))
	}
	below := make([]float64, paddedTo*paddedTo)
	for i := range below {
		if i%paddedTo < i/paddedTo {
			below[i] = 1
		}
	}
	lower := b.Permute(b.Constant("below", below, []int{paddedTo, paddedTo}), -1, 0, 1)
	square = append(square, b.Dot("scores", "htd,hsd->hts", have[0], have[1]))
	wide := []int{p.heads, paddedTo, paddedTo}
	for n, do := range p.instructions {
		name := fmt.Sprint(n)
		x, y := have[len(have)-1], have[(len(have)-2+n)%len(have)]
		m := square[len(square)-1]
		switch do {
		case 0:
			have = append(have, b.Mul(name, x, y))
		case 1:
			have = append(have, b.Add(name, x, y))
		case 2:
			have = append(have, b.Sub(name, x, b.Max(y, b.Neg(x))))
		case 3:
			square = append(square, b.Dot(name, "htd,hsd->hts", x, y))
		case 4:
			have = append(have, b.Dot(name, "hts,hsd->htd", m, x))
		case 5:
			square = append(square, b.Choose(b.Expand(lower, wide), m, b.Expand(zero, wide)))
		case 6:
			have = append(have, b.Solve(name, m, x, true))
		case 7:
			square = append(square, b.Permute(m, 0, 2, 1))
		case 8: // each row has the next one's place
			have = append(have, b.Cat(1, b.Slice(x, 1, 1, paddedTo), b.Slice(y, 1, 0, 1)))
		case 9:
			have = append(have, b.Cat(2, b.Slice(x, 2, p.channels-1, p.channels), b.Slice(x, 2, 0, p.channels-1)))
		case 10:
			have = append(have, b.Mul(name, x, b.Expand(b.Sum(name, x), rows)))
		case 11:
			column := b.Slice(x, 2, 0, 1)
			square = append(square, b.Sub(name, b.Expand(column, wide), b.Expand(b.Permute(column, 0, 2, 1), wide)))
		case 12:
			flat := b.Site(name, b.Reshape(b.Plain(x), p.heads*paddedTo, p.channels))
			have = append(have, b.Reshape(flat, rows...))
		case 13: // running sums
			have = append(have, b.Dot(name, "hts,hsd->htd", b.Expand(lower, wide), x))
		case 14:
			have = append(have, b.Add(name, x, b.Expand(b.Literal(1), rows)))
		case 15: // the sum of all rows, for each
			have = append(have, b.Dot(name, "hts,hsd->htd", b.Expand(b.Literal(0.5), wide), x))
		}
	}
	out := have[len(have)-1]
	if !all {
		out = b.Slice(out, 1, 0, p.tokens)
	}
	made, err := b.Program(b.Plain(out))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A program without its padding gives what the program gives, with bounds that are not wider.
func TestPaddingIsNotComputed(t *testing.T) {
	trimmed := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 40 {
			p := padding{2, rapid.IntRange(1, 4).Draw(t, "tokens"), 2, rapid.SliceOfN(rapid.IntRange(0, 15), 2, 7).Draw(t, "instructions")}
			all, some := p.result(t, true), p.result(t, false)
			if 2*some.Work() > all.Work() {
				continue
			}
			trimmed++
			p.compare(t, all, some, rapid.Uint64().Draw(t, "seed"))
		}
	})
	if trimmed == 0 {
		t.Error("no program lost its padding")
	}
}

// compare evaluates a program of all rows, and another of the tokens' rows.
func (p padding) compare(t *rapid.T, all, some *program.Program, seed uint64) {
	var in []program.Value
	for k := range uint64(2) {
		in = append(in, tensor(numbers(p.heads*p.tokens*p.channels, seed+k, f32), p.heads, p.tokens, p.channels))
	}
	call := program.Call{In: in, Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}}
	want, err := all.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	got, err := some.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got.Data {
		row := p.tokens * p.channels
		at := i/row*paddedTo*p.channels + i%row
		w, far := want.Data[at], want.Bound[at]
		if math.IsInf(far, 0) || math.IsNaN(w) {
			continue
		}
		if !(math.Abs(v-w) <= far+got.Bound[i]) || !(got.Bound[i] <= far*(1+1e-9)) {
			t.Fatalf("element %d is %v ± %v without the padding, %v ± %v with it", i, v, got.Bound[i], w, far)
		}
	}
}

// A chunk of one recurrence, as transformers has it for gated delta rules: what is left of it is what its tokens take.
func TestAChunkTakesWhatItsTokensTake(t *testing.T) {
	p := padding{heads: 2, tokens: 3, channels: 2, instructions: []int{5, 6, 13, 11, 5, 4, 1}}
	all, some := p.result(t, true), p.result(t, false)
	if full := all.Work() * p.tokens * p.tokens / (paddedTo * paddedTo); some.Work() > 8*full {
		t.Errorf("%d of %d", some.Work(), all.Work())
	}
}
