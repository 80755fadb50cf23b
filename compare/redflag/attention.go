package redflag

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// attention looks at the probabilities of every layer: row by row, then across the passes, then by head.
func attention(ctx context.Context, v *view, f *found) error {
	ones, heads := map[string]*onOne{}, map[string]*headed{}
	var names []string // in the order of the trace
	for i := range v.subjects {
		s := &v.subjects[i]
		if !s.is(roleProbs) || !s.DType.Float() || len(s.Shape) < 3 || s.dim(1) > maxRow || s.elements() == 0 {
			continue
		}
		p, err := probabilitiesOf(ctx, v, s)
		if err != nil {
			return err
		}
		sumToOne(f, s, &p.sums)
		evenOrAlone(v, f, s, p)
		if ones[s.name] == nil {
			ones[s.name], heads[s.name] = &onOne{}, newHeaded(s)
			names = append(names, s.name)
		}
		ones[s.name].add(s, p.onKey, p.queries, p.keys)
		heads[s.name].add(s, p)
	}
	var layers []*headed
	for _, name := range names {
		layers = append(layers, heads[name])
		stuck(v, f, ones[name])
		if err := repetition(ctx, v, f, name); err != nil {
			return err
		}
	}
	byHead(v, f, layers)
	return nil
}

// probabilities describes the rows of one tensor [.., heads, queries, keys].
type probabilities struct {
	limits        *attentionLimits
	queries, keys int
	sums          sums
	even          even    // spread is the least of the wide rows
	alone         int64   // rows with an earlier key that give next to no weight to the earlier keys
	before        float64 // the largest weight that a row gives to the earlier keys together
	reach         int     // the largest distance from a token to the first key that its row sees
	onKey                 // of all heads
	heads         []headRows
	uniformRows   map[int]int // by row that sees enough keys: in how many heads the weights are equal
}

// sums describes the sums of rows.
type sums struct {
	tolerance float64
	rows      int64
	wrong     int64   // rows that do not sum to 1, or have a negative number
	worst     int64   // the wrong row whose sum is farthest from 1
	sum       float64 // of the row worst
	least     float64 // the least number of all rows
}

// even counts the rows with equal weights on all visible keys.
type even struct {
	wide, uniform int64   // rows that see enough keys; wide rows with equal weights
	spread        float64 // the largest distance of a weight from the mean of its row, divided by the mean
}

// onKey says whether each row puts nearly all weight on one key, and whether all rows have the same key.
type onKey struct {
	later   int64   // rows with an earlier key
	key     int     // the key with the largest weight in the first row; −1 before the first row
	parted  bool    // another row has its largest weight on another key
	shared  bool    // some row divides its weight between several keys
	weight  float64 // the least of the largest weights
	back    int     // the distance from a token to its key, if the key is not slot 0; 0 without such a row
	unlike  bool    // the distance differs between rows
	atFirst int     // the largest distance from a token to its key, if the key is slot 0
}

// headRows are the rows of one head.
type headRows struct {
	even // spread is the largest of the uniform rows
	onKey
}

// probabilitiesOf reads the rows of a tensor. Token t of T tokens has key S − T + t of S keys, as in the order.
func probabilitiesOf(ctx context.Context, v *view, s *subject) (*probabilities, error) {
	p := &probabilities{
		limits: &v.limits.attention, queries: s.dim(2), keys: s.dim(1), onKey: onKey{key: -1, weight: 1},
		even: even{spread: math.Inf(1)}, uniformRows: map[int]int{},
	}
	p.heads = make([]headRows, min(s.dim(3), maxHeads))
	for i := range p.heads {
		p.heads[i].onKey = p.onKey
	}
	p.sums = sums{sum: 1, tolerance: v.limits.attention.sum * sumTolerance(s.DType, p.keys)}
	err := v.rows(ctx, s, func(i int64, x []float64) (bool, error) {
		if p.queries == 0 {
			return false, nil
		}
		p.sums.add(i, x)
		query := int(i % int64(p.queries))
		head := &p.heads[int(i/int64(p.queries))%len(p.heads)]
		token, tokens, known := v.fed.token(s.pass, query, p.queries)
		own := p.keys - tokens + token
		if !known {
			return true, nil
		}
		if own >= uniformKeys-1 {
			p.flat(head, query, x, own)
		}
		if own >= 1 && own < p.keys {
			p.context(head, x, own)
		}
		return true, nil
	})
	return p, err
}

// add takes in a row. A row with NaN or infinities has no sum, and raises the flag non-finite.
func (n *sums) add(i int64, x []float64) {
	n.rows++
	sum := 0.
	for _, y := range x {
		sum += y
	}
	least := slices.Min(x)
	n.least = min(n.least, least)
	if far := math.Abs(sum - 1); far > n.tolerance && far <= math.MaxFloat64 || least < 0 {
		n.wrong++
		if n.wrong == 1 || far > math.Abs(n.sum-1) {
			n.worst, n.sum = i, sum
		}
	}
}

