package compare

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// Final is what a comparison says about the next token, pass by pass.
type Final struct {
	Passes []Logits `json:"passes"`
	Agree  int      `json:"agree"` // passes in which both sides go on with the same token
	Shown  int      `json:"shown"` // the one to show whole: the first in which they do not, else the last
	Worst  int      `json:"worst"` // the one with the largest WorstKL
}

// add takes in the next pass.
func (f *Final) add(l Logits) {
	at := len(f.Passes)
	f.Passes = append(f.Passes, l)
	if f.Agree == at { // in all before
		f.Shown = at
	}
	if l.Last.Agree {
		f.Agree++
	}
	if worst := f.Passes[f.Worst].WorstKL; l.WorstKL > worst || worst != worst {
		f.Worst = at
	}
}

// Logits is what the logits of one pass say about the next token. It decides nothing: the gate and the certificate of the
// entry do. P is the softmax of a row of the reference, Q of the same row of the local side.
type Logits struct {
	Key  string `json:"key"` // of the row of the comparison
	Pass int    `json:"pass"`
	Rows int64  `json:"rows"` // of logits that were compared, one a token

	Last Next `json:"last"` // of the last row, from which a decoder goes on

	// Flipped counts the rows in which the sides choose different tokens, and FlipGap is the largest Gap of these choices:
	// how far the reference has its own above the local side's.
	Flipped int            `json:"flipped"`
	FlipGap measure.Number `json:"flip_gap,omitempty"`

	// WorstKL is the largest KL of all rows, at the row WorstRow; NaN when it is undefined in each. Undefined counts these.
	WorstKL     measure.Number `json:"worst_kl"`
	WorstRow    Place          `json:"worst_row"`
	UndefinedKL int64          `json:"undefined_kl,omitempty"`

	Warning string `json:"warning,omitempty"` // what to think of an agreement, where there is one
}

// Place is a row of the logits: its indexes in the reference's tensor, without that of the vocabulary, and where that is
// known the place of its token in the sequence.
type Place struct {
	Index    []int `json:"index"`
	Position *int  `json:"position,omitempty"`
}

// Next is the choice of the next token in one row of the logits.
type Next struct {
	Row Place `json:"row"`

	// Top has the five most likely tokens of the reference, most likely first, and after them those of the local side's
	// five that are not among these.
	Top       []Token `json:"top"`
	Reference int     `json:"reference"` // the most likely tokens, what greedy decoding takes; −1 where all is NaN
	Local     int     `json:"local"`
	Agree     bool    `json:"agree"`

	// KL is the Kullback-Leibler divergence of the local side's distribution from the reference's, KL(P‖Q) = Σ p·ln(p/q)
	// in nats; see [softmaxes] for NaN, infinities and masks.
	KL measure.Number `json:"kl"`

	// Lead is how far the reference has its first token above its second, in logits. Gap is how far it has its own first
	// above the local side's, 0 where they agree. Noise is the unit to see them in: what the logits of this row are off by
	// without any bug, see [walker.tokenNoise]. A Tie is a flip that the noise allows.
	Lead      measure.Number `json:"lead"`
	Gap       measure.Number `json:"gap"`
	Noise     measure.Number `json:"noise"`
	Allowed   measure.Number `json:"allowed"`    // the Gap of a tie is no larger
	NoiseFrom string         `json:"noise_from"` // in words
	Tie       bool           `json:"tie,omitempty"`
}

// Token is one candidate for the next token, on both sides.
type Token struct {
	ID   int     `json:"id"`
	Text *string `json:"text,omitempty"` // nil where no tokenizer is known
	// ReferenceRank is 1 for the most likely token of the reference; of equal logits the lower id ranks first, as greedy
	// decoding takes it. 0 is the rank of a NaN.
	ReferenceRank int            `json:"reference_rank"`
	LocalRank     int            `json:"local_rank"`
	Reference     measure.Number `json:"reference"` // its logits
	Local         measure.Number `json:"local"`
}

// topTokensShown is how many tokens of each side are listed: enough to see a near tie, and what a sampler would take.
const topTokensShown = 5

// agreement is what to think of it when both sides choose the same token.
const agreement = "weak evidence: a missing scale or soft cap leaves the order of the logits as it is, and an error smaller than the lead leaves the choice"

// final looks at the logits of a pass as a choice of tokens.
func (w *walker) final(p *pair, s *measure.Sums) error {
	at := len(p.r.Shape) - 1
	if s.Top == nil || w.o.Alone || at < 0 || p.r.Shape[at] < 2 || p.r.Shape[at] > measure.MaxVocabulary || measure.Elements(p.r.Shape) == 0 {
		return nil
	}
	if w.res.Final == nil {
		w.res.Final = &Final{}
	}
	if slices.ContainsFunc(w.res.Final.Passes, func(f Logits) bool { return f.Pass == p.pass }) {
		return nil // of two firings the first is the one that a certificate is of, too
	}
	all, err := measure.Divergences(w.ctx, p.l, p.r)
	if err != nil {
		return err
	}
	f := Logits{
		Key: p.row.Key(), Pass: p.pass, Rows: int64(all.Rows), Flipped: s.Top.Flipped, WorstKL: measure.Number(all.Worst), UndefinedKL: all.Undefined,
	}
	if s.Top.Flipped > 0 {
		f.FlipGap = measure.Number(s.Top.Gap)
	}
	if f.WorstRow, err = w.placeOf(p, all.At); err != nil {
		return err
	}
	if f.Last, err = w.choice(p, all.Rows-1); err != nil {
		return err
	}
	if f.Last.Agree {
		f.Warning = agreement
	}
	w.res.Final.add(f)
	return nil
}

