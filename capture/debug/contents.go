package debug

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// ids lists the tokens of a pass, each at its position of the sequence.
func (d *Log) ids(t hooks.Tensor) {
	if t.DType != hooks.I64 {
		return
	}
	n := len(t.Data) / t.DType.Size()
	d.pass.tokens = n
	if !d.pass.full {
		return
	}
	start, listed := d.seen, 0
	if d.pass.number < len(d.o.Starts) {
		start = d.o.Starts[d.pass.number]
	}
	for i := range n {
		if len(d.o.Positions) == 0 && i == Tokens {
			break
		}
		if !d.o.Positions.Has(start + i) {
			continue
		}
		listed++
		id := int(binary.LittleEndian.Uint64(t.Data[8*i:]))
		d.line.begin("token")
		d.line.int("pass", int64(d.pass.number))
		d.line.int("position", int64(start+i))
		d.line.int("id", int64(id))
		d.tokenText(id)
		d.line.end()
	}
	if left := n - listed; left > 0 {
		d.note(fmt.Sprintf("%d more tokens are not listed", left))
	}
}

// tokenText writes the text of an id where there is a tokenizer.
func (d *Log) tokenText(id int) {
	if d.o.Text != nil {
		d.line.text("text", d.o.Text(id))
	}
}

// logits lists the most likely tokens by the last row, which is what the next token is chosen by. The pass keeps the first
// of them for its own line. Of equal logits the lower id comes first; a NaN has no rank.
func (d *Log) logits(t hooks.Tensor) {
	row := lastRow(t)
	best := largest(row, Top)
	if len(best) == 0 {
		return
	}
	whole := d.line
	d.line = nil
	d.line.int("top", int64(best[0]))
	d.tokenText(best[0])
	d.pass.top, d.line = d.line, whole
	if !d.pass.full {
		return
	}
	scale := denominator(row, row[best[0]])
	for rank, id := range best {
		d.line.begin("top")
		d.line.int("pass", int64(d.pass.number))
		d.line.int("row", int64(len(t.Data)/t.DType.Size()/len(row)-1))
		d.line.int("rank", int64(rank+1))
		d.line.int("id", int64(id))
		d.line.number("logit", row[id])
		d.line.number("probability", math.Exp(row[id]-row[best[0]])/scale)
		d.tokenText(id)
		d.line.end()
	}
}

// lastRow decodes the last row of the last axis; nil for a scalar and an empty tensor.
func lastRow(t hooks.Tensor) []float64 {
	if len(t.Shape) == 0 || len(t.Data) == 0 {
		return nil
	}
	row := make([]float64, t.Shape[len(t.Shape)-1])
	if err := floats.Decode(row, t.DType, t.Data[len(t.Data)-len(row)*t.DType.Size():]); err != nil {
		return nil
	}
	return row
}

// largest returns the places of the most largest numbers, largest first.
func largest(x []float64, most int) []int {
	best := make([]int, 0, most+1)
	for i, v := range x {
		if v != v || len(best) == most && v <= x[best[most-1]] {
			continue
		}
		at := len(best)
		for at > 0 && v > x[best[at-1]] {
			at--
		}
		best = append(best, 0)
		copy(best[at+1:], best[at:])
		best[at] = i
		best = best[:min(len(best), most)]
	}
	return best
}

// denominator is Σ exp(x − top), the softmax's: NaN if any of them is.
func denominator(x []float64, top float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return sum
}