// flat takes in a row that sees enough keys to tell whether its weights are equal. A row that is masked everywhere has weights on later keys too, and
// does not count in uniformRows.
func (p *probabilities) flat(head *headRows, query int, x []float64, own int) {
	p.even.wide++
	head.wide++
	causal := own < len(x) && (own == len(x)-1 || slices.Max(x[own+1:]) == 0)
	if causal && query < maxQueries {
		p.uniformRows[query] += 0 // an entry of 0: the row is judged
	}
	seen, sum := 0, 0.
	least, most := math.Inf(1), math.Inf(-1)
	for _, y := range x {
		if y > 0 {
			seen++
			sum += y
			least, most = min(least, y), max(most, y)
		}
	}
	if seen < uniformKeys {
		return
	}
	mean := sum / float64(seen)
	spread := max(most-mean, mean-least) / mean
	p.even.spread = min(p.even.spread, spread)
	if spread <= p.limits.uniform {
		p.even.uniform++
		head.uniform++
		head.spread = max(head.spread, spread)
		if causal && query < maxQueries {
			p.uniformRows[query]++
		}
	}
}

// context takes in a row with keys before its own key.
func (p *probabilities) context(head *headRows, x []float64, own int) {
	before := 0.
	key := 0
	for j, y := range x {
		if j < own {
			before += math.Abs(y)
		}
		if y > x[key] {
			key = j
		}
	}
	p.before = max(p.before, before)
	if before <= p.limits.ignored {
		p.alone++
	}
	for _, k := range []*onKey{&p.onKey, &head.onKey} {
		k.add(key, own, x[key], key != own && x[key] >= p.limits.stuck)
	}
	if first := slices.IndexFunc(x, func(y float64) bool { return y > 0 }); first >= 0 {
		p.reach = max(p.reach, own-first)
	}
}

// add takes in a row by its key with the largest weight.
func (k *onKey) add(key, own int, weight float64, alone bool) {
	k.later++
	if k.key < 0 {
		k.key = key
	}
	k.parted = k.parted || key != k.key
	k.shared = k.shared || !alone
	k.weight = min(k.weight, weight)
	switch {
	case key == 0:
		k.atFirst = max(k.atFirst, own)
	case k.back == 0:
		k.back = own - key
	default:
		k.unlike = k.unlike || own-key != k.back
	}
}

// sumToOne looks for rows that do not sum to 1.
func sumToOne(f *found, s *subject, n *sums) {
	if !f.look(ProbabilitySum) || n.wrong == 0 {
		return
	}
	shape := s.Shape[:len(s.Shape)-1]
	f.raise(ProbabilitySum, s, []Number{
		number("rows", float64(n.rows)), number("rows_wrong", float64(n.wrong)), number("sum", n.sum), number("tolerance", n.tolerance), number("least", n.least),
	}, "%d of %d rows are wrong: row %s sums to %.6g, want 1 ± %.1e; the smallest number is %.3g", n.wrong, n.rows, coordinates(shape, n.worst), n.sum, n.tolerance, n.least)
}

// evenOrAlone flags a tensor if each row with enough keys weighs the keys the same, or if each row gives the earlier keys next to no
// weight.
func evenOrAlone(v *view, f *found, s *subject, p *probabilities) {
	if n := &p.even; n.wide > 0 && f.look(AttentionUniform) && n.uniform == n.wide {
		f.raise(AttentionUniform, s, []Number{number("rows", float64(n.wide)), number("spread", n.spread), number("limit", v.limits.attention.uniform)},
			"all %d rows of %d keys or more have equal weights, within %.2g of the mean", n.wide, uniformKeys, v.limits.attention.uniform)
	}
	if p.later > 0 && f.look(ContextIgnored) && p.alone == p.later {
		f.raise(ContextIgnored, s, []Number{number("rows", float64(p.later)), number("weight", p.before), number("limit", v.limits.attention.ignored)},
			"the weights of the earlier positions sum to %.3g at most, in %d rows of %d heads", p.before, p.later, max(p.later/int64(max(p.queries, 1)), 1))
	}
}

// onOne describes whether one layer, over all passes, puts nearly all weight on one key. The key is the same if its slot in the row is the same, or,
// with a moving window, its place in the sequence.
type onOne struct {
	first         *subject
	rows          int64
	tokens        int // in the passes so far
	slot, place   int
	moved, parted bool // a later pass has another slot; another place
	weight        float64
	within        bool  // a pass has several keys
	window        onKey // over all passes
}

