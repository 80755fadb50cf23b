package propose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
)

// The names of tensors, the order in which a dump has them and near values decide what no equal value and no recomputed product has decided. They prove nothing: such
// a line is a guess, and says so.

// guess is a tensor as an entry, with what speaks for it.
type guess struct {
	candidate
	between  bool    // it was written between the tensors of the entries around
	only     bool    // no other open tensor fits the entry, and no other free entry of this level or below fits the tensor
	distance float64 // from what the entry should be; +Inf where that is not known
}

// score is 0 where nothing speaks for the guess.
func (g guess) score() float64 {
	near := 0.0
	if g.distance < 1 {
		near = 1 - g.distance
	}
	return 2*g.alike + near + float64(btoi(g.between)+btoi(g.only))
}

// leastScore is what has to speak for a guess: names that are alike in most words, or a place between two others and values that are not far.
const leastScore = 1.2

func (g guess) why() string {
	var text string
	switch {
	case g.alike > 0 && g.between:
		text = "a guess by its name and by the order of the dump"
	case g.alike > 0:
		text = "a guess by its name"
	case g.only:
		text = "a guess: the only tensor of this shape"
	default:
		text = "a guess by the order of the dump"
	}
	if g.distance < 1 {
		text += fmt.Sprintf(", relative L2 %.1e", g.distance)
	}
	return text + g.f.Why()
}

// byRest assigns the open tensors, the surest guess first. After each guess the entries are computed again that the guess is an operand of.
func (p guessing) byRest(ctx context.Context) error {
	for p.ref != nil || p.computed != nil { // else nothing contradicts a guess
		if err := ctx.Err(); err != nil {
			return err
		}
		if found, err := operandSearch(p).byOtherOperands(ctx); err != nil {
			return err
		} else if found > 0 {
			if err := p.byComputing(ctx); err != nil {
				return err
			}
			continue
		}
		all, err := p.guesses()
		if err != nil {
			return err
		}
		best := assigned(all)
		if best == nil {
			return nil
		}
		if err := p.take(best.candidate, Line{By: mapping.ByGuess, Why: best.why()}); err != nil {
			return err
		}
		if err := p.byComputing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// mostGuesses is how many entries are looked at for one tensor, the best ones.
const mostGuesses = 8

// guesses returns likely pairs of an open tensor and a free entry: the shapes fit, and nothing contradicts the pair.
func (p guessing) guesses() (left []guess, err error) {
	ordered, originals := p.written(), p.originals()
	var all []guess
	for _, t := range p.open {
		if t.settled {
			continue
		}
		p.looking(t.Text)
		copied, err := p.copiedBy(t, originals)
		if err != nil {
			return nil, err
		}
		mine, err := p.guessesOf(t, ordered, copied)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(mine, func(a, b guess) int { return cmp.Compare(b.score(), a.score()) })
		all = append(all, mine[:min(len(mine), mostGuesses)]...)
	}
	for i := range all {
		others := func(g guess) bool {
			return g.t != all[i].t && g.r == all[i].r || g.t == all[i].t && g.r != all[i].r && g.r.level <= all[i].r.level
		}
		all[i].only = !slices.ContainsFunc(all, others)
	}
	for _, g := range all {
		if _, model := g.r.layers[-1]; g.score() < leastScore || model && g.distance >= 1 && !g.only && !g.between { // such as tables, which have names of rotations
			continue
		}
		if no, err := p.contradicted(g); err != nil {
			return nil, err
		} else if !no {
			left = append(left, g)
		}
	}
	return left, nil
}

// guessesOf are the entries that an open tensor may be. ordered says that the order of the dump is evidence, and copied has the originals of the tensor.
func (p guessing) guessesOf(t *template, ordered bool, copied []original) (all []guess, err error) {
	for _, r := range p.free {
		if !r.freeFor(t) || p.another(r) || p.echoes(r) || r.alone && !p.turns().allow(t, r.at) {
			continue
		}
		if unit, err := p.unitRows(t); err != nil {
			return nil, err
		} else if unit && !isNorm(r) {
			continue
		}
		fitting := p.plainCandidates(t, r)
		if len(fitting) == 0 || fitting[0].f.Last || !fitting[0].f.Certain() || !p.fitsLater(t, fitting[0].f, r) {
			continue
		}
		g := guess{candidate: fitting[0], between: ordered && p.isBetween(t, r)}
		g.alike = names.Alikeness(t.Text, r.text)
		if r.alone {
			g.between = p.turns().shown() || p.inSeries(t, r)
		}
		if meansAnother(t, r, g.between, copied) {
			continue
		}
		if g.distance, err = p.nearness(g.candidate); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// nearness is the median distance of a tensor from what an entry is computed to be, or else from the reference.
func (p *recomputing) nearness(c candidate) (float64, error) {
	var all []float64
	for _, layer := range keysOf(c.f.Layers) {
		e := c.r.layers[layer]
		if e == nil {
			continue
		}
		x, ok, err := tensors.Tensor{}, false, error(nil)
		if p.computed != nil {
			x, ok, err = p.computed.of(e)
		}
		if !ok && err == nil && p.ref != nil {
			x, ok, err = p.ofReference(e)
		}
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		d, err := p.values.Distance(c.f.Layers[layer], x, c.how.Moves())
		if err != nil {
			return 0, err
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return math.Inf(1), nil
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// contradicted reports whether a guess cannot be: what the dump computes from the entry is right, and would not be if the entry had the values of the tensor.
func (p guessing) contradicted(g guess) (bool, error) {
	if g.distance < tensors.Near {
		return false, nil
	}
	for layer := range g.f.Layers {
		if e := g.r.layers[layer]; e != nil && isFloat(e) && p.valuedBehind(e, min(g.distance, 1), mostBehind) { // indexes have no values to be compared
			return true, nil
		}
	}
	if p.computed == nil {
		return false, nil
	}
	now, err := p.rightBehind(g.r, p.computed)
	if now == 0 || err != nil {
		return false, err
	}
	given, err := p.computed.supposing(g.t, p.lines(g.candidate, Line{}))
	if err != nil {
		return false, err
	}
	then, err := p.rightBehind(g.r, given)
	return then < now, err
}
