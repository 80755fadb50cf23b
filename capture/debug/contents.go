package debug

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// ids lists the tokens of a pass, [T] or [sequences, T], each with its position in the sequence.
func (d *Log) ids(t hooks.Tensor) {
	if t.DType != hooks.I64 || len(t.Data) == 0 {
		return
	}
	p, n := &d.pass, len(t.Data)/t.DType.Size()
	p.batch = batch{sequences: 1, tokens: n}
	if len(t.Shape) > 1 {
		p.batch.tokens = t.Shape[len(t.Shape)-1]
		p.batch.sequences = n / p.batch.tokens
	}
	if !p.full {
		return
	}
	listed := 0
	for b := range min(p.batch.sequences, Sequences) {
		shown := 0
		for i := range p.batch.tokens {
			at := d.start() + i
			if !d.o.Positions.Has(at) || len(d.o.Positions) == 0 && shown == Tokens {
				continue
			}
			shown++
			id := int(binary.LittleEndian.Uint64(t.Data[8*(b*p.batch.tokens+i):]))
			d.line.begin("token")
			d.line.int("pass", int64(p.number))
			d.line.int("position", int64(at))
			d.line.int("id", int64(id))
			d.tokenText(id)
			if p.batch.sequences > 1 {
				d.line.int("sequence", int64(b))
			}
			d.line.end()
		}
		listed += shown
	}
	if left := n - listed; left > 0 {
		d.note(fmt.Sprintf("%d more tokens are not listed", left))
	}
}

// start is the position of the pass's first token in the sequence.
func (d *Log) start() int {
	if d.pass.number < len(d.o.Starts) {
		return d.o.Starts[d.pass.number]
	}
	return d.seen
}

// tokenText writes the text of an id, if the log has a tokenizer.
func (d *Log) tokenText(id int) {
	if d.o.Text != nil {
		d.line.text("text", d.o.Text(id))
	}
}

// logits lists the most likely tokens by the last row of each sequence, from which the next token is chosen. The line of
// the pass gets the most likely token of the last sequence. Of equal logits the lower id comes first; a NaN has no rank.
func (d *Log) logits(t hooks.Tensor) {
	width := lastAxis(t)
	if width == 0 {
		return
	}
	rows := len(t.Data) / t.DType.Size() / width
	batch := d.pass.sequences(t, rows)
	for b := range batch {
		if b >= Sequences && b < batch-1 {
			continue
		}
		d.likely(t, b, batch)
	}
	if left := batch - Sequences; left > 0 && d.pass.full {
		d.note(fmt.Sprintf("the most likely tokens of %d more sequences are not listed", left))
	}
}

// likely lists the most likely tokens by the last row of a sequence.
func (d *Log) likely(t hooks.Tensor, sequence, batch int) {
	rows := len(t.Data) / t.DType.Size() / lastAxis(t) / batch
	at := (sequence+1)*rows - 1
	tokens := d.pass.batch.tokens
	if tokens == 0 {
		tokens = rows
	}
	row := rowAt(t, at)
	best := largest(row, Top)
	if len(best) == 0 {
		return
	}
	whole := d.line
	d.line = nil
	d.line.int("top", int64(best[0]))
	d.tokenText(best[0])
	if batch > 1 {
		d.line.int("sequence", int64(sequence))
	}
	d.pass.top, d.line = d.line, whole
	if !d.pass.full || sequence >= Sequences {
		return
	}
	scale := denominator(row, row[best[0]])
	for rank, id := range best {
		d.line.begin("top")
		d.line.int("pass", int64(d.pass.number))
		d.line.int("row", int64(at))
		d.line.int("rank", int64(rank+1))
		d.line.int("id", int64(id))
		d.line.number("logit", row[id])
		d.line.number("probability", math.Exp(row[id]-row[best[0]])/scale)
		d.tokenText(id)
		if batch > 1 {
			d.line.int("sequence", int64(sequence))
			d.line.int("position", int64(d.start()+tokens-1))
		}
		d.line.end()
	}
}

// lastAxis is the length of a row; 0 for a scalar and an empty tensor.
func lastAxis(t hooks.Tensor) int {
	if len(t.Shape) == 0 || len(t.Data) == 0 {
		return 0
	}
	return t.Shape[len(t.Shape)-1]
}

// rowAt decodes a row of the last axis; nil for a dtype that cannot be decoded.
func rowAt(t hooks.Tensor, at int) []float64 {
	row := make([]float64, lastAxis(t))
	if err := floats.Decode(row, t.DType, t.Data[at*len(row)*t.DType.Size():]); err != nil {
		return nil
	}
	return row
}

// largest returns the indices of the largest numbers, at most most of them, largest first.
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

// denominator is the denominator of the softmax, Σ exp(x − top): NaN if x has a NaN.
func denominator(x []float64, top float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return sum
}
