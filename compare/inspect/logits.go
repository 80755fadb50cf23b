package inspect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// Logits is what one row of logits chooses. Of equal logits the lower id comes first, as greedy decoding takes it; a NaN is
// never chosen.
type Logits struct {
	Row  []int   `json:"row"`  // its indexes, without that of the vocabulary
	Rows int     `json:"rows"` // how many there are
	Top  []Token `json:"top"`
	// Entropy is −Σ p·ln(p) in nats: 0 for a certain choice, ln(size of the vocabulary) for none. NaN with a NaN or +Inf in
	// the row.
	Entropy measure.Number `json:"entropy"`
}

// Token is one candidate for the next token.
type Token struct {
	ID          int            `json:"id"`
	Text        *string        `json:"text,omitempty"` // nil where no tokenizer is known
	Logit       measure.Number `json:"logit"`
	Probability measure.Number `json:"probability"` // softmax in float64; NaN with a NaN or +Inf in the row
}

// maxVocabulary is the longest row that is looked at, 8 MiB of float64. The largest vocabulary has a quarter of that.
const maxVocabulary = 1 << 20

// isLogits reports whether the last axis is that of a vocabulary: by its role, or by the name where that is not known.
func (x *looker) isLogits() bool {
	last := len(x.rec.Shape) - 1
	if last < 0 || !x.rec.DType.Float() || x.rec.Shape[last] < 2 || x.rec.Shape[last] > maxVocabulary || measure.Elements(x.rec.Shape) == 0 {
		return false
	}
	if role := x.role(last); role != 0 {
		return role == order.AxisVocab
	}
	name := x.rec.Name[strings.LastIndexAny(x.rec.Name, "./")+1:]
	return name == "logits" || name == "lm_head"
}

// logits looks at the row that was asked for, or the last.
func (x *looker) logits() (*Logits, error) {
	if !x.isLogits() {
		if x.o.Row != nil {
			return nil, optionError(fmt.Errorf("--row: %q has no logits", short(x.rec.Key)), "--row is for tensors whose last axis is a vocabulary; --slice shows the rows of any other")
		}
		return nil, nil
	}
	last := len(x.rec.Shape) - 1
	rows := measure.Elements(x.rec.Shape[:last])
	at := rows - 1
	if x.o.Row != nil {
		if at = *x.o.Row; at < 0 {
			at += rows
		}
		if at < 0 || at >= rows {
			return nil, optionError(fmt.Errorf("--row %d: %q has %d rows", *x.o.Row, short(x.rec.Key), rows), "rows count from 0, from the last as -1")
		}
	}
	l := &Logits{Row: container.Indexes(int64(at), x.rec.Shape[:last]), Rows: rows}
	var axes []steps
	for _, i := range l.Row {
		axes = append(axes, steps{start: i, step: 1, count: 1})
	}
	row, err := x.read(append(axes, steps{step: 1, count: x.rec.Shape[last]}))
	if err != nil {
		return nil, err
	}
	l.choose(row, x.o)
	return l, nil
}

// choose ranks the tokens of a row.
func (l *Logits) choose(row []float64, o *Options) {
	ids := make([]int, 0, len(row))
	most := math.Inf(-1)
	for id, v := range row {
		if v > math.Inf(-1) {
			ids = append(ids, id)
			most = max(most, v)
		}
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		switch {
		case row[a] > row[b]:
			return -1
		case row[a] < row[b]:
			return 1
		}
		return 0
	})
	total, weighted := 0.0, 0.0 // Σe and Σe·(v − most), of e = exp(v − most)
	for _, v := range row {
		d := v - most // NaN where the row has a NaN or +Inf
		e := floats.Exp(d)
		total += e
		if e != 0 { // the limit of e·ln(e) at 0 is 0
			weighted += e * d
		}
	}
	l.Entropy = measure.Number(math.Log(total) - weighted/total)
	l.Top = []Token{}
	for _, id := range ids[:min(o.top(), len(ids))] {
		t := Token{ID: id, Logit: measure.Number(row[id]), Probability: measure.Number(floats.Exp(row[id]-most) / total)}
		if o.TokenText != nil {
			text := o.TokenText(id)
			t.Text = &text
		}
		l.Top = append(l.Top, t)
	}
}
