package propose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"

	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/order"
)

// The names of tensors, the order in which a dump has them and near values decide what no equal value and no recomputed product has decided. They prove nothing: such
// a line is a guess, and says so.

// guess is a tensor as an entry, with what speaks for it.
type guess struct {
	way
	t        *template
	r        *role
	words    float64 // how alike the names are, from 0 to 1
	between  bool    // it was written between the tensors of the entries around
	only     bool    // the entry fits no other open tensor, and the tensor fits no other free entry of its level or a lower one
	distance float64 // from what the entry should be; +Inf where that is not known
}

// score is 0 where nothing speaks for the guess.
func (g guess) score() float64 {
	near := 0.0
	if g.distance < 1 {
		near = 1 - g.distance
	}
	return 2*g.words + near + float64(btoi(g.between)+btoi(g.only))
}

// leastScore is what has to speak for a guess: names that are alike in most words, or a place between two others and values that are not far.
const leastScore = 1.2

func (g guess) why() string {
	var text string
	switch {
	case g.words > 0 && g.between:
		text = "a guess by its name and by the order of the dump"
	case g.words > 0:
		text = "a guess by its name"
	case g.only:
		text = "a guess: the only tensor of such a shape"
	default:
		text = "a guess by the order of the dump"
	}
	if g.distance < 1 {
		text += fmt.Sprintf(", relative L2 %.1e", g.distance)
	}
	return text + g.f.Why()
}