// add takes in one pass.
func (o *onOne) add(s *subject, k onKey, queries, keys int) {
	start := o.tokens + queries - keys // the place of slot 0 in the sequence
	o.tokens += queries
	if k.later == 0 {
		return
	}
	if o.first == nil {
		o.first, o.slot, o.place, o.weight = s, k.key, start+k.key, 1
	}
	o.rows += k.later
	o.within = o.within || k.parted
	o.window.together(k)
	o.moved = o.moved || k.key != o.slot
	o.parted = o.parted || start+k.key != o.place
	o.weight = min(o.weight, k.weight)
}

// judged reports whether there are enough rows. holds reports whether all rows put nearly all weight on the same key.
func (o *onOne) judged() bool { return o.first != nil && o.rows >= stuckRows }

func (o *onOne) holds() bool {
	return o.judged() && !o.window.shared && (!o.within && !(o.moved && o.parted) || o.window.oldest())
}

// where names the key.
func (o *onOne) where() string {
	if o.window.oldest() {
		return fmt.Sprintf("the oldest of the last %d keys", o.window.back+1)
	}
	return fmt.Sprintf("key %d", o.slot)
}

// together takes in the rows of another pass. The slots of two passes may hold different tokens, so the keys are not compared.
func (k *onKey) together(o onKey) {
	k.shared, k.unlike = k.shared || o.shared, k.unlike || o.unlike || k.back > 0 && o.back > 0 && k.back != o.back
	k.back, k.atFirst = max(k.back, o.back), max(k.atFirst, o.atFirst)
}

// oldest reports whether every row looks at the oldest key of a window of one length. The window has 3 keys or more, since a trained head may look at
// the previous token.
func (k *onKey) oldest() bool { return k.back > 1 && !k.unlike && k.atFirst <= k.back }

// stuck looks for a layer whose rows put everything on one key.
func stuck(v *view, f *found, o *onOne) {
	if !o.judged() || !f.look(AttentionStuck) || !o.holds() {
		return
	}
	f.raise(AttentionStuck, o.first, []Number{number("rows", float64(o.rows)), number("key", float64(o.slot)), number("weight", o.weight), number("limit", v.limits.attention.stuck)},
		"all %d rows of all heads and passes put a weight of at least %.4g on %s", o.rows, o.weight, o.where())
}

// repetition looks for a layer whose weights in every decode pass equal the weights of the pass before.
func repetition(ctx context.Context, v *view, f *found, name string) error {
	steps := decodes(v, name)
	if len(steps) <= repeatedPairs || !varied(v, steps) || !f.look(AttentionRepeated) {
		return nil
	}
	most := 0.
	for i, s := range steps[1:] {
		far, err := apart(ctx, v, steps[i], s)
		if err != nil {
			return err
		}
		if most = max(most, far); !(most <= v.limits.attention.repeated) {
			return nil
		}
	}
	f.raise(AttentionRepeated, steps[1], []Number{number("passes", float64(len(steps))), number("difference", most), number("limit", v.limits.attention.repeated)},
		"%d consecutive decode passes have the same weights, within %.3g", len(steps), most)
	return nil
}

// decodes returns the tensors of a name in the decode passes, from pass 1 on. Each tensor has one query and two keys or more.
func decodes(v *view, name string) []*subject {
	var steps []*subject
	for pass := 1; pass < v.passes; pass++ {
		s := v.find(pass, name)
		if s == nil || s.dim(2) != 1 || s.dim(1) < 2 || s.dim(1) > maxRow || s.elements() != int64(s.dim(3))*int64(s.dim(1)) || len(steps) > 0 && s.dim(3) != steps[0].dim(3) {
			break
		}
		steps = append(steps, s)
	}
	return steps
}

// varied reports whether the decode passes are fed several tokens, or unknown tokens. If one token is fed again and again, a first layer with a
// window rightly gives the same weights.
func varied(v *view, steps []*subject) bool {
	first, known := v.fed.id(steps[0].pass, 0, 1)
	for _, s := range steps {
		if id, _ := v.fed.id(s.pass, 0, 1); known && id != first {
			return true
		}
	}
	return !known
}

// apart is the largest difference between two tensors of decode passes [.., heads, 1, keys], over the keys that both tensors have.
func apart(ctx context.Context, v *view, a, b *subject) (float64, error) {
	common := min(a.dim(1), b.dim(1))
	x, y := make([]float64, common), make([]float64, common)
	most := 0.
	for head := range int64(a.dim(3)) {
		if err := v.read(ctx, a, head*int64(a.dim(1)), x); err != nil {
			return 0, err
		}
		if err := v.read(ctx, b, head*int64(b.dim(1)), y); err != nil {
			return 0, err
		}
		for j := range x {
			if far := math.Abs(x[j] - y[j]); !(far <= most) {
				most = far
			}
		}
	}
	return most, nil
}
