package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/plan"
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

	// WorstKL is the largest KL of all rows, at the row WorstRow; NaN if no row has a defined KL. UndefinedKL
	// counts the rows without one.
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

	// Top has the five most likely tokens of the reference, most likely first, followed by the local side's most
	// likely five without duplicates.
	Top       []Token `json:"top"`
	Reference int     `json:"reference"` // the most likely tokens, what greedy decoding takes; −1 where all is NaN
	Local     int     `json:"local"`
	Agree     bool    `json:"agree"`

	// KL is the Kullback-Leibler divergence of the local side's distribution from the reference's, KL(P‖Q) = Σ p·ln(p/q)
	// in nats; see [softmaxes] for NaN, infinities and masks.
	KL measure.Number `json:"kl"`

	// Lead is the difference between the reference's two largest logits. Gap is the difference, in the reference,
	// between its own first token and the local side's first token; 0 if equal. Noise is the unit for both: the
	// expected error of this row's logits without any bug; NoiseFrom names its source. A Tie is a flip within the
	// noise.
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

// agreement is the remark about sides with the same next token.
const agreement = "weak evidence: a missing scale or soft cap does not change the order of the logits, and an error smaller than the lead does not change the token"

// nextTokens looks at logits as choices of the next token.
type nextTokens struct {
	plan  *plan.Plan
	floor *gate.NoiseFloor // of this prompt; nil where it is not known
	final *Final           // of the passes that were looked at; nil for none
}

// note adds a note about flips of the most likely token, and whether noise explains them.
func (n *nextTokens) note(p *pair, s *measure.Sums) {
	_, allowed, from := n.noiseOf(p, float64(p.row.Metrics.Norm)/math.Sqrt(float64(max(s.Compared, 1))))
	kind, relation := Tie, "within"
	if !(measure.Number(s.Top.Gap) <= allowed) {
		kind, relation = Greedy, "beyond"
	}
	p.row.Notes = append(p.row.Notes, Note{kind, fmt.Sprintf("the most likely token differs in %d of %d rows; in %s the two are at most %.3g apart, %s the %.3g that the %s allows",
		s.Top.Flipped, s.Top.Rows, p.names[reference].Side, s.Top.Gap, relation, float64(allowed), from)})
}

// look looks at the logits of a pass as a choice of tokens.
func (n *nextTokens) look(ctx context.Context, p *pair, s *measure.Sums) error {
	at := len(p.r.Shape) - 1
	if s.Top == nil || p.names.Alone() || at < 0 || p.r.Shape[at] < 2 || p.r.Shape[at] > measure.MaxVocabulary || measure.Elements(p.r.Shape) == 0 {
		return nil
	}
	if n.final == nil {
		n.final = &Final{}
	}
	if slices.ContainsFunc(n.final.Passes, func(f Logits) bool { return f.Pass == p.row.Pass }) {
		return nil // of two firings only the first has a certificate, too
	}
	all, err := measure.Divergences(ctx, p.l, p.r)
	if err != nil {
		return err
	}
	f := Logits{
		Key: p.row.Key(), Pass: p.row.Pass, Rows: int64(all.Rows), Flipped: s.Top.Flipped, WorstKL: measure.Number(all.Worst), UndefinedKL: all.Undefined,
	}
	if s.Top.Flipped > 0 {
		f.FlipGap = measure.Number(s.Top.Gap)
	}
	if f.WorstRow, err = n.placeOf(p, all.At); err != nil {
		return err
	}
	if f.Last, err = n.choice(p, all.Rows-1); err != nil {
		return err
	}
	if f.Last.Agree {
		f.Warning = agreement
	}
	n.final.add(f)
	return nil
}

// choice looks at one row.
func (n *nextTokens) choice(p *pair, row int) (Next, error) {
	size := p.r.Shape[len(p.r.Shape)-1]
	l, r := make([]float64, size), make([]float64, size)
	if err := errors.Join(p.l.Values(l, row*size), p.r.Values(r, row*size)); err != nil {
		return Next{}, err
	}
	topL, topR := likeliest(l), likeliest(r)
	next := Next{Top: candidates(l, r), Local: -1, Reference: -1, KL: measure.Number(new(measure.Softmaxes).Divergence(l, r)), Lead: measure.Nan, Gap: measure.Nan}
	if len(topL) > 0 {
		next.Local = topL[0]
	}
	if len(topR) > 0 {
		next.Reference = topR[0]
	}
	if len(topR) > 1 {
		next.Lead = measure.Number(r[topR[0]] - r[topR[1]])
	}
	next.Agree = next.Local == next.Reference && next.Local >= 0
	next.Noise, next.Allowed, next.NoiseFrom = n.noiseOf(p, rootMeanSquare(r))
	if next.Reference >= 0 && next.Local >= 0 {
		next.Gap = measure.Number(r[next.Reference] - r[next.Local])
		next.Tie = !next.Agree && next.Gap <= next.Allowed
	}
	var err error
	next.Row, err = n.placeOf(p, row)
	return next, err
}

// tieFloors is the largest gap, in noise floors, between two logits of the reference that may swap ranks without a
// bug. A floor is the root mean square error of one logit on one side. Four logits take part, two tokens on two
// sides, so the standard deviation of the difference of differences is two floors. The gap is three standard
// deviations.
const tieFloors = 6

// noiseOf returns the expected error of the logits of a row with this root mean square without any bug, and the
// largest gap between two tokens of the reference that noise can reverse. The unit is the noise floor of the
// prompt, if known. Otherwise it is the limit on the whole tensor: two logits at their limits are off by twice the
// limit.
func (n *nextTokens) noiseOf(p *pair, rms float64) (noise, allowed measure.Number, from string) {
	if n.floor != nil && n.floor.DType == p.arithmetic.String() {
		if f := n.floor.Entries[p.row.Key()].RelL2; f > 0 {
			noise = f * measure.Number(rms)
			return noise, tieFloors * noise, "noise floor of this prompt"
		}
	}
	noise = p.row.Gate.Checks[0].Limit * measure.Number(rms)
	return noise, 2 * noise, "limit on the logits (" + gate.Source(p.row.Gate.From) + ")"
}

// rootMeanSquare returns the root mean square of the finite elements, or 0 without any.
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
func (n *nextTokens) placeOf(p *pair, row int) (Place, error) {
	last := len(p.r.Shape) - 1
	place := Place{Index: p.r.Place(int64(row) * int64(p.r.Shape[last]))[:last]}
	at := strings.IndexByte(p.axes, order.AxisToken)
	if at < 0 || at >= last {
		return place, nil
	}
	positions, err := n.plan.RowPositions(reference, p.row.Pass, p.r.Rec, p.r.Rec.Shape[at])
	if err == nil && positions != nil {
		position := int(positions[place.Index[at]])
		place.Position = &position
	}
	return place, err
}

// likeliest returns the ids of the largest logits of a row, at most topTokensShown, the largest first; for equal
// logits, the lower id first. NaN and −Inf (masked) are excluded.
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