// byRest assigns the open tensors, the surest guess first. After each guess the entries are computed again that the guess is an operand of.
func (p *proposer) byRest(ctx context.Context) error {
	for p.ref != nil || p.computed != nil { // else nothing contradicts a guess
		if err := ctx.Err(); err != nil {
			return err
		}
		if found, err := p.byOtherOperands(ctx); err != nil {
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
		if err := p.take(best.t, best.f, []*role{best.r}, Line{Axes: best.how.Text, By: mapping.ByGuess, Why: best.why()}); err != nil {
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

// guesses are those that the shapes of the open tensors allow.
func (p *proposer) guesses() ([]guess, error) {
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
		var mine []guess
		for _, r := range p.free {
			if !r.freeFor(t) || p.another(r) || p.echoes(r) || r.alone && !p.turns().allow(t, r.at) {
				continue
			}
			if unit, err := p.unitRows(t); err != nil {
				return nil, err
			} else if unit && !isNorm(r) {
				continue
			}
			ways := p.plainWays(t, r)
			if len(ways) == 0 || ways[0].f.Last || !ways[0].f.Certain() || !p.fitsLater(t, ways[0].f, r) {
				continue
			}
			g := guess{way: ways[0], t: t, r: r, words: names.Alikeness(t.Text, r.text), between: ordered && p.isBetween(t, r), distance: math.Inf(1)}
			if r.alone {
				g.between = p.turns().shown() || p.inSeries(t, r)
			}
			if meansAnother(t, r, g.between, copied) {
				continue
			}
			if g.distance, err = p.nearness(t, g.way, r); err != nil {
				return nil, err
			}
			mine = append(mine, g)
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
	var left []guess
	for _, g := range all {
		if _, model := g.r.layers[-1]; g.score() < leastScore || model && g.distance >= 1 && !g.only && !g.between { // such as tables, which have names of rotations
			continue
		}
		no, err := p.contradicted(g)
		if err != nil {
			return nil, err
		}
		if !no {
			left = append(left, g)
		}
	}
	return left, nil
}

// another reports whether an entry hands on the numbers of an entry of a lower level. People dump the entry of the lower level.
func (p *proposer) another(r *role) bool {
	if p.meant(r) != r {
		return true
	}
	for _, e := range r.layers {
		if e.Op == nil || len(e.Inputs) == 0 || !handsOn(e) {
			return false
		}
		from, ok := p.list.Lookup(e.Inputs[0].Name)
		return ok && from.Level < e.Level && slices.Equal(p.want(from), p.want(e))
	}
	return false
}

// nearness is the median distance of a tensor from what an entry is computed to be, or else from the reference.
func (p *proposer) nearness(t *template, w way, r *role) (float64, error) {
	var all []float64
	for _, layer := range keysOf(w.f.Layers) {
		e := r.layers[layer]
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
		d, err := p.values.Distance(w.f.Layers[layer], x, w.how.Moves())
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

// written reports whether the tensors that are told by values stand in the dump in the order in which they are computed.
func (p *proposer) written() bool {
	up, all := 0, 0
	for i, a := range p.pairs {
		for _, b := range p.pairs[:i] {
			if a.t.All[0].Best.Layer == b.t.All[0].Best.Layer {
				all++
				up += btoi((a.t.All[0].At < b.t.All[0].At) == (a.r.at < b.r.at))
			}
		}
	}
	return all >= 10 && 10*up >= 9*all
}

// isBetween reports whether an entry stands between those of the tensors written before and after one.
func (p *proposer) isBetween(t *template, r *role) bool {
	x := t.All[0]
	before, after := -1, -1
	for i, o := range p.pairs {
		y := o.t.All[0]
		if y.Best.Layer != x.Best.Layer {
			continue
		}
		if y.At < x.At && (before < 0 || y.At > p.pairs[before].t.All[0].At) {
			before = i
		}
		if y.At > x.At && (after < 0 || y.At < p.pairs[after].t.All[0].At) {
			after = i
		}
	}
	return (before < 0 || p.pairs[before].r.at < r.at) && (after < 0 || r.at < p.pairs[after].r.at) && (before >= 0 || after >= 0)
}

// assigned chooses the guesses with the largest sum of scores, one for each tensor, and returns the guess of them with the largest score. It is nil without guesses.
func assigned(all []guess) *guess {
	var tensors []*template
	var roles []*role
	for _, g := range all {
		if !slices.Contains(tensors, g.t) {
			tensors = append(tensors, g.t)
		}
		if !slices.Contains(roles, g.r) {
			roles = append(roles, g.r)
		}
	}
	score := make([][]float64, len(tensors))
	at := make([][]int, len(tensors))
	for i := range score {
		score[i], at[i] = make([]float64, len(roles)), slices.Repeat([]int{-1}, len(roles))
	}
	for n, g := range all {
		i, k := slices.Index(tensors, g.t), slices.Index(roles, g.r)
		score[i][k], at[i][k] = g.score(), n
	}
	var best *guess
	for i, k := range assignment(score) {
		if k < 0 || at[i][k] < 0 {
			continue
		}
		if g := &all[at[i][k]]; best == nil || g.score() > best.score() {
			best = g
		}
	}
	return best
}

// assignment gives each row a column of its own, so that the sum of the scores is the largest: the Hungarian method with potentials, O(n³). Scores are not
// below 0. A row without a column has −1.
func assignment(score [][]float64) []int {
	rows, n := len(score), 0
	for _, row := range score {
		n = max(n, len(row), rows)
	}
	cost := func(i, k int) float64 {
		if i < rows && k < len(score[i]) {
			return -score[i][k]
		}
		return 0
	}
	u, v := make([]float64, n+1), make([]float64, n+1)
	row, way := make([]int, n+1), make([]int, n+1) // row of a column, from 1; 0 for none
	for i := 1; i <= n; i++ {
		row[0] = i
		least, used := slices.Repeat([]float64{math.Inf(1)}, n+1), make([]bool, n+1)
		k0 := 0
		for row[k0] != 0 {
			used[k0] = true
			i0, delta, k1 := row[k0], math.Inf(1), 0
			for k := 1; k <= n; k++ {
				if used[k] {
					continue
				}
				if c := cost(i0-1, k-1) - u[i0] - v[k]; c < least[k] {
					least[k], way[k] = c, k0
				}
				if least[k] < delta {
					delta, k1 = least[k], k
				}
			}
			for k := 0; k <= n; k++ {
				if used[k] {
					u[row[k]] += delta
					v[k] -= delta
				} else {
					least[k] -= delta
				}
			}
			k0 = k1
		}
		for k0 != 0 {
			row[k0] = row[way[k0]]
			k0 = way[k0]
		}
	}
	out := slices.Repeat([]int{-1}, rows)
	for k := 1; k <= n; k++ {
		if i := row[k] - 1; i >= 0 && i < rows && k-1 < len(score[i]) && score[i][k-1] > 0 {
			out[i] = k - 1
		}
	}
	return out
}

// contradicted reports whether a guess cannot be: what the dump computes from the entry is right, and would not be if the entry had the values of the tensor.
func (p *proposer) contradicted(g guess) (bool, error) {
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
	given, err := p.computed.supposing(g.t, p.lines(g.t, g.f, []*role{g.r}, Line{Axes: g.how.Text}))
	if err != nil {
		return false, err
	}
	then, err := p.rightBehind(g.r, given)
	return then < now, err
}

// mostBehind bounds the entries without a tensor between two entries with tensors.
const mostBehind = 6

// farther is how many times farther a tensor has to be from the reference than what is computed from the entry, for it not to be that entry.
const farther = 100

// valuedBehind reports whether an entry that is computed from another has the values of the reference in the dump, and a tensor at some distance would not give them.
func (p *proposer) valuedBehind(e *order.Entry, distance float64, steps int) bool {
	for i := range p.list.Entries {
		next := &p.list.Entries[i]
		if next.Layer != e.Layer && next.Layer >= 0 && e.Layer >= 0 || !slices.ContainsFunc(next.Inputs, func(in order.Ref) bool { return in.Name == e.Name && !in.Prev }) {
			continue
		}
		d, valued := p.valued[next.Name]
		if valued && farther*d < distance || steps > 0 && !p.named[next.Name] && p.valuedBehind(next, distance, steps-1) {
			return true
		}
	}
	return false
}