// choice looks at one row.
func (w *walker) choice(p *pair, row int) (Next, error) {
	size := p.r.Shape[len(p.r.Shape)-1]
	l, r := make([]float64, size), make([]float64, size)
	if err := errors.Join(p.l.Values(l, row*size), p.r.Values(r, row*size)); err != nil {
		return Next{}, err
	}
	topL, topR := likeliest(l), likeliest(r)
	n := Next{Top: candidates(l, r), Local: -1, Reference: -1, KL: measure.Number(new(measure.Softmaxes).Divergence(l, r)), Lead: measure.Nan, Gap: measure.Nan}
	if len(topL) > 0 {
		n.Local = topL[0]
	}
	if len(topR) > 0 {
		n.Reference = topR[0]
	}
	if len(topR) > 1 {
		n.Lead = measure.Number(r[topR[0]] - r[topR[1]])
	}
	n.Agree = n.Local == n.Reference && n.Local >= 0
	n.Noise, n.Allowed, n.NoiseFrom = w.tokenNoise(p, rootMeanSquare(r))
	if n.Reference >= 0 && n.Local >= 0 {
		n.Gap = measure.Number(r[n.Reference] - r[n.Local])
		n.Tie = !n.Agree && n.Gap <= n.Allowed
	}
	var err error
	n.Row, err = w.placeOf(p, row)
	return n, err
}

// tieFloors is how many noise floors two logits of the reference may be apart and change places without a bug. A floor is
// the root mean square of what one logit of one side is off by; four of them take part, of two tokens on two sides, so
// that the difference of the differences has twice that as its standard deviation, and this is three of those.
const tieFloors = 6

// tokenNoise is how far off the logits of a row with this root mean square are without any bug, and how far the reference
// may have two tokens apart of which the local side takes the other. The noise floor of the prompt is the unit where it
// is known. Else it is the limit on the whole tensor: two logits at theirs are off by twice that.
func (w *walker) tokenNoise(p *pair, rms float64) (noise, allowed measure.Number, from string) {
	if w.o.Noise != nil && w.o.Noise.DType == p.arithmetic.String() {
		if f := w.o.Noise.Entries[p.row.Key()].RelL2; f > 0 {
			noise = f * measure.Number(rms)
			return noise, tieFloors * noise, "noise floor of this prompt"
		}
	}
	noise = p.row.Gate.Checks[0].Limit * measure.Number(rms)
	return noise, 2 * noise, "limit on the logits (" + gate.Source(p.row.Gate.From) + ")"
}

// rootMeanSquare is that of the finite elements, 0 where there is none.
func rootMeanSquare(row []float64) float64 {
	square, n := 0.0, 0
	for _, v := range row {
		if measure.Finite(v) {
			square += float64(v * v)
			n++
		}
	}
	return math.Sqrt(square / float64(max(n, 1)))
}

// placeOf says where in the reference a row of the pair is.
func (w *walker) placeOf(p *pair, row int) (Place, error) {
	last := len(p.r.Shape) - 1
	place := Place{Index: p.r.Place(int64(row) * int64(p.r.Shape[last]))[:last]}
	at := strings.IndexByte(p.axes, order.AxisToken)
	if at < 0 || at >= last {
		return place, nil
	}
	positions, err := w.rowPositions(reference, p.pass, p.r.Rec, p.r.Rec.Shape[at])
	if err == nil && positions != nil {
		position := int(positions[place.Index[at]])
		place.Position = &position
	}
	return place, err
}

// likeliest returns the ids of the largest logits of a row, topTokensShown of them if there are as many, the largest first
// and of equal ones the lower id. What is NaN or masked by −Inf is never among them.
func likeliest(row []float64) []int {
	top := make([]int, 0, topTokensShown+1)
	for id, v := range row {
		if !(v > math.Inf(-1)) || len(top) == topTokensShown && !(v > row[top[topTokensShown-1]]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, v, func(id int, v float64) int {
			if row[id] >= v {
				return -1
			}
			return 1
		})
		top = slices.Insert(top, at, id)
		top = top[:min(len(top), topTokensShown)]
	}
	return top
}

// rank is the place of an id among all logits of a row, from 1; 0 for a NaN.
func rank(row []float64, id int) int {
	v := row[id]
	if v != v {
		return 0
	}
	n := 1
	for i, o := range row {
		if o > v || o == v && i < id {
			n++
		}
	}
	return n
}

// candidates are the tokens of [Next.Top].
func candidates(l, r []float64) []Token {
	ids := likeliest(r)
	for _, id := range likeliest(l) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	tokens := make([]Token, len(ids))
	for i, id := range ids {
		tokens[i] = Token{ID: id, ReferenceRank: rank(r, id), LocalRank: rank(l, id), Reference: measure.Number(r[id]), Local: measure.Number(l[id])}
	}
	return tokens
}
